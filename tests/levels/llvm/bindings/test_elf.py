"""Reading ELF files."""

import shutil
import struct
import subprocess
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.llvm.bindings.samples import FORMS
from planish.core import TargetError
from planish.levels.llvm.bindings.elf import (
    code_bytes,
    function_bytes,
    functions,
    interface,
    loaded_bytes,
    needed_libraries,
)
from planish.levels.llvm.bindings.libraries import open_bindings

NAMES = st.sampled_from(
    [".text", ".text.f", ".text.unlikely", ".textile", ".data", ".rodata.text", "text", ""]
)


ONE = "define i32 @one(i32 %x) {\n  %y = add i32 %x, 1\n  ret i32 %y\n}\n"
LAYOUTS = st.tuples(st.sampled_from([32, 64]), st.sampled_from("<>"))


def elf(sections: list[tuple[str, int]], bits: int = 64, order: str = "<") -> bytes:
    """Write an ELF file that holds nothing but sections of these names and sizes, and the table of them."""
    at = 64 if bits == 64 else 52
    names = ["", *(name for name, _ in sections), ".shstrtab"]
    sizes = [0, *(size for _, size in sections), 0]
    ends = list(accumulate(len(name) + 1 for name in names))
    rows = [
        (end - len(name) - 1, 1, 2 * (name != ".data"), 0, at, size, 0, 0, 0, 0)
        for name, size, end in zip(names, sizes, ends, strict=True)
    ]
    count, last = len(rows), len(rows) - 1
    if count >= 0xFF00:  # too many for the header: the first section tells
        rows[0] = (0, 0, 0, 0, 0, count, last, 0, 0, 0)
        count, last = 0, 0xFFFF
    form, entry = ("QQQIHHHHHH", "IIQQQQIIQQ") if bits == 64 else ("IIIIHHHHHH", "IIIIIIIIII")
    entry = struct.Struct(order + entry)
    numbers = (1, 62, 1, 0, 0, at + ends[-1], 0, at, 0, 0, entry.size, count, last)
    identity = b"\x7fELF" + bytes((bits // 32, "<>".index(order) + 1, 1))
    header = struct.pack(order + "16sHHI" + form, identity, *numbers)
    table = b"".join(entry.pack(*row) for row in rows)
    return header + b"".join(name.encode() + b"\0" for name in names) + table


@given(st.lists(st.tuples(NAMES, st.integers(0, 2**25)), max_size=20), LAYOUTS)
def test_sections_add_up(sections: list[tuple[str, int]], layout: tuple[int, str]):
    text = sum(size for name, size in sections if name == ".text" or name.startswith(".text."))
    assert code_bytes(elf(sections, *layout)) == text
    loaded = sum(size for name, size in sections if name != ".data")
    assert loaded_bytes(elf(sections, *layout)) == loaded


@pytest.mark.parametrize(
    "triple", ["armv7m-none-eabi", "riscv32-unknown-elf", "mips-none-elf", "aarch64-none-elf"]
)
def test_functions_of_other_processors_have_a_size(triple: str):
    try:
        module = open_bindings("libllvm").parse(f'target triple = "{triple}"\n{ONE}')
    except TargetError as error:
        pytest.skip(str(error))
    code = module.object_code()
    assert set(function_bytes(code)) == {"one"}
    assert 0 < function_bytes(code)["one"] <= code_bytes(code) <= loaded_bytes(code)


def test_calls_for_riscv_are_as_long_as_the_linker_leaves_them(tmp_path: Path):
    if not (linker := shutil.which("ld.lld") or shutil.which("ld.lld-22")):
        pytest.skip("lld is not here")
    calls = "  call void @callee()\n"
    functions_of = "".join(
        f'define void @{name}() "target-features"="+relax" {{\n{calls * count}  ret void\n}}\n'
        for name, count in (("callee", 0), ("one", 1), ("_start", 5))
    )
    try:
        module = open_bindings("libllvm").parse(f'target triple = "riscv32-unknown-elf"\n{functions_of}')
    except TargetError as error:
        pytest.skip(str(error))
    made, program = tmp_path / "made.o", tmp_path / "program"
    made.write_bytes(module.object_code())
    subprocess.run([linker, str(made), "-o", str(program)], check=True)
    assert function_bytes(made.read_bytes()) == function_bytes(program.read_bytes())
    assert (
        0 <= code_bytes(made.read_bytes()) - code_bytes(program.read_bytes()) < 8
    )  # space between functions


def test_more_sections_than_the_header_can_count():
    assert code_bytes(elf([(".text.f", 3)] * 0xFF00)) == 3 * 0xFF00


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"\xcf\xfa\xed\xfe" + b"\0" * 99, b"\x7fELF\x03\x01" + b"\0" * 99]
)
def test_other_objects_are_refused(data: bytes):
    with pytest.raises(TargetError, match="not an ELF"):
        code_bytes(data)


def test_local_and_global_functions_are_found(tmp_path: Path):
    path = tmp_path / "object.o"
    path.write_bytes(open_bindings("llvmlite").parse(FORMS).object_code())
    found = functions(path, ["forms", "callee", "personality", "table", "nothing"])
    assert set(found) == {"forms", "callee"}
    assert found["forms"] != found["callee"]


def test_an_interface_does_not_depend_on_the_order_of_functions(tmp_path: Path):
    if not (compiler := shutil.which("gcc") or shutil.which("clang")):
        pytest.skip("no C compiler is here")
    begin = "#include <stdio.h>\n#include <string.h>\nint shared;\n"
    copies = "char *copies(char *to, char *from, long n) { return memcpy(to, from, n); }\n"
    writes = 'int writes(void) { return fputs("x", stdout); }\n'
    main = "int main(int n, char **words) { return n > 9 ? *copies(words[0], words[1], n) : writes(); }\n"

    def built(source: str, *words: str) -> bytes:
        (tmp_path / "source.c").write_text(source)
        command = [compiler, "-w", "-O1", "-fno-builtin", "-fno-pie", "-no-pie", *words, "source.c"]
        subprocess.run([*command, "-o", "program"], cwd=tmp_path, check=True, capture_output=True)
        return (tmp_path / "program").read_bytes()

    program = built(begin + copies + writes + main)
    assert interface(program) == interface(built(begin + writes + copies + main))
    assert interface(program) != interface(built(begin + copies + writes + main, "-rdynamic"))
    needed = needed_libraries(built(begin + copies + writes + main, "-Wl,--no-as-needed", "-lm"))
    assert needed - needed_libraries(program) == {"libm.so.6"}
