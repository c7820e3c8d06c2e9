"""Elements narrower than the arithmetic: widened as they are loaded, rounded as they are stored.

float16 has instructions for both ways. bfloat16 is the upper half of a float32: it is shifted into place, and
rounded to the nearest, ties to even, by AVX512_BF16's instruction where the processor has it (which takes
numbers below the smallest normal one for zero), else by adding what carries into the upper half. What is not
a number stays so, and is quiet. Of whole numbers the lowest bits are stored: only copies are narrow.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from iced_x86 import Code, Register

from planish.loops.codegen.x86.encoding import Address, Imm
from planish.loops.codegen.x86.isa import Isa
from planish.loops.codegen.x86.vectors import Element
from planish.loops.lang.program import DTYPES

if TYPE_CHECKING:
    from planish.loops.codegen.x86.transfers import Transfers

_TO_NEAREST_EVEN, _UNORDERED = Imm(0), Imm(3)
_K7 = int(Register.K7)


class _Forms(NamedTuple):
    """The instructions for elements of one size, for AVX2 and for AVX-512.

    Args:
        per_xmm: elements in 128 bits.
        broadcast: one element from memory to all places of a narrow vector.
        insert: one element from memory.
        extract: one element to memory.
        store: a narrow vector, with a mask for AVX-512.
    """

    per_xmm: int
    broadcast: tuple[int, int]
    insert: tuple[int, int]
    extract: tuple[int, int]
    store: tuple[int, int]


_FORMS = {
    2: _Forms(
        8,
        (Code.VEX_VPBROADCASTW_XMM_XMMM16, Code.EVEX_VPBROADCASTW_YMM_K1Z_XMMM16),
        (Code.VEX_VPINSRW_XMM_XMM_R32M16_IMM8, Code.EVEX_VPINSRW_XMM_XMM_R32M16_IMM8),
        (Code.VEX_VPEXTRW_R32M16_XMM_IMM8, Code.EVEX_VPEXTRW_R32M16_XMM_IMM8),
        (Code.VEX_VMOVDQU_XMMM128_XMM, Code.EVEX_VMOVDQU16_YMMM256_K1Z_YMM),
    ),
    1: _Forms(
        16,
        (Code.VEX_VPBROADCASTB_XMM_XMMM8, Code.EVEX_VPBROADCASTB_XMM_K1Z_XMMM8),
        (Code.VEX_VPINSRB_XMM_XMM_R32M8_IMM8, Code.EVEX_VPINSRB_XMM_XMM_R32M8_IMM8),
        (Code.VEX_VPEXTRB_R32M8_XMM_IMM8, Code.EVEX_VPEXTRB_R32M8_XMM_IMM8),
        (Code.VEX_VMOVQ_XMMM64_XMM, Code.EVEX_VMOVDQU8_XMMM128_K1Z_XMM),
    ),
}
_WIDEN = {
    "float16": (Code.VEX_VCVTPH2PS_YMM_XMMM128, Code.EVEX_VCVTPH2PS_ZMM_K1Z_YMMM256_SAE),
    "bfloat16": (Code.VEX_VPMOVZXWD_YMM_XMMM128, Code.EVEX_VPMOVZXWD_ZMM_K1Z_YMMM256),
    "int8": (Code.VEX_VPMOVSXBD_YMM_XMMM64, Code.EVEX_VPMOVSXBD_ZMM_K1Z_XMMM128),
}


def load(transfers: Transfers, register: int, element: Element) -> None:
    """Load a vector and widen it; lanes beyond the element's are as `Transfers.load` says."""
    isa, emit, dtype = transfers.isa, transfers.asm.emit, element.pointer.dtype
    part = _part(isa, register, dtype)
    if element.stride == 0 and dtype == "int8" and isa.wide:
        _repeat(transfers, register, element)
        return
    if element.stride == 0:
        emit(_FORMS[DTYPES[dtype]].broadcast[isa.wide], part, transfers.address(element))
    elif element.stride == 1 and element.lanes == isa.lanes:
        _widen(transfers, register, element, transfers.address(element))
        return
    elif element.stride == 1 and isa.wide:
        _widen(transfers, register, element, transfers.address(element), transfers.mask(element.lanes))
        return
    else:
        _collect(transfers, register, element)
    _widen(transfers, register, element, part)


def _part(isa: Isa, register: int, dtype: str) -> int:
    """The part of a vector register that holds as many narrow elements."""
    return isa.ymm(register) if isa.lanes * DTYPES[dtype] > 16 else isa.xmm(register)


