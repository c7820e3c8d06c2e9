"""Loads and stores of vectors that take several instructions, and the reduction of lanes.

A load of every second element, as in a convolution of stride 2, is two contiguous loads and one permutation.
The first begins at the first element and the second ends at the last one: nothing beyond the array is read,
and neither needs a mask.

Elements narrower than the arithmetic are widened as they are loaded, and rounded as they are stored. float16
has instructions for both. bfloat16 is the upper half of a float32: it is shifted into position, and rounded
to the nearest, ties to even, by AVX512_BF16's instruction where the processor has it (which takes subnormal
numbers for zero), else by adding what carries into the upper half. NaN stays NaN, and is quiet. Of integers
the lowest bits are stored; those of qint8 are converted to floats. A gathered element's index is clamped to
the table, so that no element outside it is read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from math import copysign
from typing import NamedTuple

from iced_x86 import Code, Register

from planish.core import TargetError
from planish.levels.loops.codegen.x86.assembler import Address, Assembler, Imm, Mem
from planish.levels.loops.codegen.x86.isa import K7, MINMAX, UNORDERED, Isa, minmax
from planish.levels.loops.codegen.x86.pointers import RSP, SCRATCH, Pointer, Pointers
from planish.levels.loops.codegen.x86.vectors import Element, Gathered, Registers
from planish.levels.loops.lang.element_types import nearest_integer
from planish.levels.loops.lang.program import DTYPES, PACKED, QINT8, QINT32

# Loads of every second element


def stride_2_vector(lanes: int, itemsize: int) -> int:
    """Return the bytes of the smallest vector with a number of lanes; 0 if it is less than half full."""
    size = next(size for size in (16, 32, 64) if lanes * itemsize <= size)
    # The lanes span 2 * lanes - 1 elements: a vector that is less than half full would reach beyond them.
    return size if 2 * lanes * itemsize > size else 0


@lru_cache(maxsize=64)
def _stride_2_parts(lanes: int, itemsize: int) -> tuple[int, int, int, bytes]:
    """Return the forms of the load and the permutation, elements of a load, and each lane's of both loads."""
    size = stride_2_vector(lanes, itemsize)
    name, p, within = (
        {64: "ZMM", 32: "YMM", 16: "XMM"}[size],
        "PS" if itemsize == 4 else "PD",
        size // itemsize,
    )
    load = int(getattr(Code, f"EVEX_VMOVU{p}_{name}_K1Z_{name}M{8 * size}"))
    permute = int(getattr(Code, f"EVEX_VPERMT2{p}_{name}_K1Z_{name}_{name}M{8 * size}B{8 * itemsize}"))
    behind = 2 * lanes - 1 - within
    found = [2 * i if 2 * i < within else within + 2 * i - behind for i in range(lanes)]
    data = struct.pack(f"<{within}{'i' if itemsize == 4 else 'q'}", *found, *[0] * (within - lanes))
    return load, permute, within, data


def _load_stride_2(transfers: Transfers, register: int, element: Element) -> None:
    """Load a vector whose lanes are two elements apart, with AVX-512; the lanes beyond are zero."""
    isa, asm, registers = transfers.isa, transfers.asm, transfers.registers
    lanes, pointer = element.lanes, element.pointer
    load, permute, within, data = _stride_2_parts(lanes, isa.itemsize)
    to = {64: isa.vector, 32: isa.ymm, 16: isa.xmm}[within * isa.itemsize]
    asm.emit(load, to(register), transfers.address(Element(pointer, element.disp, 1, lanes)))
    lanes_at = registers.constants.pop(data, None)
    if lanes_at is None:
        lanes_at = registers.take()
        asm.emit_constant(load, to(lanes_at), data=data)
    disp = element.disp + (2 * lanes - 1 - within) * isa.itemsize
    second = transfers.address(Element(pointer, disp, 1, lanes))
    mask = 0 if lanes == within else transfers.mask(lanes)
    # VPERMT2 overwrites the first load; VPERMI2 would overwrite the lane numbers, which the next one needs.
    asm.emit(permute, to(register), to(lanes_at), second, mask=mask, zero=bool(mask))
    registers.keep(lanes_at, data)


