"""Loads of every second element: two loads of what lies in sequence and one permutation, and no gather.

A convolution of stride 2 reads its image so. The first load begins at the first element, the second ends at
the last one: nothing beyond an array is touched, so that neither needs a mask.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from iced_x86 import Code

from planish.loops.codegen.x86.vectors import Element

if TYPE_CHECKING:
    from planish.loops.codegen.x86.transfers import Transfers

_SIZES = {64: "ZMM", 32: "YMM", 16: "XMM"}


def vector_of(lanes: int, itemsize: int) -> int:
    """Give the bytes of the smallest vector with so many lanes; 0 if that is less than half full."""
    size = next(size for size in sorted(_SIZES) if lanes * itemsize <= size)
    # The lanes span 2 * lanes - 1 elements: a vector that is less than half full would reach beyond them.
    return size if 2 * lanes * itemsize > size else 0


def load_alternate(transfers: Transfers, register: int, element: Element) -> None:
    """Load a vector whose lanes are two elements apart, with AVX-512; the lanes beyond are zero.

    Args:
        transfers: of the region.
        register: the vector register's number.
        element: of a stride of 2 and of so many lanes that `vector_of` gives a vector for them.
    """
    isa, asm = transfers.isa, transfers.asm
    itemsize, lanes = isa.itemsize, element.lanes
    size = vector_of(lanes, itemsize)
    within = size // itemsize
    behind = 2 * lanes - 1 - within
    load, permute = _codes(size, itemsize)
    to = {64: isa.vector, 32: isa.ymm, 16: isa.xmm}[size]
    pointer = element.pointer
    asm.emit(load, to(register), transfers.address(Element(pointer, element.disp, 1, lanes)))
    data, registers = _places(lanes, within, itemsize), transfers.registers
    places = registers.constants.pop(data, None)
    if places is None:
        places = registers.take()
        asm.emit_constant(load, to(places), data=data)
    second = transfers.address(Element(pointer, element.disp + behind * itemsize, 1, lanes))
    mask = 0 if lanes == within else transfers.mask(lanes)
    # VPERMT2 overwrites the first load; VPERMI2 would overwrite the places, which the next one wants again.
    asm.emit(permute, to(register), to(places), second, mask=mask, zero=bool(mask))
    registers.keep(places, data)


@lru_cache(maxsize=64)
def _places(lanes: int, within: int, itemsize: int) -> bytes:
    """Number, for each lane, its element of the two loads one behind the other."""
    behind = 2 * lanes - 1 - within
    found = [2 * i if 2 * i < within else within + 2 * i - behind for i in range(lanes)]
    return struct.pack(f"<{within}{'i' if itemsize == 4 else 'q'}", *found, *[0] * (within - lanes))


@lru_cache(maxsize=8)
def _codes(size: int, itemsize: int) -> tuple[int, int]:
    """Give the forms of the load and of the permutation."""
    name, p = _SIZES[size], "PS" if itemsize == 4 else "PD"
    load = f"EVEX_VMOVU{p}_{name}_K1Z_{name}M{8 * size}"
    permute = f"EVEX_VPERMT2{p}_{name}_K1Z_{name}_{name}M{8 * size}B{8 * itemsize}"
    return int(getattr(Code, load)), int(getattr(Code, permute))
