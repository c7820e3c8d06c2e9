"""Loads from where an index that was computed says; it cannot lead outside of the table."""

from __future__ import annotations

import struct

from iced_x86 import Code

from planish.core import TargetError
from planish.loops.codegen.x86.encoding import Imm, Mem
from planish.loops.codegen.x86.pointers import RSP, SCRATCH, Pointer
from planish.loops.codegen.x86.transfers import Transfers
from planish.loops.codegen.x86.vectors import Element, Gathered


def to_place(transfers: Transfers, result: int, index: int, value: Gathered) -> None:
    """Load what a value gathers.

    Args:
        transfers: of the region.
        result: the register that it goes to.
        index: that of the index, the same in all lanes; it stays as it is.
        value: what is gathered.

    Raises:
        TargetError: the table's rows are too long.
    """
    isa, forms, emit = transfers.isa, transfers.isa.forms, transfers.asm.emit
    number = isa.vector(result)
    # Of two operands of which one is not a number, the processor gives the second.
    transfers.load_number(result, 0.0)
    emit(forms.arithmetic["MAX"], number, isa.vector(index), number)
    last = transfers.registers.take()
    transfers.load_number(last, float(value.extent - 1))
    emit(forms.arithmetic["MIN"], number, number, isa.vector(last))
    transfers.registers.give(last)
    emit(forms.whole, SCRATCH, isa.xmm(result))
    _behind(transfers, result, value)


def of_whole(transfers: Transfers, result: int, value: Gathered) -> None:
    """Load what a value gathers by a whole number in memory.

    Args:
        transfers: of the region.
        result: the register that it goes to.
        value: what is gathered.

    Raises:
        TargetError: the table's rows are too long.
    """
    emit, constant, place = transfers.asm.emit, transfers.asm.emit_constant, value.place
    assert isinstance(place, Element)
    load = Code.MOV_R64_RM64 if value.whole == 8 else Code.MOVSXD_R64_RM32
    emit(load, SCRATCH, transfers.address(place))
    # Both from the pool: a conditional move takes no immediate, and a comparison none of 64 bits.
    for move, end in ((Code.CMOVL_R64_RM64, 0), (Code.CMOVG_R64_RM64, value.extent - 1)):
        constant(Code.CMP_R64_RM64, SCRATCH, data=struct.pack("<q", end))
        constant(move, SCRATCH, data=struct.pack("<q", end))
    _behind(transfers, result, value)


def _behind(transfers: Transfers, result: int, value: Gathered) -> None:
    """Load what lies so many strides behind an element as the scratch register says."""
    element, emit = value.element, transfers.asm.emit
    # The multiplication takes an immediate of 32 bits with a sign.
    if value.stride >= 1 << 31:
        raise TargetError(f"rows of {value.stride:,} bytes are too long to be looked up")
    emit(Code.IMUL_R64_RM64_IMM32, SCRATCH, SCRATCH, Imm(value.stride))
    pointer = element.pointer
    emit(Code.ADD_R64_RM64, SCRATCH, pointer.register or Mem(RSP, pointer.slot))
    here = Pointer(pointer.buffer, pointer.dtype, {}, 0, SCRATCH)
    transfers.load(result, Element(here, element.disp, element.stride, element.lanes))
