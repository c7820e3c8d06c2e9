"""Linker: sections of machine code and constants become one shared object in the ELF format.

The shared object is position-independent and needs no other library. It has what a loader, a linker, a
debugger and a profiler read: dynamic symbols with a hash table, relocations, a build identifier, and the
names of all functions. Its memory is never writable and executable, and its stack is not executable.

Addresses are equal to offsets in the file, so that a loader maps everything from there:

    read-only    header, identifier, tables of the loader, constants
    executable   functions
    relocated    pointers, which are read-only after loading
    data         what is written
    weights      read-only; its pages are shared between processes
    (unmapped)   names of functions, headers of sections

See the System V application binary interface, and its supplements for x86-64 and AArch64.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from planish.core import TargetError
from planish.levels.loops.codegen.objects import (
    CODE,
    CONSTANTS,
    DATA,
    RELA,
    RELOCATED,
    SECTION,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_RELA,
    SHT_SYMTAB,
    STT_FUNC,
    STT_OBJECT,
    SYMBOL,
    Relocation,
    Section,
    Symbol,
)
from planish.network.library.arena import align_up

# Architectures


@dataclass(frozen=True)
class Architecture:
    """Relocations and sizes of a processor architecture.

    Args:
        machine: number in ELF headers.
        page: largest size of a page, in bytes.
        absolute: relocation type of a 64-bit address.
        distance: of a 64-bit distance from the relocated bytes.
        relative: of an address that the loader adds its base to.
        fixes: by relocation type, a function that sets bytes; it takes the content, their offset there, the
            address of the symbol, and their own.
    """

    machine: int
    page: int
    absolute: int
    distance: int
    relative: int
    fixes: Mapping[int, Callable[[bytearray, int, int, int], None]] = field(repr=False)


def _distance(size: int) -> Callable[[bytearray, int, int, int], None]:
    def fix(content: bytearray, offset: int, value: int, here: int) -> None:
        content[offset : offset + size] = (value - here).to_bytes(size, "little", signed=True)

    return fix


def _field(
    size: int, shift: int, take: Callable[[int, int], int]
) -> Callable[[bytearray, int, int, int], None]:
    """Return what sets a field of an instruction of 32 bits.

    Args:
        size: of the field, in bits.
        shift: its lowest bit.
        take: computes the field of the value's address and of the instruction's.
    """

    def fix(content: bytearray, offset: int, value: int, here: int) -> None:
        (word,) = struct.unpack_from("<I", content, offset)
        mask = (1 << size) - 1
        word = word & ~(mask << shift) | (take(value, here) & mask) << shift
        struct.pack_into("<I", content, offset, word)

    return fix


def _page_distance(content: bytearray, offset: int, value: int, here: int) -> None:
    """Set the field of ADRP, whose lowest two bits are apart from the others."""
    pages = (value >> 12) - (here >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise OverflowError
    _field(2, 29, lambda _value, _here: pages)(content, offset, value, here)
    _field(19, 5, lambda _value, _here: pages >> 2)(content, offset, value, here)


def _low(shift: int) -> Callable[[bytearray, int, int, int], None]:
    return _field(12, 10, lambda value, _: (value & 0xFFF) >> shift)


def _branch(value: int, here: int) -> int:
    if not -(1 << 27) <= value - here < 1 << 27:
        raise OverflowError
    return (value - here) >> 2


X86_64 = Architecture(62, 1 << 12, 1, 24, 8, {2: _distance(4), 4: _distance(4), 24: _distance(8)})
AARCH64 = Architecture(
    183, 1 << 16, 257, 260, 1027,
    {
        260: _distance(8), 261: _distance(4), 275: _page_distance, 277: _low(0), 278: _low(0), 284: _low(1),
        285: _low(2), 286: _low(3), 299: _low(4), 282: _field(26, 0, _branch), 283: _field(26, 0, _branch),
    },
)  # fmt: skip


ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64}
"""By the first part of LLVM's triple."""


