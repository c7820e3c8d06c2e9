"""Reading 64-bit ELF files: the size of an object's code, and the local symbols of a library.

Other formats (Mach-O, COFF, 32-bit ELF) are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path

from planish.core import TargetError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
_SYMTAB, _FUNCTION = 2, 2


@dataclass(frozen=True)
class Section:
    """A section: its name, kind, place in the file, bytes, and the section that it refers to."""

    name: str
    kind: int
    offset: int
    size: int
    link: int


def sections(data: bytes | mmap) -> list[Section]:
    """List the sections of an ELF file.

    Raises:
        TargetError: it is no 64-bit little-endian ELF file.
    """
    if data[: len(_MAGIC)] != _MAGIC:
        raise TargetError(
            "the object is no 64-bit ELF file", "Use a target whose objects are: Linux on x86-64."
        )
    header = _HEADER.unpack_from(data)
    offset, width, count, names = header[6], header[11], header[12], header[13]
    if not offset:
        return []
    rows = [_SECTION.unpack_from(data, offset + i * width) for i in range(_count(data, offset, count))]
    strings = rows[_names(rows, names)][4]
    return [Section(_string(data, strings + r[0]), r[1], r[4], r[5], r[6]) for r in rows]


def _count(data: bytes | mmap, offset: int, count: int) -> int:
    # With 65,280 sections and more, the header holds 0, and the first section's size is the number.
    return count or int(_SECTION.unpack_from(data, offset)[5])


def _names(rows: list[tuple[int, ...]], index: int) -> int:
    return rows[0][6] if index == 0xFFFF else index


def _string(data: bytes | mmap, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode("utf-8", "replace")


def code_bytes(data: bytes) -> int:
    """Add up the sizes of all `.text*` sections of an object; raises as `sections` does."""
    return sum(s.size for s in sections(data) if s.name == ".text" or s.name.startswith(".text."))


def function_bytes(data: bytes) -> dict[str, int]:
    """Give the size of each function's code in an object, by its symbol; raises as `sections` does."""
    listed = sections(data)
    code = {place for place, s in enumerate(listed) if s.name == ".text" or s.name.startswith(".text.")}
    found: dict[str, int] = {}
    for table in (s for s in listed if s.kind == _SYMTAB):
        strings = data[listed[table.link].offset :][: listed[table.link].size]
        symbols = data[table.offset : table.offset + table.size]
        for name, kind, _, section, _, size in _SYMBOL.iter_unpack(symbols):
            if kind & 15 == _FUNCTION and section in code:
                found[_string(strings, name)] = size
    return found


def functions(path: Path, wanted: Collection[str]) -> dict[str, int]:
    """Find functions in a library's table of all symbols, where local ones stand too.

    Args:
        path: the library.
        wanted: names of symbols.

    Returns:
        Name to address, counted from where the library is loaded; none for a stripped library.

    Raises:
        TargetError: it is no 64-bit little-endian ELF file.
    """
    names = {name.encode() for name in wanted}
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        listed = sections(data)
        table = next((s for s in listed if s.kind == _SYMTAB), None)
        if table is None:
            return {}
        return dict(_named(_content(data, table), _content(data, listed[table.link]), names))


def _named(table: bytes, strings: bytes, names: set[bytes]) -> Iterator[tuple[str, int]]:
    index = strings.index
    for name, kind, _, section, value, _ in _SYMBOL.iter_unpack(table):
        if kind & 15 == _FUNCTION and section and (found := strings[name : index(0, name)]) in names:
            yield found.decode(), value


def _content(data: mmap, section: Section) -> bytes:
    return data[section.offset : section.offset + section.size]