# Narrow elements

_TO_NEAREST_EVEN = Imm(0)
_EAX = int(Register.EAX)


class _Forms(NamedTuple):
    """The instructions for elements of one size, for AVX2 and for AVX-512.

    Args:
        per_xmm: elements in 128 bits.
        broadcast: one element from memory to all lanes of a narrow vector.
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
_WIDEN[QINT8] = _WIDEN["int8"]
_TO_FLOATS = Code.VEX_VCVTDQ2PS_YMM_YMMM256, Code.EVEX_VCVTDQ2PS_ZMM_K1Z_ZMMM512B32_ER
_TO_INTEGERS = Code.VEX_VCVTPS2DQ_YMM_YMMM256, Code.EVEX_VCVTPS2DQ_ZMM_K1Z_ZMMM512B32_ER


def _load_narrow(transfers: Transfers, register: int, element: Element) -> None:
    """Load a vector and widen it; lanes beyond the element's are as `Transfers.load` says."""
    isa, emit, dtype, address = transfers.isa, transfers.asm.emit, element.pointer.dtype, transfers.address
    vector, mask = isa.vector(register), 0
    operand: int | Address = _part(isa, register, dtype)
    if element.stride == 0 and dtype == "int8" and isa.wide:
        # By a general register: less is shuffled.
        emit(Code.MOVSX_R32_RM8, _EAX, address(element))
        if element.word:
            emit(Code.MOVZX_R32_RM16, _EAX, int(Register.AX))
        emit(Code.EVEX_VPBROADCASTD_ZMM_K1Z_R32, vector, _EAX)
        return
    if element.stride == 0:
        emit(_FORMS[DTYPES[dtype]].broadcast[isa.wide], operand, address(element))
    elif element.stride == 1 and (element.lanes == isa.lanes or isa.wide):
        operand = address(element)
        mask = 0 if element.lanes == isa.lanes else transfers.mask(element.lanes)
    else:
        _collect(transfers, register, element)
    emit(_WIDEN[dtype][isa.wide], vector, operand, mask=mask, zero=True)
    if dtype == "bfloat16":
        shift = Code.EVEX_VPSLLD_ZMM_K1Z_ZMMM512B32_IMM8 if isa.wide else Code.VEX_VPSLLD_YMM_YMM_IMM8
        emit(shift, vector, vector, Imm(16))
    elif dtype == QINT8:
        emit(_TO_FLOATS[isa.wide], vector, vector)
    elif element.word:
        words = Code.EVEX_VPANDD_ZMM_K1Z_ZMM_ZMMM512B32 if isa.wide else Code.VEX_VPAND_YMM_YMM_YMMM256
        data = struct.pack("<I", 0xFFFF) * (1 if isa.wide else 8)
        transfers.asm.emit_constant(words, vector, vector, data=data, broadcast=isa.wide)


def _part(isa: Isa, register: int, dtype: str) -> int:
    """Return the part of a vector register that holds as many narrow elements."""
    return isa.ymm(register) if isa.lanes * DTYPES[dtype] > 16 else isa.xmm(register)


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
        transfers.registers.release(upper)


def _lane(element: Element, lane: int) -> Element:
    disp = element.disp + lane * element.stride * DTYPES[element.pointer.dtype]
    return Element(element.pointer, disp, 0, 1)


def _store_narrow(transfers: Transfers, register: int, element: Element) -> None:
    """Round the lanes of a vector and store them; the vector stays as it is."""
    if element.pointer.dtype != QINT8:
        _store_as(transfers, register, element, element.pointer.dtype)
        return
    isa, integers = transfers.isa, transfers.registers.take()
    transfers.asm.emit(_TO_INTEGERS[isa.wide], isa.vector(integers), isa.vector(register))
    _store_as(transfers, integers, element, "int8")
    transfers.registers.release(integers)


