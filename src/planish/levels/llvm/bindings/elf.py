"""Reading ELF files: the size of an object's code, and the local symbols of a library.

They may be of either byte order, with 32 or 64 bits. Other formats (Mach-O, COFF, wasm) are refused. In
objects for RISC-V, a call takes 8 bytes, of which the linker leaves 4 where it reaches the function by one
instruction, as it nearly always does; sizes of code are those after that.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path

from planish.core import TargetError

_MAGIC = b"\x7fELF"
_IDENTITY = 16
_SYMTAB, _FUNCTION, _LOCAL = 2, 2, 0
_RELA = 4
_NO_BITS, _LOADED = 8, 2
_RELOCATABLE = 1
_RISCV, _CALLS, _RELAX = 243, (18, 19), 51
"""The processor, and its relocations of calls, and of what the linker may make shorter."""
_SHORTENED = 4
_DYNAMIC, _DYNSYM, _VERSYM, _VERNEED = 6, 11, 0x6FFFFFFF, 0x6FFFFFFE
_UNWIND, _FRAME_START = ".eh_frame", 8
_RELOCATED = {".rela.eh_frame": True, ".rel.eh_frame": False}
"""Sections of relocations of the unwind table, and whether their entries have addends."""
_BESIDE = (".rodata.", ".gcc_except_table.", ".ARM.exidx.text.", ".ARM.extab.text.")
"""Sections of single functions with -ffunction-sections: jump tables, and tables of exceptions."""
_LIBRARY, _NAMES = 1, (14, 15, 29)
"""Entries of the dynamic section that are strings: libraries; the own name, and paths of libraries."""


class _Layout:
    """Layout of numbers in a file: the same fields, but those of symbols in another order with 32 bits."""

    def __init__(self, order: str, wide: bool) -> None:
        self.header = struct.Struct(order + ("16sHHIQQQIHHHHHH" if wide else "16sHHIIIIIHHHHHH"))
        self.section = struct.Struct(order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII"))
        self._symbol = struct.Struct(order + ("IBBHQQ" if wide else "IIIBBH"))
        self.dynamic = struct.Struct(order + ("QQ" if wide else "II"))
        self._half = struct.Struct(order + "H")
        self.word = struct.Struct(order + "I")
        self._needed, self._version = struct.Struct(order + "HHIII"), struct.Struct(order + "IHHII")
        self._relocation = struct.Struct(order + ("QQq" if wide else "IIi"))
        self._plain = struct.Struct(order + ("QQ" if wide else "II"))
        self._wide = wide

    def halves(self, data: bytes) -> list[int]:
        """Read numbers of 16 bits."""
        return [number for (number,) in self._half.iter_unpack(data)]

    def relocations(self, table: bytes, *, has_addends: bool) -> Iterator[tuple[int, int, int]]:
        """Yield of each relocation: where it is, the number of its symbol, and what is added to that."""
        for row in (self._relocation if has_addends else self._plain).iter_unpack(table):
            yield row[0], row[1] >> (32 if self._wide else 8), row[2] if has_addends else 0

    def kinds(self, table: bytes) -> Iterator[tuple[int, int]]:
        """Yield of each relocation with an addend: where it is, and its kind."""
        for offset, info, _ in self._relocation.iter_unpack(table):
            yield offset, info & (0xFFFFFFFF if self._wide else 0xFF)

    def versions(self, table: bytes) -> Iterator[tuple[int, int]]:
        """Yield of each version of a library's symbols: its number, and its name's offset."""
        file = 0
        while True:
            _, count, _, first, next_file = self._needed.unpack_from(table, file)
            at = file + first
            for _ in range(count):
                _, _, number, name, next_version = self._version.unpack_from(table, at)
                yield number, name
                at += next_version
            if not next_file:
                return
            file += next_file

    def symbols(self, table: bytes) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield of each symbol: its name's offset, kind, section, value and size."""
        for row in self._symbol.iter_unpack(table):
            if self._wide:
                name, kind, _, section, value, size = row
            else:
                name, value, size, kind, _, section = row
            yield name, kind, section, value, size


_LAYOUTS = {bytes((bits, order)): _Layout("<>"[order - 1], bits == 2) for bits in (1, 2) for order in (1, 2)}


