"""Reading ELF files."""

import struct
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llvm.backend.samples import FORMS
from planish.core import TargetError
from planish.llvm.backend import open_backend
from planish.llvm.backend.elf import code_bytes, functions

NAMES = st.sampled_from(
    [".text", ".text.f", ".text.unlikely", ".textile", ".data", ".rodata.text", "text", ""]
)


def elf(sections: list[tuple[str, int]]) -> bytes:
    """Write an ELF file that holds nothing but sections of these names and sizes, and the table of them."""
    names = ["", *(name for name, _ in sections), ".shstrtab"]
    sizes = [0, *(size for _, size in sections), 0]
    ends = list(accumulate(len(name) + 1 for name in names))
    rows = [
        (end - len(name) - 1, 1, 0, 0, 64, size, 0, 0, 0, 0)
        for name, size, end in zip(names, sizes, ends, strict=True)
    ]
    count, last = len(rows), len(rows) - 1
    if count >= 0xFF00:  # too many for the header: the first section tells
        rows[0] = (0, 0, 0, 0, 0, count, last, 0, 0, 0)
        count, last = 0, 0xFFFF
    numbers = (1, 62, 1, 0, 0, 64 + ends[-1], 0, 64, 0, 0, 64, count, last)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", *numbers)
    table = b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)
    return header + b"".join(name.encode() + b"\0" for name in names) + table


@given(st.lists(st.tuples(NAMES, st.integers(0, 2**40)), max_size=20))
def test_text_sections_add_up(sections: list[tuple[str, int]]):
    expected = sum(size for name, size in sections if name == ".text" or name.startswith(".text."))
    assert code_bytes(elf(sections)) == expected


def test_more_sections_than_the_header_can_count():
    assert code_bytes(elf([(".text.f", 3)] * 0xFF00)) == 3 * 0xFF00


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"\xcf\xfa\xed\xfe" + b"\0" * 99, b"\x7fELF\x01\x01" + b"\0" * 99]
)
def test_other_objects_are_refused(data: bytes):
    with pytest.raises(TargetError, match="no 64-bit ELF"):
        code_bytes(data)


def test_local_and_global_functions_are_found(tmp_path: Path):
    path = tmp_path / "object.o"
    path.write_bytes(open_backend("llvmlite").parse(FORMS).object_code())
    found = functions(path, ["forms", "callee", "personality", "table", "nothing"])
    assert set(found) == {"forms", "callee"}
    assert found["forms"] != found["callee"]