def _store_as(transfers: Transfers, register: int, element: Element, dtype: str) -> None:
    """Round the lanes of a vector to a type and store them."""
    isa, emit = transfers.isa, transfers.asm.emit
    part = transfers.registers.take()
    narrow, vector = _part(isa, part, dtype), isa.vector(register)
    if dtype == "float16":
        convert = Code.EVEX_VCVTPS2PH_YMMM256_K1Z_ZMM_IMM8_SAE, Code.VEX_VCVTPS2PH_XMMM128_YMM_IMM8
        emit(convert[not isa.wide], narrow, vector, _TO_NEAREST_EVEN)
    elif dtype == "int8" and isa.wide:
        emit(Code.EVEX_VPMOVDB_XMMM128_K1Z_ZMM, narrow, vector)
    elif dtype == "int8":
        result = isa.vector(part)
        # The packs saturate: what is cut off must be clear before.
        transfers.asm.emit_constant(transfers.forms.broadcast, result, data=struct.pack("<I", 0xFF))
        emit(Code.VEX_VPAND_YMM_YMM_YMMM256, result, result, vector)
        _pack_words(transfers, result)
        emit(Code.VEX_VPACKUSWB_YMM_YMM_YMMM256, result, result, result)
    elif isa.wide and "avx512_bf16" in isa.extras:
        emit(Code.EVEX_VCVTNEPS2BF16_YMM_K1Z_ZMMM512B32, narrow, vector)
    else:
        (_round_wide if isa.wide else _round)(transfers, part, vector)
    forms, whole = _FORMS[DTYPES[dtype]], element.lanes == isa.lanes
    if element.stride == 1 and (isa.wide or whole):
        mask = 0 if whole else transfers.mask(element.lanes)
        emit(forms.store[isa.wide], transfers.address(element), narrow, mask=mask)
    else:
        for lane in range(element.lanes):
            if lane == forms.per_xmm:
                emit(Code.EVEX_VEXTRACTI32X4_XMMM128_K1Z_YMM_IMM8, isa.xmm(part), isa.ymm(part), Imm(1))
            target = transfers.address(_lane(element, lane))
            emit(forms.extract[isa.wide], target, isa.xmm(part), Imm(lane % forms.per_xmm))
    transfers.registers.release(part)


def _pack_words(transfers: Transfers, result: int) -> None:
    """AVX2: pack the lower halves of lanes."""
    # Each half is packed by itself: the first and the third quarter of the register belong together.
    transfers.asm.emit(Code.VEX_VPACKUSDW_YMM_YMM_YMMM256, result, result, result)
    transfers.asm.emit(Code.VEX_VPERMQ_YMM_YMMM256_IMM8, result, result, Imm(0b1000))


_LEAST, _ALMOST_HALF, _QUIET = (struct.pack("<I", bits) for bits in (1, 0x7FFF, 0x00400000))


def _round_wide(transfers: Transfers, half: int, vector: int) -> None:
    """Round to bfloat16."""
    emit, constant = transfers.asm.emit, partial(transfers.asm.emit_constant, broadcast=True)
    result = transfers.isa.vector(half)
    emit(Code.EVEX_VPSRLD_ZMM_K1Z_ZMMM512B32_IMM8, result, vector, Imm(16))
    # Half less one, plus the lowest bit that stays: at a tie it carries where that bit is odd, and only
    # there.
    constant(Code.EVEX_VPANDD_ZMM_K1Z_ZMM_ZMMM512B32, result, result, data=_LEAST)
    constant(Code.EVEX_VPADDD_ZMM_K1Z_ZMM_ZMMM512B32, result, result, data=_ALMOST_HALF)
    emit(Code.EVEX_VPADDD_ZMM_K1Z_ZMM_ZMMM512B32, result, result, vector)
    # The carry could make an infinity of what is not a number, or turn its sign: there the vector's own bits
    # stay.
    emit(transfers.forms.compare, K7, vector, vector, UNORDERED)
    constant(Code.EVEX_VPORD_ZMM_K1Z_ZMM_ZMMM512B32, result, vector, data=_QUIET, mask=K7)
    emit(Code.EVEX_VPSRLD_ZMM_K1Z_ZMMM512B32_IMM8, result, result, Imm(16))
    emit(Code.EVEX_VPMOVDW_YMMM256_K1Z_ZMM, transfers.isa.ymm(half), result)