@dataclass(frozen=True)
class Section:
    """A section: its name, kind, flags, offset in the file, bytes, and the sections that it is about."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int


def sections(data: bytes | mmap) -> list[Section]:
    """List the sections of an ELF file; raises TargetError where it is not an ELF file."""
    layout = _layout(data)
    header = layout.header.unpack_from(data)
    offset, width, count, names = header[6], header[11], header[12], header[13]
    if not offset:
        return []
    # With 65,280 sections and more, the header holds 0, and the first section's size is the number.
    count = count or int(layout.section.unpack_from(data, offset)[5])
    rows = [layout.section.unpack_from(data, offset + i * width) for i in range(count)]
    strings = rows[rows[0][6] if names == 0xFFFF else names][4]
    return [Section(_string(data, strings + r[0]), r[1], r[2], r[4], r[5], r[6], r[7]) for r in rows]


def _layout(data: bytes | mmap) -> _Layout:
    found = _LAYOUTS.get(data[4:6]) if data[:4] == _MAGIC and len(data) > _IDENTITY else None
    if found is None:
        raise TargetError("the object is not an ELF file", "Use a target whose objects are, as on Linux.")
    return found


def _string(data: bytes | mmap, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode("utf-8", "replace")


def code_bytes(data: bytes) -> int:
    """Add up the sizes of all `.text*` sections of an object; raises as `sections` does."""
    return sum(s.size for s in sections(data) if _is_code(s)) - _shortened(data)


def loaded_bytes(data: bytes) -> int:
    """Add up what an object has to load: code, constants and initialized data; raises as `sections` does."""
    loaded = sum(s.size for s in sections(data) if s.flags & _LOADED and s.kind != _NO_BITS)
    return loaded - _shortened(data)


def loaded_sections(data: bytes) -> dict[str, int]:
    """Return the bytes of each section that is stored and loaded; raises as `sections` does."""
    found: dict[str, int] = {}
    for s in sections(data):
        if s.flags & _LOADED and s.kind != _NO_BITS:
            found[s.name] = found.get(s.name, 0) + s.size
    return found


def _is_code(section: Section) -> bool:
    return section.name == ".text" or section.name.startswith(".text.")


def _shortened(data: bytes) -> int:
    return _SHORTENED * sum(map(len, _short_calls(data).values()))


def _short_calls(data: bytes) -> dict[int, list[int]]:
    """Return where an object has calls that the linker makes shorter, sorted, by the section's number."""
    if machine(data) != _RISCV or not is_object(data):
        return {}
    listed, layout, found = sections(data), _layout(data), dict[int, list[int]]()
    for section in listed:
        if section.kind == _RELA and _is_code(listed[section.info]):
            rows = [*layout.kinds(_content(data, section))]
            relaxed = {offset for offset, kind in rows if kind == _RELAX}
            calls = (offset for offset, kind in rows if kind in _CALLS and offset in relaxed)
            found[section.info] = sorted(calls)
    return found


def is_object(data: bytes) -> bool:
    """Return whether a file is yet to be linked; raises as `sections` does."""
    return bool(_layout(data).header.unpack_from(data)[1] == _RELOCATABLE)


def function_bytes(data: bytes) -> dict[str, int]:
    """Return the size of each function's code in an object, by its symbol; raises as `sections` does."""
    code, calls = {index for index, s in enumerate(sections(data)) if _is_code(s)}, _short_calls(data)
    found: dict[str, int] = {}
    for name, section, start, size in _function_symbols(data):
        if section in code:
            inside = calls.get(section, [])
            count = bisect_left(inside, start + size) - bisect_left(inside, start)
            found[name] = size - _SHORTENED * count
    return found


def machine(data: bytes) -> int:
    """Return the number of the processor that a file is for (`e_machine`); raises as `sections` does."""
    return int(_layout(data).header.unpack_from(data)[2])


def function_loads(data: bytes) -> dict[str, tuple[int, int]]:
    """Return the loaded bytes of each function of an object: of code, and of tables that exist because of it.

    The tables are its part of the unwind table, and its jump tables and tables of exceptions, as far as they
    are in sections of their own (-ffunction-sections).

    Raises:
        TargetError: as `sections` does.
    """
    listed, code = sections(data), function_bytes(data)
    more: dict[str, int] = dict.fromkeys(code, 0)
    for section in listed:
        for beginning in _BESIDE:
            name = section.name.removeprefix(beginning)
            if name != section.name and name in more:
                more[name] += section.size
    for name, size in _frames(data, listed):
        if name in more:
            more[name] += size
    return {name: (size, more[name]) for name, size in code.items()}


def _frames(data: bytes, listed: list[Section]) -> Iterator[tuple[str, int]]:
    """Yield for each entry of an object's unwind table its function and its bytes."""
    unwind = next((s for s in listed if s.name == _UNWIND), None)
    table = next((s for s in listed if s.kind == _SYMTAB), None)
    relocations = next((s for s in listed if s.name in _RELOCATED), None)
    if not unwind or not table or not relocations:
        return
    layout, functions = _layout(data), dict[tuple[int, int], str]()
    symbols = list(layout.symbols(_content(data, table)))
    strings = _content(data, listed[table.link])
    for name, kind, section, value, _ in symbols:
        if kind & 15 == _FUNCTION:
            functions.setdefault((section, value), _string(strings, name))
    frames, targets = _content(data, unwind), dict[int, str]()
    has_addends = _RELOCATED[relocations.name]
    rows = layout.relocations(_content(data, relocations), has_addends=has_addends)
    for offset, symbol, addend in rows:
        _, _, section, value, _ = symbols[symbol]
        added = addend if has_addends else layout.word.unpack_from(frames, offset)[0]
        targets[offset] = functions.get((section, value + added), "")
    at = 0
    while at + _FRAME_START < len(frames):
        size = layout.word.unpack_from(frames, at)[0] + layout.word.size
        # What comes first is shared by several functions.
        if layout.word.unpack_from(frames, at + layout.word.size)[0]:
            yield targets.get(at + _FRAME_START, ""), size
        at += size