def architecture_name(triple: str) -> str:
    """Return the name of a triple's architecture.

    Raises:
        TargetError: shared objects for it cannot be made.
    """
    name = triple.split("-", maxsplit=1)[0]
    if name not in ARCHITECTURES:
        raise TargetError(
            f"no shared object can be made for '{triple}'", f"Use {' or '.join(ARCHITECTURES)}."
        )
    return name


# Shared objects

WEIGHTS = ".weights"
"""The section of the weights, and the symbol of its address."""


def link(
    sections: Sequence[Section],
    weights: memoryview,
    architecture: Architecture,
    name: str,
    exported: Sequence[str],
    *,
    entry: str = "",
    stays: bool = False,
) -> list[bytes | memoryview]:
    """Link sections to a shared object.

    A pointer to a symbol that no section defines is zero after loading, unless the process has the symbol.

    Args:
        sections: what is file_parts.
        weights: bytes of the section `WEIGHTS`, whose address is that of a symbol of the same name.
        architecture: of the code.
        name: of the shared object.
        exported: symbols that other programs see.
        entry: symbol of the function that begins, if it is a program.
        stays: whether it stays loaded for the life of a process, because of threads of its own.

    Returns:
        The file's content, in parts.

    Raises:
        TargetError: a relocation's type is not known, its value is out of reach, or its symbol not defined.
    """
    return _Linker(sections, weights, architecture, name, exported, entry=entry, stays=stays).file_parts()


_DT = {
    "HASH": 4, "STRTAB": 5, "SYMTAB": 6, "RELA": 7, "RELASZ": 8, "RELAENT": 9, "STRSZ": 10, "SYMENT": 11,
    "SONAME": 14, "FLAGS": 30, "FLAGS_1": 0x6FFFFFFB, "RELACOUNT": 0x6FFFFFF9,
}  # fmt: skip
_SHT_PROGBITS, _SHT_STRTAB, _SHT_HASH, _SHT_DYNAMIC, _SHT_NOTE, _SHT_DYNSYM = 1, 3, 5, 6, 7, 11
_HEADER, _SEGMENT = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ")
_DYNAMIC = struct.Struct("<qQ")
_BIND_NOW, _NOW, _NODELETE = 8, 1, 8
_PT_LOAD, _PT_DYNAMIC, _PT_NOTE, _PT_GNU_STACK, _PT_GNU_RELRO = 1, 2, 4, 0x6474E551, 0x6474E552
_READ, _WRITES, _RUNS = 4, 2, 1
_NOTE_NAME, _NOTE_BUILD_ID, _ID_SIZE = b"GNU\0", 3, 20
_WEAK, _HIDDEN = 2, 2


class _Strings:
    """Table of strings, each of which ends with a zero byte."""

    def __init__(self) -> None:
        self.content = bytearray(1)

    def add(self, text: str) -> int:
        """Add a string; return its offset."""
        offset = len(self.content)
        self.content += text.encode() + b"\0"
        return offset


@dataclass
class _Output:
    """A section of the shared object.

    Args:
        kind: its type.
        flags: how it is mapped.
        content: its bytes; none of the weights.
        link: the section that it belongs to.
        info: depends on the type.
        entry: bytes of an entry, where it is a table.
        alignment: of its beginning.
        size: in bytes, where it has no content here.
        address: of it, which is its offset in the file.
    """

    kind: int
    flags: int
    content: bytearray = field(default_factory=bytearray)
    link: str = ""
    info: int = 0
    entry: int = 0
    alignment: int = 8
    size: int = 0
    address: int = 0