def _round(transfers: Transfers, half: int, vector: int) -> None:
    """AVX2: the same, with a vector instead of a mask, and lanes packed in two steps."""
    isa, emit, constant = transfers.isa, transfers.asm.emit, transfers.asm.emit_constant
    first, second = transfers.registers.take(), transfers.registers.take()
    result, quiet, nan, broadcast = *map(isa.vector, (half, first, second)), transfers.forms.broadcast
    emit(Code.VEX_VPSRLD_YMM_YMM_IMM8, result, vector, Imm(16))
    constant(broadcast, quiet, data=_LEAST)
    emit(Code.VEX_VPAND_YMM_YMM_YMMM256, result, result, quiet)
    constant(broadcast, quiet, data=_ALMOST_HALF)
    emit(Code.VEX_VPADDD_YMM_YMM_YMMM256, result, result, quiet)
    emit(Code.VEX_VPADDD_YMM_YMM_YMMM256, result, result, vector)
    constant(broadcast, quiet, data=_QUIET)
    emit(Code.VEX_VPOR_YMM_YMM_YMMM256, quiet, quiet, vector)
    emit(transfers.forms.compare, nan, vector, vector, UNORDERED)
    emit(transfers.forms.blend, result, result, quiet, nan)
    emit(Code.VEX_VPSRLD_YMM_YMM_IMM8, result, result, Imm(16))
    _pack_words(transfers, result)
    transfers.registers.release(first)
    transfers.registers.release(second)


# Transfers


def moves_bits(isa: Isa, dtype: str) -> bool:
    """Return whether elements of a type are moved as they are."""
    return dtype in _plain(isa.dtype)


@cache
def _plain(arithmetic: str) -> frozenset[str]:
    return frozenset({arithmetic, *((QINT32, *PACKED) if arithmetic == "float32" else ())})


@lru_cache(maxsize=256)
def _offsets(stride: int, lanes: int) -> bytes:
    """Return how many elements each lane lies after the first, as 32-bit numbers."""
    return struct.pack(f"<{lanes}i", *range(0, stride * lanes, stride))


_NONE = int(Register.NONE)