def interface(data: bytes) -> str:
    """Name what other files see of a program or library; raises as `sections` does.

    Returns:
        A digest of its kind, its loader, the symbols that it exports with their versions, its own name and
        its paths of libraries.
    """
    listed, layout = sections(data), _layout(data)
    parts: list[object] = [layout.header.unpack_from(data)[1]]
    parts += [_content(data, section) for section in listed if section.name == ".interp"]
    tables = {section.kind: section for section in listed}
    if table := tables.get(_DYNSYM):
        strings, rows = _content(data, listed[table.link]), layout.symbols(_content(data, table))
        versions = layout.halves(_content(data, tables[_VERSYM])) if _VERSYM in tables else ()
        needed = dict(layout.versions(_content(data, tables[_VERNEED]))) if _VERNEED in tables else {}
        # A variable of a library that is copied into the program has a version of the library's, whose
        # number depends on which functions the linker meets before; its name does not.
        names = [_string(strings, needed[number]) if number in needed else number for number in versions]
        exported = (
            (_string(strings, name), kind, names[index] if names else 0)
            for index, (name, kind, section, _, _) in enumerate(rows)
            if section
        )
        parts += sorted(exported, key=repr)
    parts += _dynamic_strings(data, _NAMES)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def needed_libraries(data: bytes) -> set[str]:
    """Return the libraries that a program or library names; raises as `sections` does."""
    return {name for _, name in _dynamic_strings(data, (_LIBRARY,))}


def _dynamic_strings(data: bytes, tags: Collection[int]) -> list[tuple[int, str]]:
    listed = sections(data)
    table = next((section for section in listed if section.kind == _DYNAMIC), None)
    if not table:
        return []
    strings = _content(data, listed[table.link])
    entries = _layout(data).dynamic.iter_unpack(_content(data, table))
    return [(tag, _string(strings, value)) for tag, value in entries if tag in tags]


@dataclass(frozen=True)
class Range:
    """A function's name, and where its code is, counted from where the program is loaded."""

    name: str
    start: int
    size: int


def function_ranges(data: bytes) -> list[Range]:
    """List the functions that an executable defines, with names; raises as `sections` does."""
    # Without a section it is another library's; without a size its end is not known.
    return [Range(name, start, n) for name, section, start, n in _function_symbols(data) if section and n]


def _function_symbols(data: bytes) -> Iterator[tuple[str, int, int, int]]:
    """Yield the name, section, value and size of each symbol of a function."""
    listed = sections(data)
    for table in (s for s in listed if s.kind == _SYMTAB):
        strings = _content(data, listed[table.link])
        for name, kind, section, value, size in _layout(data).symbols(_content(data, table)):
            if kind & 15 == _FUNCTION:
                yield _string(strings, name), section, value, size


def linked_symbols(data: bytes) -> tuple[set[str], set[str]]:
    """Return the symbols by which the linker joins an object with others: those that it defines, and uses.

    Raises:
        TargetError: as `sections` does.
    """
    defined, used = set[str](), set[str]()
    listed = sections(data)
    for table in (s for s in listed if s.kind == _SYMTAB):
        strings = _content(data, listed[table.link])
        for name, kind, section, _, _ in _layout(data).symbols(_content(data, table)):
            if kind >> 4 != _LOCAL:
                (defined if section else used).add(_string(strings, name))
    return defined, used


def functions(path: Path, wanted: Collection[str]) -> dict[str, int]:
    """Find functions in a library's table of all symbols, which has local ones too.

    Returns:
        Name to address, counted from where the library is loaded; none for a stripped library.

    Raises:
        TargetError: it is not an ELF file.
    """
    names = {name.encode() for name in wanted}
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        listed = sections(data)
        table = next((s for s in listed if s.kind == _SYMTAB), None)
        if table is None:
            return {}
        strings, found = _content(data, listed[table.link]), dict[str, int]()
        for name, kind, section, value, _ in _layout(data).symbols(_content(data, table)):
            # Not decoded before: a library has some hundred thousand.
            if (
                kind & 15 == _FUNCTION
                and section
                and (text := strings[name : strings.index(0, name)]) in names
            ):
                found[text.decode()] = value
        return found


def _content(data: bytes | mmap, section: Section) -> bytes:
    return data[section.offset : section.offset + section.size]