class _Linker:
    """Lays out sections, resolves symbols, and relocates; see `link`."""

    def __init__(
        self,
        sections: Sequence[Section],
        weights: memoryview,
        architecture: Architecture,
        name: str,
        exported: Sequence[str],
        *,
        entry: str,
        stays: bool,
    ) -> None:
        self._sections, self._weights, self._architecture = sections, weights, architecture
        self._entry, self._stays = entry, stays
        self._starts = dict[int, int]()
        self._symbols = {s.name: (section, s) for section in sections for s in section.symbols}
        pointers = [r for s in sections for r in s.relocations if r.kind == architecture.absolute]
        self._imported = sorted({r.symbol for r in pointers} - set(self._symbols) - {WEIGHTS})
        self._exported = sorted(exported)
        names = _Strings()
        self._soname = names.add(name)
        self._names = {each: names.add(each) for each in (*self._imported, *self._exported)}
        count = 1 + len(self._names)
        self._outputs = {
            ".note.gnu.build-id": _Output(_SHT_NOTE, SHF_ALLOC, bytearray(16 + _ID_SIZE), alignment=4),
            ".hash": _Output(_SHT_HASH, SHF_ALLOC, bytearray(4 * (1 + 2 * count)), ".dynsym", entry=4),
            ".dynsym": _Output(_SHT_DYNSYM, SHF_ALLOC, bytearray(24 * count), ".dynstr", 1, 24),
            ".dynstr": _Output(_SHT_STRTAB, SHF_ALLOC, names.content, alignment=1),
            ".rela.dyn": _Output(SHT_RELA, SHF_ALLOC, bytearray(24 * len(pointers)), ".dynsym", 0, 24),
            CONSTANTS: self._join_sections(CONSTANTS, SHF_ALLOC),
            CODE: self._join_sections(CODE, SHF_ALLOC | SHF_EXECINSTR),
            RELOCATED: self._join_sections(RELOCATED, SHF_ALLOC | SHF_WRITE),
            ".dynamic": _Output(_SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, bytearray(), ".dynstr", 0, 16),
            DATA: self._join_sections(DATA, SHF_ALLOC | SHF_WRITE),
            WEIGHTS: _Output(_SHT_PROGBITS, SHF_ALLOC, size=len(weights), alignment=64),
        }
        optional = (".rela.dyn", CONSTANTS, RELOCATED, DATA)
        for output in [each for each in optional if not self._outputs[each].content]:
            del self._outputs[output]
        self._outputs[".dynamic"].content = bytearray(16 * len(self._dynamic()))

    def _join_sections(self, output: str, flags: int) -> _Output:
        """Join sections of one kind, and note where each begins."""
        content, alignment = bytearray(), 8
        for section in self._sections:
            if section.output == output:
                alignment = max(alignment, section.alignment)
                content += bytes(-len(content) % section.alignment)
                self._starts[id(section)] = len(content)
                content += section.content
        return _Output(_SHT_PROGBITS, flags, content, alignment=alignment)

    # Layout

    def file_parts(self) -> list[bytes | memoryview]:
        """Return the parts of the file."""
        segments = self._place_sections()
        self._fill_symbols()
        self._relocate()
        for index, pair in enumerate(self._dynamic()):
            _DYNAMIC.pack_into(self._outputs[".dynamic"].content, 16 * index, *pair)
        weights = self._outputs[WEIGHTS]
        tail, sections = self._tail(weights.address + weights.size)
        headers = self._headers(segments, sections)
        digest = sha256()
        head = self._head(headers, weights.address)
        for part in (head, self._weights):
            digest.update(part)
        note = struct.pack("<III4s", 4, _ID_SIZE, _NOTE_BUILD_ID, _NOTE_NAME) + digest.digest()[:_ID_SIZE]
        start = self._outputs[".note.gnu.build-id"].address
        head[start : start + len(note)] = note
        return [bytes(head), self._weights, tail]

    def _place_sections(self) -> list[tuple[int, list[_Output]]]:
        """Set all addresses; return the rights of each segment, and what is in it."""
        listed = list[tuple[int, list[_Output]]]()
        groups = (
            (_READ, (".note.gnu.build-id", ".hash", ".dynsym", ".dynstr", ".rela.dyn", CONSTANTS)),
            (_READ | _RUNS, (CODE,)),
            (_READ | _WRITES, (RELOCATED, ".dynamic")),
            (_READ | _WRITES, (DATA,)),
            (_READ, (WEIGHTS,)),
        )
        for rights, names in groups:
            if found := [self._outputs[name] for name in names if name in self._outputs]:
                listed.append((rights, found))
        address = _HEADER.size + _SEGMENT.size * (len(listed) + 4)
        for number, (_, outputs) in enumerate(listed):
            if number:
                address = align_up(address, self._architecture.page)
            for output in outputs:
                address = output.address = align_up(address, output.alignment)
                output.size = output.size or len(output.content)
                address += output.size
        return listed

    def _headers(self, segments: Sequence[tuple[int, list[_Output]]], sections: int) -> bytes:
        """Write the file's header, and those of segments."""
        rows, page, relocated = list[bytes](), self._architecture.page, b""
        for rights, outputs in segments:
            first, last = outputs[0], outputs[-1]
            start = 0 if not rows else first.address
            size = last.address + last.size - start
            if self._outputs[".dynamic"] in outputs:
                # Whole pages can be protected; the file has zero bytes up to the next segment.
                size = align_up(size, page)
                relocated = _segment(_PT_GNU_RELRO, _READ, start, size, 1)
            rows.append(_segment(_PT_LOAD, rights, start, size, page))
        dynamic, note = self._outputs[".dynamic"], self._outputs[".note.gnu.build-id"]
        rows += [
            _segment(_PT_DYNAMIC, _READ | _WRITES, dynamic.address, dynamic.size, 8),
            _segment(_PT_NOTE, _READ, note.address, note.size, 4),
            _segment(_PT_GNU_STACK, _READ | _WRITES, 0, 0, 16),
            relocated,
        ]
        identity = b"\x7fELF" + bytes((2, 1, 1, 0)) + bytes(8)
        count, entry = len(self._outputs) + 4, self._address(self._entry) if self._entry else 0
        header = _HEADER.pack(
            identity, 3, self._architecture.machine, 1, entry, _HEADER.size, sections, 0, _HEADER.size,
            _SEGMENT.size, len(rows), SECTION.size, count, count - 1,
        )  # fmt: skip
        return header + b"".join(rows)

    def _head(self, headers: bytes, end: int) -> bytearray:
        """Return what is before the weights."""
        head = bytearray(end)
        head[: len(headers)] = headers
        for output in self._outputs.values():
            head[output.address : output.address + len(output.content)] = output.content
        return head

    def _tail(self, end: int) -> tuple[bytes, int]:
        """Return what is after the weights, and where in the file the headers of sections begin."""
        names, strings, rows = _Strings(), _Strings(), [bytes(SYMBOL.size)]
        numbers = {name: index for index, name in enumerate(self._outputs, 1)}
        whole = Symbol(WEIGHTS, 0, self._outputs[WEIGHTS].size, is_function=False)
        rows.append(self._symbol(strings.add(WEIGHTS), whole))
        named = [s for _, s in self._symbols.values() if s.size or s.is_function]
        local = [s for s in named if s.name not in self._exported]
        seen = [s for s in named if s.name in self._exported]
        rows += [self._symbol(strings.add(s.name), s) for s in (*local, *seen)]
        contents = {
            ".symtab": _Output(SHT_SYMTAB, 0, bytearray(b"".join(rows)), ".strtab", len(local) + 2, 24),
            ".strtab": _Output(_SHT_STRTAB, 0, strings.content, alignment=1),
            ".shstrtab": _Output(_SHT_STRTAB, 0, names.content, alignment=1),
        }
        numbers |= {name: index for index, name in enumerate(contents, len(numbers) + 1)}
        labels = {name: names.add(name) for name in numbers}
        tail, heads = bytearray(), [bytes(SECTION.size)]
        for name, output in (*self._outputs.items(), *contents.items()):
            address = output.address
            if name in contents:
                tail += bytes(-(end + len(tail)) % output.alignment)
                address, output.address, output.size = end + len(tail), 0, len(output.content)
                tail += output.content
            link = numbers[output.link] if output.link else 0
            heads.append(
                SECTION.pack(
                    labels[name], output.kind, output.flags, output.address, address, output.size, link,
                    output.info, output.alignment, output.entry,
                )
            )  # fmt: skip
        tail += bytes(-(end + len(tail)) % 8)
        return bytes(tail) + b"".join(heads), end + len(tail)

    # Symbols

    def _address(self, name: str) -> int:
        """Return the address of a symbol."""
        if name == WEIGHTS:
            return self._outputs[WEIGHTS].address
        if name not in self._symbols:
            raise TargetError(f"the library's code needs '{name}', which nothing defines")
        section, symbol = self._symbols[name]
        return self._outputs[section.output].address + self._starts[id(section)] + symbol.offset

    def _symbol(self, label: int, symbol: Symbol) -> bytes:
        output = WEIGHTS if symbol.name == WEIGHTS else self._symbols[symbol.name][0].output
        kind = STT_FUNC if symbol.is_function else STT_OBJECT
        section = list(self._outputs).index(output) + 1
        info, visibility = (1 << 4 | kind, 0) if symbol.name in self._exported else (kind, _HIDDEN)
        return SYMBOL.pack(label, info, visibility, section, self._address(symbol.name), symbol.size)

    def _fill_symbols(self) -> None:
        """Write the symbols that loaders and linkers see, and their hash table."""
        rows = [bytes(SYMBOL.size)]
        for name, label in self._names.items():
            if name in self._symbols:
                rows.append(self._symbol(label, self._symbols[name][1]))
            else:
                rows.append(SYMBOL.pack(label, _WEAK << 4, 0, 0, 0, 0))
        self._outputs[".dynsym"].content[:] = b"".join(rows)
        buckets, chains = [0] * max(1, len(self._names)), [0] * len(rows)
        for number, name in enumerate(self._names, 1):
            bucket = symbol_hash(name) % len(buckets)
            chains[number], buckets[bucket] = buckets[bucket], number
        words = (len(buckets), len(chains), *buckets, *chains)
        self._outputs[".hash"].content[:] = struct.pack(f"<{len(words)}I", *words)

    # Relocations

    def _relocate(self) -> None:
        """Set what depends on distances, and write what the loader sets."""
        relative, symbolic = list[bytes](), list[bytes]()
        numbers = {name: number for number, name in enumerate(self._names, 1)}
        for section in self._sections:
            output = self._outputs[section.output]
            start = self._starts[id(section)]
            for each in section.relocations:
                offset = start + each.offset
                here = output.address + offset
                if each.kind != self._architecture.absolute:
                    self._fix(each, output.content, offset, here)
                elif each.symbol in self._imported:
                    info = numbers[each.symbol] << 32 | each.kind
                    symbolic.append(RELA.pack(here, info, each.addend))
                else:
                    value = self._address(each.symbol) + each.addend
                    relative.append(RELA.pack(here, self._architecture.relative, value))
        self._relative = len(relative)
        if relative or symbolic:
            self._outputs[".rela.dyn"].content[:] = b"".join((*relative, *symbolic))

    def _fix(self, each: Relocation, content: bytearray, offset: int, here: int) -> None:
        fix = self._architecture.fixes.get(each.kind)
        if fix is None:
            raise TargetError(f"relocations of type {each.kind}, of '{each.symbol}', are not known")
        try:
            fix(content, offset, self._address(each.symbol) + each.addend, here)
        except OverflowError as error:
            raise TargetError(f"'{each.symbol}' is out of reach of the library's code") from error

    _relative = 0

    def _dynamic(self) -> list[tuple[int, int]]:
        """Return the entries of the table that a loader begins with."""

        def at(name: str) -> int:
            return self._outputs[name].address

        rows = [
            ("SONAME", self._soname),
            ("HASH", at(".hash")),
            ("STRTAB", at(".dynstr")),
            ("SYMTAB", at(".dynsym")),
            ("STRSZ", len(self._outputs[".dynstr"].content)),
            ("SYMENT", SYMBOL.size),
        ]
        if ".rela.dyn" in self._outputs:
            rows += [("RELA", at(".rela.dyn")), ("RELASZ", len(self._outputs[".rela.dyn"].content))]
            rows += [("RELAENT", RELA.size), ("RELACOUNT", self._relative)]
        rows += [("FLAGS", _BIND_NOW), ("FLAGS_1", _NOW | (_NODELETE if self._stays else 0))]
        return [*((_DT[name], value) for name, value in rows), (0, 0)]


def symbol_hash(name: str) -> int:
    """Return the hash of a name in a hash table of the System V interface."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def _segment(kind: int, rights: int, start: int, size: int, alignment: int) -> bytes:
    return _SEGMENT.pack(kind, rights, start, start, start, size, size, alignment)
