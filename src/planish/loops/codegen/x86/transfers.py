"""Loads and stores of vectors: contiguous, broadcast, strided, and parts of vectors."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from math import copysign

from iced_x86 import Code, Register

from planish.core import TargetError
from planish.loops.codegen.x86 import alternate, narrow
from planish.loops.codegen.x86.assembler import Assembler
from planish.loops.codegen.x86.encoding import Address, Imm, Mem
from planish.loops.codegen.x86.isa import Isa
from planish.loops.codegen.x86.pointers import Pointer, Pointers
from planish.loops.codegen.x86.registers import Registers
from planish.loops.codegen.x86.vectors import Element
from planish.loops.lang.whole import nearest_whole


@lru_cache(maxsize=256)
def _offsets(stride: int, lanes: int) -> bytes:
    """Give how many elements each lane lies behind the first, as 32-bit numbers."""
    return struct.pack(f"<{lanes}i", *range(0, stride * lanes, stride))


_NONE = int(Register.NONE)


class Transfers:
    """Moves vectors between registers and memory, in one region.

    Args:
        asm: where the code goes.
        isa: instruction set and element type.
        pointers: where elements are.
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
        # With EVEX a displacement of one byte counts in units of what is accessed (disp8*N).
        self._far = 128 * isa.bytes if isa.wide else 128
        self._far_of_one = 128 * isa.itemsize if isa.wide else 128
        self._near: dict[tuple[int, int], tuple[int, int, int]] = {}

    def mask(self, lanes: int) -> int:
        """The opmask register for the first `lanes` lanes; set before the function's first instruction."""
        if lanes not in self.masks:
            # k1 to k6: k0 stands for no mask, and k7 is overwritten by gathers and comparisons.
            if len(self.masks) == 6:
                raise TargetError("a kernel has more than six different partial vectors")
            self.masks[lanes] = int(Register.K1) + len(self.masks)
        return self.masks[lanes]

    def address(self, element: Element, broadcast: bool = False) -> Address:
        """The memory operand of an element; may use the scratch register.

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
        """AVX2: put a mask of the first lanes into a register that the caller gives back."""
        register = self.registers.take()
        size = self.isa.itemsize
        data = (b"\xff" * size * lanes).ljust(32, b"\0")
        self.asm.emit_constant(self.forms.load, self.isa.vector(register), data=data)
        return register

    def load_number(self, register: int, value: float) -> None:
        """Put a constant into all lanes."""
        self.load_numbers((register,), value)

    def load_numbers(self, registers: Sequence[int], value: float) -> None:
        """Put a constant into all lanes of registers."""
        vectors = [self._first + register for register in registers]
        if value == 0 and copysign(1, value) > 0:  # -0.0 is no cleared register
            clear = self.forms.bit_xor
            self.asm.extend([(clear, vector, vector, vector) for vector in vectors])
            return
        data = self.pack(value)
        for vector in vectors:
            self.asm.emit_constant(self.forms.broadcast, vector, data=data)

    def pack(self, value: float) -> bytes:
        """Give the bytes of one element."""
        if self.isa.whole:
            return struct.pack("<i", nearest_whole(value))
        return struct.pack("<f" if self.isa.itemsize == 4 else "<d", value)

    def load(self, register: int, element: Element) -> None:
        """Load a vector; lanes beyond the element's are zero, or like the others if its stride is 0."""
        if element.pointer.dtype != self.isa.dtype:
            narrow.load(self, register, element)
            return
        vector, stride, forms = self._first + register, element.stride, self.forms
        if stride == 0 or (stride == 1 and element.lanes == self._lanes):
            self.asm.append((forms.load if stride else forms.broadcast, vector, self.address(element)))
            return
        emit = self.asm.emit
        if element.lanes == 1:
            emit(forms.load_scalar, self.isa.xmm(register), self.address(element))
        elif stride == 2 and self.isa.wide and alternate.vector_of(element.lanes, self.isa.itemsize):
            alternate.load_alternate(self, register, element)
        elif stride > 1:
            self._gather(register, element)
        elif self.isa.wide:
            emit(forms.load, vector, self.address(element), mask=self.mask(element.lanes), zero=True)
        else:
            mask = self.lane_mask(element.lanes)
            emit(forms.masked_load, vector, self.isa.vector(mask), self.address(element))
            self.registers.give(mask)

    def _indices(self, stride: int) -> int:
        """Load the offsets of strided lanes into a register that the caller gives back."""
        register = self.registers.take()
        lanes = self.isa.lanes
        data = _offsets(stride, lanes)
        if len(data) == 16:
            # Indices are of 32 bits: for elements of 64 they take half a register.
            self.asm.emit_constant(Code.VEX_VMOVUPS_XMM_XMMM128, self.isa.xmm(register), data=data)
        elif len(data) == 32 and self.isa.wide:
            code = Code.EVEX_VMOVUPS_YMM_K1Z_YMMM256
            self.asm.emit_constant(code, self.isa.ymm(register), data=data)
        else:
            self.asm.emit_constant(self.forms.load, self.isa.vector(register), data=data)
        return register

    def _index_register(self, register: int) -> int:
        if self.isa.itemsize == 4:
            return self.isa.vector(register)
        return self.isa.ymm(register) if self.isa.wide else self.isa.xmm(register)

    def _gather(self, register: int, element: Element) -> None:
        indices = self._indices(element.stride)
        base = self.pointers.base(self.asm, element.pointer)
        memory = Mem(base, element.disp, self._index_register(indices), self.isa.itemsize)
        vector = self.isa.vector(register)
        # A gather merges: the register is cleared first, which also ends the wait for its old value.
        self.asm.emit(self.forms.bit_xor, vector, vector, vector)
        if self.isa.wide:
            self._set_k7(element.lanes)  # a gather clears its mask
            self.asm.emit(self.forms.gather, vector, memory, mask=int(Register.K7))
        else:
            mask = self.lane_mask(element.lanes)
            self.asm.emit(self.forms.gather, vector, memory, self.isa.vector(mask))
            self.registers.give(mask)
        self.registers.give(indices)

    def _set_k7(self, lanes: int) -> None:
        k7 = int(Register.K7)
        if lanes == self.isa.lanes:
            self.asm.emit(Code.VEX_KXNORW_KR_KR_KR, k7, k7, k7)
        else:
            source = self.mask(lanes)
            self.asm.emit(Code.VEX_KMOVW_KR_KM16, k7, source)

    def store(self, register: int, element: Element) -> None:
        """Store the lanes of a vector."""
        if element.pointer.dtype != self.isa.dtype:
            narrow.store(self, register, element)
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
            emit(forms.masked_store, self.address(element), self.isa.vector(mask), vector)
            self.registers.give(mask)

    def _store_form(self, pointer: Pointer) -> int:
        return self.forms.store_past if pointer.past else self.forms.store

    def store_full(self, registers: Sequence[int], pointer: Pointer, places: Sequence[int]) -> None:
        """Store whole vectors, given how many bytes behind a pointer in a register each belongs."""
        base, form, far = pointer.register, self._store_form(pointer), self._far
        for register, disp in zip(registers, places, strict=True):
            rest, offset, scale = disp, _NONE, 1
            if self._strides and not -far <= disp < far:
                rest, offset, scale = self._shortened(disp, far)
            self.asm.append((form, (base, rest, offset, scale, False), self._first + register))

    def _scatter(self, register: int, element: Element) -> None:
        if self.isa.wide:
            indices = self._indices(element.stride)
            base = self.pointers.base(self.asm, element.pointer)
            memory = Mem(base, element.disp, self._index_register(indices), self.isa.itemsize)
            self._set_k7(element.lanes)
            self.asm.emit(self.forms.scatter, memory, self.isa.vector(register), mask=int(Register.K7))
            self.registers.give(indices)
            return
        # AVX2 has no scatter: lane by lane.
        part = self.registers.take()
        per_half = 16 // self.isa.itemsize
        for lane in range(element.lanes):
            if lane % per_half == 0:
                half = Imm(lane // per_half)
                self.asm.emit(self.forms.upper_quarter, self.isa.xmm(part), self.isa.ymm(register), half)
            disp = element.disp + lane * element.stride * self.isa.itemsize
            place = Element(element.pointer, disp, 0, 1)
            self.asm.emit(self.forms.store_scalar, self.address(place), self.isa.xmm(part))
            if lane + 1 < element.lanes:
                rotate = Imm(0b00111001 if per_half == 4 else 0b01)
                self.asm.emit(self.forms.permute, self.isa.xmm(part), self.isa.xmm(part), rotate)
        self.registers.give(part)