class Transfers:
    """Moves vectors between registers and memory, in one region.

    Args:
        registers: for indices and masks.
        masks: lane count to opmask register; grows as counts turn up.
    """

    def __init__(
        self, asm: Assembler, isa: Isa, pointers: Pointers, registers: Registers, masks: dict[int, int]
    ) -> None:
        self.asm = asm
        self.isa = isa
        self.forms = isa.forms
        self.pointers = pointers
        self._strides = pointers.strides
        self.masks = masks
        self.registers = registers
        self._first, self._lanes = isa.vector(0), isa.lanes
        self._plain = _plain(isa.dtype)
        # With EVEX a displacement of one byte counts in units of what is accessed (disp8*N).
        self._far = 128 * isa.bytes if isa.wide else 128
        self._far_of_one = 128 * isa.itemsize if isa.wide else 128
        self._near: dict[tuple[int, int], tuple[int, int, int]] = {}

    def mask(self, lanes: int) -> int:
        """Return the opmask register for the first `lanes` lanes, which the function's head sets."""
        if lanes not in self.masks:
            # k1 to k6: k0 stands for no mask, and k7 is overwritten by gathers and comparisons.
            if len(self.masks) == 6:
                raise TargetError("a kernel has more than six different partial vectors")
            self.masks[lanes] = int(Register.K1) + len(self.masks)
        return self.masks[lanes]

    def address(self, element: Element, broadcast: bool = False) -> Address:
        """Return the memory operand of an element; may use the scratch register.

        A displacement too long for its short form counts from a stride that a register holds.
        """
        pointer, disp = element.pointer, element.disp
        base = pointer.register or self.pointers.base(self.asm, pointer)
        far = self._far if element.stride and element.lanes > 1 else self._far_of_one
        if -far <= disp < far or not self._strides:
            return base, disp, _NONE, 1, broadcast
        near = self._near.get((disp, far))
        if near is None:
            near = self._near[disp, far] = self._shortened(disp, far)
        return base, *near, broadcast

    def _shortened(self, disp: int, far: int) -> tuple[int, int, int]:
        """Split a displacement into a short one, a register with a stride, and its scale, if it can be."""
        unit = far // 128
        for register, value in self._strides:
            for scale in (1, 2, 4, 8):
                rest = disp - value * scale
                if -far <= rest < far and rest % unit == 0:  # disp8*N holds multiples only
                    return rest, register, scale
        return disp, _NONE, 1

    def lane_mask(self, lanes: int) -> int:
        """AVX2: put a mask of the first lanes into a register that the caller releases."""
        register = self.registers.take()
        data = (b"\xff" * self.isa.itemsize * lanes).ljust(32, b"\0")
        self.asm.emit_constant(self.forms.load, self._first + register, data=data)
        return register

    def load_number(self, register: int, value: float) -> None:
        """Put a constant into all lanes."""
        self.load_numbers((register,), value)

    def load_numbers(self, registers: Sequence[int], value: float) -> None:
        """Put a constant into all lanes of registers."""
        vectors = [self._first + register for register in registers]
        if value == 0 and copysign(1, value) > 0:  # -0.0 is not a cleared register
            clear = self.forms.bit_xor
            self.asm.extend([(clear, vector, vector, vector) for vector in vectors])
            return
        if self.isa.is_integer:
            data = struct.pack("<i", nearest_integer(value))
        else:
            data = struct.pack("<f" if self.isa.itemsize == 4 else "<d", value)
        for vector in vectors:
            self.asm.emit_constant(self.forms.broadcast, vector, data=data)

    def load(self, register: int, element: Element) -> None:
        """Load a vector; lanes beyond the element's are zero, or like the others if its stride is 0."""
        if element.pointer.dtype not in self._plain:
            _load_narrow(self, register, element)
            return
        vector, stride, forms = self._first + register, element.stride, self.forms
        if stride == 0 or (stride == 1 and element.lanes == self._lanes):
            self.asm.append((forms.load if stride else forms.broadcast, vector, self.address(element)))
            return
        emit = self.asm.emit
        if element.lanes == 1:
            emit(forms.load_scalar, self.isa.xmm(register), self.address(element))
        elif stride == 2 and self.isa.wide and stride_2_vector(element.lanes, self.isa.itemsize):
            _load_stride_2(self, register, element)
        elif stride > 1:
            self._gather(register, element)
        elif self.isa.wide:
            emit(forms.load, vector, self.address(element), mask=self.mask(element.lanes), zero=True)
        else:
            mask = self.lane_mask(element.lanes)
            emit(forms.masked_load, vector, self._first + mask, self.address(element))
            self.registers.release(mask)

    def _spread(self, element: Element) -> tuple[int, Mem]:
        """Return the memory operand of strided lanes, and the register of their offsets, to be given back."""
        isa, register = self.isa, self.registers.take()
        data, to = _offsets(element.stride, isa.lanes), isa.vector
        # Offsets are of 32 bits: for elements of 64 they take half a register.
        if len(data) == 16:
            code, to = Code.VEX_VMOVUPS_XMM_XMMM128, isa.xmm
        elif len(data) == 32 and isa.wide:
            code, to = Code.EVEX_VMOVUPS_YMM_K1Z_YMMM256, isa.ymm
        else:
            code = self.forms.load
        self.asm.emit_constant(code, to(register), data=data)
        base = self.pointers.base(self.asm, element.pointer)
        return register, Mem(base, element.disp, to(register), isa.itemsize)

    def _gather(self, register: int, element: Element) -> None:
        offsets, memory = self._spread(element)
        vector = self._first + register
        # A gather merges: the register is cleared first, which also ends the wait for its old value.
        self.asm.emit(self.forms.bit_xor, vector, vector, vector)
        if self.isa.wide:
            self._set_k7(element.lanes)  # a gather clears its mask
            self.asm.emit(self.forms.gather, vector, memory, mask=K7)
        else:
            mask = self.lane_mask(element.lanes)
            self.asm.emit(self.forms.gather, vector, memory, self._first + mask)
            self.registers.release(mask)
        self.registers.release(offsets)

    def _set_k7(self, lanes: int) -> None:
        if lanes == self._lanes:
            self.asm.emit(Code.VEX_KXNORW_KR_KR_KR, K7, K7, K7)
        else:
            self.asm.emit(Code.VEX_KMOVW_KR_KM16, K7, self.mask(lanes))

    def store(self, register: int, element: Element) -> None:
        """Store the lanes of a vector."""
        if element.pointer.dtype not in self._plain:
            _store_narrow(self, register, element)
            return
        vector = self._first + register
        if element.stride == 1 and element.lanes == self._lanes:
            self.asm.append((self._store_form(element.pointer), self.address(element), vector))
            return
        forms, emit = self.forms, self.asm.emit
        if element.lanes == 1:
            emit(forms.store_scalar, self.address(element), self.isa.xmm(register))
        elif element.stride != 1:
            self._scatter(register, element)
        elif self.isa.wide:
            emit(forms.store, self.address(element), vector, mask=self.mask(element.lanes))
        else:
            mask = self.lane_mask(element.lanes)
            emit(forms.masked_store, self.address(element), self._first + mask, vector)
            self.registers.release(mask)

    def _store_form(self, pointer: Pointer) -> int:
        return self.forms.store_nontemporal if pointer.nontemporal else self.forms.store

    def store_full(self, registers: Sequence[int], pointer: Pointer, displacements: Sequence[int]) -> None:
        """Store whole vectors, given how many bytes after a pointer in a register each belongs."""
        base, form, far = pointer.register, self._store_form(pointer), self._far
        for register, disp in zip(registers, displacements, strict=True):
            rest, offset, scale = disp, _NONE, 1
            if self._strides and not -far <= disp < far:
                rest, offset, scale = self._shortened(disp, far)
            self.asm.append((form, (base, rest, offset, scale, False), self._first + register))

    def _scatter(self, register: int, element: Element) -> None:
        isa, emit = self.isa, self.asm.emit
        if isa.wide:
            offsets, memory = self._spread(element)
            self._set_k7(element.lanes)
            emit(self.forms.scatter, memory, self._first + register, mask=K7)
            self.registers.release(offsets)
            return
        # AVX2 has no scatter: lane by lane.
        number = self.registers.take()
        part, per_half = isa.xmm(number), 16 // isa.itemsize
        rotate = Imm(0b00111001 if per_half == 4 else 0b01)
        for lane in range(element.lanes):
            if lane % per_half == 0:
                emit(self.forms.upper_quarter, part, isa.ymm(register), Imm(lane // per_half))
            emit(self.forms.store_scalar, self.address(_lane(element, lane)), part)
            if lane + 1 < element.lanes:
                emit(self.forms.permute, part, part, rotate)
        self.registers.release(number)


# Gathers


def gather_at(transfers: Transfers, result: int, index: int, value: Gathered) -> None:
    """Load what a value gathers.

    Args:
        result: the register that it goes to.
        index: that of the index, the same in all lanes; it stays as it is.
        value: what is gathered.

    Raises:
        TargetError: the table's rows are too long.
    """
    isa, forms, emit = transfers.isa, transfers.isa.forms, transfers.asm.emit
    number = isa.vector(result)
    # Of two operands of which one is not a number, the processor takes the second.
    transfers.load_number(result, 0.0)
    emit(forms.functions["max"], number, isa.vector(index), number)
    last = transfers.registers.take()
    transfers.load_number(last, float(value.extent - 1))
    emit(forms.functions["min"], number, number, isa.vector(last))
    transfers.registers.release(last)
    emit(forms.to_integer, SCRATCH, isa.xmm(result))
    _load_row(transfers, result, value)


def gather_at_integer(transfers: Transfers, result: int, value: Gathered) -> None:
    """Load what a value gathers by an integer in memory; see `gather_at`."""
    constant, row = transfers.asm.emit_constant, value.row
    assert isinstance(row, Element)
    load = Code.MOV_R64_RM64 if value.integer_bytes == 8 else Code.MOVSXD_R64_RM32
    transfers.asm.emit(load, SCRATCH, transfers.address(row))
    # Both from the pool: a conditional move takes no immediate, and a comparison none of 64 bits.
    for move, end in ((Code.CMOVL_R64_RM64, 0), (Code.CMOVG_R64_RM64, value.extent - 1)):
        constant(Code.CMP_R64_RM64, SCRATCH, data=struct.pack("<q", end))
        constant(move, SCRATCH, data=struct.pack("<q", end))
    _load_row(transfers, result, value)


def _load_row(transfers: Transfers, result: int, value: Gathered) -> None:
    """Load the element whose distance from another, in strides, is in the scratch register."""
    element, pointer, emit = value.element, value.element.pointer, transfers.asm.emit
    # The multiplication takes an immediate of 32 bits with a sign.
    if value.stride >= 1 << 31:
        raise TargetError(f"rows of {value.stride:,} bytes are too long to be looked up")
    emit(Code.IMUL_R64_RM64_IMM32, SCRATCH, SCRATCH, Imm(value.stride))
    emit(Code.ADD_R64_RM64, SCRATCH, pointer.register or Mem(RSP, pointer.slot))
    here = Pointer(pointer.buffer, pointer.dtype, {}, 0, SCRATCH)
    transfers.load(result, Element(here, element.disp, element.stride, element.lanes))


# Reduction of lanes


def reduce_lanes(asm: Assembler, isa: Isa, register: int, function: str) -> None:
    """Reduce all lanes into the lowest one; registers 0 and 1 are overwritten.

    Args:
        register: holds the vector; not 0 or 1.
        function: "add", "mul", "max" or "min".
    """
    forms, xmm, ymm = isa.forms, isa.xmm, isa.ymm

    def combine(part: Callable[[int], int], codes: Mapping[str, int]) -> None:
        if function in MINMAX:
            minmax(asm, isa, function, register, register, 0, spare=1)
        else:
            asm.emit(codes[function], part(register), part(register), part(0))

    if isa.wide:
        asm.emit(forms.upper_half, ymm(0), isa.vector(register), Imm(1))
        combine(ymm, forms.functions_ymm)
    asm.emit(forms.upper_quarter, xmm(0), ymm(register), Imm(1))
    combine(xmm, forms.functions_xmm)
    # The pairs are exchanged, then the neighbors.
    for permutation in (0b01001110, 0b10110001) if isa.itemsize == 4 else (0b01,):
        asm.emit(forms.permute, xmm(0), xmm(register), Imm(permutation))
        combine(xmm, forms.functions_xmm)