def _widen(
    transfers: Transfers, register: int, element: Element, operand: int | Address, mask: int = 0
) -> None:
    """Widen what a register or memory holds."""
    isa, emit, vector = transfers.isa, transfers.asm.emit, transfers.isa.vector(register)
    emit(_WIDEN[element.pointer.dtype][isa.wide], vector, operand, mask=mask, zero=True)
    if element.pointer.dtype == "bfloat16":
        shift = Code.EVEX_VPSLLD_ZMM_K1Z_ZMMM512B32_IMM8 if isa.wide else Code.VEX_VPSLLD_YMM_YMM_IMM8
        emit(shift, vector, vector, Imm(16))
    elif element.word:
        words = Code.EVEX_VPANDD_ZMM_K1Z_ZMM_ZMMM512B32 if isa.wide else Code.VEX_VPAND_YMM_YMM_YMMM256
        data = struct.pack("<I", 0xFFFF) * (1 if isa.wide else 8)
        transfers.asm.emit_constant(words, vector, vector, data=data, broadcast=isa.wide)


def _repeat(transfers: Transfers, register: int, element: Element) -> None:
    """Widen an element in a general register, and put it into all lanes: less is shuffled."""
    eax, emit = int(Register.EAX), transfers.asm.emit
    emit(Code.MOVSX_R32_RM8, eax, transfers.address(element))
    if element.word:
        emit(Code.MOVZX_R32_RM16, eax, int(Register.AX))
    emit(Code.EVEX_VPBROADCASTD_ZMM_K1Z_R32, transfers.isa.vector(register), eax)


def _collect(transfers: Transfers, register: int, element: Element) -> None:
    """Load lane by lane: there is no instruction that gathers, or masks, such narrow elements."""
    isa, emit, vector = transfers.isa, transfers.asm.emit, transfers.isa.vector
    forms = _FORMS[DTYPES[element.pointer.dtype]]
    # vpinsrw and vpinsrb reach the lower 128 bits alone.
    upper = transfers.registers.take() if element.lanes > forms.per_xmm else register
    for part, first in ((register, 0), (upper, forms.per_xmm)):
        if first < element.lanes:
            emit(transfers.forms.bit_xor, vector(part), vector(part), vector(part))
        for lane in range(first, min(element.lanes, first + forms.per_xmm)):
            xmm = isa.xmm(part)
            emit(forms.insert[isa.wide], xmm, xmm, transfers.address(_lane(element, lane)), Imm(lane - first))
    if upper != register:
        both = isa.ymm(register)
        emit(Code.EVEX_VINSERTI32X4_YMM_K1Z_YMM_XMMM128_IMM8, both, both, isa.xmm(upper), Imm(1))
        transfers.registers.give(upper)


def _lane(element: Element, lane: int) -> Element:
    disp = element.disp + lane * element.stride * DTYPES[element.pointer.dtype]
    return Element(element.pointer, disp, 0, 1)


def store(transfers: Transfers, register: int, element: Element) -> None:
    """Round the lanes of a vector and store them; the vector stays as it is."""
    isa, emit, dtype = transfers.isa, transfers.asm.emit, element.pointer.dtype
    part = transfers.registers.take()
    narrow, vector = _part(isa, part, dtype), isa.vector(register)
    if dtype == "float16":
        code = (
            Code.EVEX_VCVTPS2PH_YMMM256_K1Z_ZMM_IMM8_SAE if isa.wide else Code.VEX_VCVTPS2PH_XMMM128_YMM_IMM8
        )
        emit(code, narrow, vector, _TO_NEAREST_EVEN)
    elif dtype == "int8":
        _cut(transfers, part, register)
    elif isa.wide and "avx512_bf16" in isa.extras:
        emit(Code.EVEX_VCVTNEPS2BF16_YMM_K1Z_ZMMM512B32, narrow, vector)
    elif isa.wide:
        _round_wide(transfers, part, register)
    else:
        _round(transfers, part, register)
    _put(transfers, part, element)
    transfers.registers.give(part)


def _put(transfers: Transfers, part: int, element: Element) -> None:
    """Store elements that are narrow already."""
    isa, emit, dtype = transfers.isa, transfers.asm.emit, element.pointer.dtype
    forms, whole = _FORMS[DTYPES[dtype]], element.lanes == isa.lanes
    if element.stride == 1 and (isa.wide or whole):
        mask = 0 if whole else transfers.mask(element.lanes)
        emit(forms.store[isa.wide], transfers.address(element), _part(isa, part, dtype), mask=mask)
        return
    for lane in range(element.lanes):
        if lane == forms.per_xmm:
            emit(Code.EVEX_VEXTRACTI32X4_XMMM128_K1Z_YMM_IMM8, isa.xmm(part), isa.ymm(part), Imm(1))
        place = transfers.address(_lane(element, lane))
        emit(forms.extract[isa.wide], place, isa.xmm(part), Imm(lane % forms.per_xmm))


