"""Sections of machine code before they are linked, and the reader of LLVM's objects in the ELF format."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Symbol(NamedTuple):
    """Name of bytes in a section.

    Args:
        name: unique among all that is linked.
        offset: in its section.
        size: in bytes.
        is_function: whether it is code that can be called.
    """

    name: str
    offset: int
    size: int
    is_function: bool = True


class Relocation(NamedTuple):
    """Bytes that depend on an address.

    Args:
        offset: in its section.
        kind: number of the architecture's relocation type.
        symbol: whose address it is.
        addend: is added.
    """

    offset: int
    kind: int
    symbol: str
    addend: int = 0


CONSTANTS, CODE, RELOCATED, DATA = ".rodata", ".text", ".data.rel.ro", ".data"
"""Segments that sections become part of: constants, functions, constants with addresses, variables."""


@dataclass(frozen=True)
class Section:
    """Bytes that stay together.

    Args:
        output: the section of the linked file that they become part of: `CODE`, `CONSTANTS`, ...
        content: the bytes.
        symbols: their names.
        relocations: what depends on addresses.
        alignment: of their beginning, in bytes.
    """

    output: str
    content: bytes
    symbols: Sequence[Symbol] = ()
    relocations: Sequence[Relocation] = ()
    alignment: int = 64


SECTION, SYMBOL, RELA = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), struct.Struct("<QQq")
"""Header of a section; an entry of a table of symbols, and of one of relocations."""
SHT_SYMTAB, SHT_RELA, SHT_NOBITS = 2, 4, 8
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
STT_OBJECT, STT_FUNC, STT_SECTION = 1, 2, 3


def read_object(data: bytes, name: str) -> list[Section]:
    """Read the sections of a relocatable object that are loaded.

    Args:
        data: the object, for a 64-bit processor of little-endian bytes.
        name: precedes its local symbols.
    """
    start, count = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    heads = [SECTION.unpack_from(data, start + i * SECTION.size) for i in range(count)]
    names = heads[struct.unpack_from("<H", data, 62)[0]]
    table = next(head for head in heads if head[1] == SHT_SYMTAB)
    symbols = [SYMBOL.unpack(data[o : o + 24]) for o in range(table[4], table[4] + table[5], 24)]
    strings = heads[table[6]][4]

    def text(offset: int) -> str:
        return data[offset : data.index(b"\0", offset)].decode()

    def label(number: int) -> str:
        at, info, _, section, _, _ = symbols[number]
        if info & 15 == STT_SECTION:
            return f"{name}.{section}"
        return text(strings + at) if info >> 4 else f"{name}.{text(strings + at)}"

    found = list[Section]()
    for index, head in enumerate(heads):
        _, kind, flags, _, offset, size, _, _, alignment, _ = head
        if not flags & SHF_ALLOC or not size:
            continue
        content = bytes(size) if kind == SHT_NOBITS else data[offset : offset + size]
        own = [Symbol(f"{name}.{index}", 0, 0, is_function=False)]
        for number, (_, info, _, section, value, extent) in enumerate(symbols):
            if section == index and info & 15 in (0, STT_OBJECT, STT_FUNC):
                own.append(Symbol(label(number), value, extent, info & 15 == STT_FUNC))
        moved = [
            Relocation(place, info & 0xFFFFFFFF, label(info >> 32), addend)
            for other in heads
            if other[1] == SHT_RELA and other[7] == index
            for place, info, addend in RELA.iter_unpack(data[other[4] : other[4] + other[5]])
        ]
        output = _output(text(names[4] + head[0]), flags)
        found.append(Section(output, content, own, moved, max(1, alignment)))
    return found


def _output(name: str, flags: int) -> str:
    if flags & SHF_EXECINSTR:
        return CODE
    if not flags & SHF_WRITE:
        return CONSTANTS
    return RELOCATED if name.startswith(RELOCATED) else DATA