def _cut(transfers: Transfers, part: int, register: int) -> None:
    """Take the lowest 8 bits of each lane."""
    isa, emit = transfers.isa, transfers.asm.emit
    result, vector = isa.vector(part), isa.vector(register)
    if isa.wide:
        emit(Code.EVEX_VPMOVDB_XMMM128_K1Z_ZMM, isa.xmm(part), vector)
        return
    # The packs saturate: what is cut off must be clear before.
    transfers.asm.emit_constant(transfers.forms.broadcast, result, data=struct.pack("<I", 0xFF))
    emit(Code.VEX_VPAND_YMM_YMM_YMMM256, result, result, vector)
    # Each half is packed by itself: the first and the third quarter of the register belong together.
    emit(Code.VEX_VPACKUSDW_YMM_YMM_YMMM256, result, result, result)
    emit(Code.VEX_VPERMQ_YMM_YMMM256_IMM8, result, result, Imm(0b1000))
    emit(Code.VEX_VPACKUSWB_YMM_YMM_YMMM256, result, result, result)


_LEAST, _ALMOST_HALF, _QUIET = 1, 0x7FFF, 0x00400000


def _round_wide(transfers: Transfers, half: int, register: int) -> None:
    isa, emit = transfers.isa, transfers.asm.emit
    result, vector = isa.vector(half), isa.vector(register)

    def number(code: int, first: int, value: int, mask: int = 0) -> None:
        transfers.asm.emit_constant(
            code, result, first, data=struct.pack("<I", value), broadcast=True, mask=mask
        )

    emit(Code.EVEX_VPSRLD_ZMM_K1Z_ZMMM512B32_IMM8, result, vector, Imm(16))
    # Half less one, plus the lowest bit that stays: at a tie it carries where that bit is odd, and only
    # there.
    number(Code.EVEX_VPANDD_ZMM_K1Z_ZMM_ZMMM512B32, result, _LEAST)
    number(Code.EVEX_VPADDD_ZMM_K1Z_ZMM_ZMMM512B32, result, _ALMOST_HALF)
    emit(Code.EVEX_VPADDD_ZMM_K1Z_ZMM_ZMMM512B32, result, result, vector)
    # The carry could make an infinity of what is not a number, or turn its sign: there the vector's own bits
    # stay.
    emit(transfers.forms.compare, _K7, vector, vector, _UNORDERED)
    number(Code.EVEX_VPORD_ZMM_K1Z_ZMM_ZMMM512B32, vector, _QUIET, mask=_K7)
    emit(Code.EVEX_VPSRLD_ZMM_K1Z_ZMMM512B32_IMM8, result, result, Imm(16))
    emit(Code.EVEX_VPMOVDW_YMMM256_K1Z_ZMM, isa.ymm(half), result)


def _round(transfers: Transfers, half: int, register: int) -> None:
    """AVX2: the same, with a vector instead of a mask, and lanes packed in two steps."""
    isa, emit, take = transfers.isa, transfers.asm.emit, transfers.registers.take
    first, second = take(), take()
    result, vector, quiet, nan = (isa.vector(r) for r in (half, register, first, second))

    def number(code: int, into: int, value: int) -> None:
        transfers.asm.emit_constant(code, into, data=struct.pack("<I", value))

    emit(Code.VEX_VPSRLD_YMM_YMM_IMM8, result, vector, Imm(16))
    for code, value in (
        (Code.VEX_VPAND_YMM_YMM_YMMM256, _LEAST),
        (Code.VEX_VPADDD_YMM_YMM_YMMM256, _ALMOST_HALF),
    ):
        number(transfers.forms.broadcast, quiet, value)
        emit(code, result, result, quiet)
    emit(Code.VEX_VPADDD_YMM_YMM_YMMM256, result, result, vector)
    number(transfers.forms.broadcast, quiet, _QUIET)
    emit(Code.VEX_VPOR_YMM_YMM_YMMM256, quiet, quiet, vector)
    emit(transfers.forms.compare, nan, vector, vector, _UNORDERED)
    emit(transfers.forms.blend, result, result, quiet, nan)
    emit(Code.VEX_VPSRLD_YMM_YMM_IMM8, result, result, Imm(16))
    emit(Code.VEX_VPACKUSDW_YMM_YMM_YMMM256, result, result, result)
    emit(Code.VEX_VPERMQ_YMM_YMMM256_IMM8, result, result, Imm(0b1000))
    transfers.registers.give(first)
    transfers.registers.give(second)
