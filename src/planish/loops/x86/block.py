"""Straight-line code: a list of element operations, its loads, and the registers for them.

Loads share registers; when these run out, the one whose next use is farthest goes (Belady), and it can
always be loaded again, so nothing is ever spilled (thesis 3.4.2). A value that is used once, or for which
no register is free, becomes a memory operand of its instruction where the processor has such a form.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from iced_x86 import Code, Register

from planish.core import TargetError
from planish.loops.mathlib import EXPANDED
from planish.loops.x86.assembler import Assembler, Imm, Mem
from planish.loops.x86.functions import expand
from planish.loops.x86.isa import Isa, forms
from planish.loops.x86.pointers import Pointer, Pointers


class Element(NamedTuple):
    """A vector in memory.

    Args:
        pointer: from where.
        disp: bytes from it.
        stride: elements between lanes: 1 is contiguous, 0 the same element in all lanes.
        lanes: how many lanes are there.
    """

    pointer: Pointer
    disp: int
    stride: int
    lanes: int


class Number(NamedTuple):
    """A constant in all lanes."""

    value: float


class Accumulator(NamedTuple):
    """A register that holds a value for longer than a block."""

    register: int


class Operation(NamedTuple):
    """An element-wise function of vectors."""

    function: str
    args: tuple[Vector, ...]


Vector = Element | Number | Accumulator | Operation


class Item(NamedTuple):
    """`target = value` or `target = reduce(target, value)`; `lanes` of the vector count."""

    target: Accumulator | Element
    reduce: str | None
    value: Vector
    lanes: int


LOOK_AHEAD = 6
_REDUCE = {"add": "ADD", "max": "MAX", "min": "MIN", "mul": "MUL"}
_INSTRUCTION = {**_REDUCE, "sub": "SUB", "div": "DIV"}


class Block:
    """Collects items and writes them as code.

    Args:
        asm: where the code goes.
        isa: instruction set and element type.
        pointers: where elements are.
        registers: the vector registers that it may use.
        masks: lane count to opmask register; grows as counts turn up.
    """

    def __init__(
        self, asm: Assembler, isa: Isa, pointers: Pointers, registers: list[int], masks: dict[int, int]
    ) -> None:
        self.asm = asm
        self.isa = isa
        self.forms = forms(isa)
        self.pointers = pointers
        self.masks = masks
        self.items: list[Item] = []
        self._free = list(reversed(registers))
        self._held: dict[Vector, int] = {}
        self._count: dict[Vector, int] = {}
        self._last: dict[Vector, int] = {}
        self._loaded: list[list[Vector]] = []
        self._number = 0
        self._pinned: set[int] = set()

    def flush(self) -> None:
        """Write the items; afterwards no loaded value is held."""
        items = self.items
        if not items:
            return
        loaded = [_loaded(item.value) for item in items]
        count, last = self._count, self._last
        for number, values in enumerate(loaded):
            for value in values:
                count[value] = count.get(value, 0) + 1
                last[value] = number
        self._loaded = loaded
        ahead = 0
        for number, item in enumerate(items):
            self._number = number
            while ahead < min(number + LOOK_AHEAD, len(items)) and self._load_early(loaded[ahead]):
                ahead += 1
            ahead = max(ahead, number + 1)
            self._write(item)
            for value in loaded[number]:
                if last[value] == number and value in self._held:
                    self._free.append(self._held.pop(value))
        items.clear()
        self._free.extend(self._held.values())
        self._held.clear()
        count.clear()
        last.clear()

    # Registers

    def give(self, register: int) -> None:
        """Give back a register that `take` gave."""
        self._free.append(register)

    def take(self) -> int:
        """Take a register; a loaded value that can be loaded again may lose its own."""
        if self._free:
            return self._free.pop()
        candidates = [v for v, r in self._held.items() if r not in self._pinned]
        if not candidates:
            raise TargetError("an expression needs more vector registers than the processor has")
        victim = max(candidates, key=self._next_use)
        return self._held.pop(victim)

    def _next_use(self, value: Vector) -> int:
        numbers = range(self._number, len(self._loaded))
        return next((n for n in numbers if value in self._loaded[n]), len(self._loaded))

    def _load_early(self, values: list[Vector]) -> bool:
        """Load what an item will need and others too; false when registers run out."""
        for value in values:
            if value not in self._held and self._count[value] > 1:
                if len(self._free) < 2:
                    return False
                self._hold(value)
        return True

    def _hold(self, leaf: Vector) -> int:
        """Load a value into a register that stays its own until its last use."""
        register = self._held.get(leaf)
        if register is None:
            register = self.take()
            if isinstance(leaf, Number):
                self.load_number(register, leaf.value)
            else:
                assert isinstance(leaf, Element)
                self.load(register, leaf)
            self._held[leaf] = register
        return register

    # Memory

    def mask(self, lanes: int) -> int:
        """The opmask register for the first `lanes` lanes; set before the function's first instruction."""
        if lanes not in self.masks:
            if len(self.masks) == 6:
                raise TargetError("a kernel has more than six different partial vectors")
            self.masks[lanes] = int(Register.K1) + len(self.masks)
        return self.masks[lanes]

    def address(self, element: Element, broadcast: bool = False) -> Mem:
        """The memory operand of an element; may use the scratch register.

        A displacement too long for its short form counts from a stride that a register holds.
        """
        base, disp = self.pointers.base(self.asm, element.pointer), element.disp
        single = element.stride == 0 or element.lanes == 1
        unit = (self.isa.itemsize if single else self.isa.bytes) if self.isa.wide else 1
        if self.pointers.strides and not -128 * unit <= disp < 128 * unit:
            for register, value in self.pointers.strides:
                for scale in (1, 2, 4, 8):
                    rest = disp - value * scale
                    if -128 * unit <= rest < 128 * unit and rest % unit == 0:
                        return Mem(base, rest, register, scale, broadcast)
        return Mem(base, disp, broadcast=broadcast)

    def _lane_mask(self, lanes: int) -> int:
        """AVX2: put a mask of the first lanes into a register that the caller gives back."""
        register = self.take()
        size = self.isa.itemsize
        data = (b"\xff" * size * lanes).ljust(32, b"\0")
        self.asm.emit_constant(self.forms.load, self.isa.vector(register), data=data)
        return register

    def load_number(self, register: int, value: float) -> None:
        """Put a constant into all lanes."""
        vector = self.isa.vector(register)
        if value == 0 and str(value) == "0.0":
            self.asm.emit(self.forms.bit_xor, vector, vector, vector)
        else:
            self.asm.emit_constant(self.forms.broadcast, vector, data=self.pack(value))

    def pack(self, value: float) -> bytes:
        """Give the bytes of one element."""
        return struct.pack("<f" if self.isa.itemsize == 4 else "<d", value)

    def load(self, register: int, element: Element) -> None:
        """Load a vector; lanes beyond the element's are zero, or like the others if its stride is 0."""
        vector = self.isa.vector(register)
        if element.stride == 0:
            self.asm.emit(self.forms.broadcast, vector, self.address(element))
        elif element.lanes == 1:
            self.asm.emit(self.forms.load_scalar, self.isa.xmm(register), self.address(element))
        elif element.stride > 1:
            self._gather(register, element)
        elif element.lanes == self.isa.lanes:
            self.asm.emit(self.forms.load, vector, self.address(element))
        elif self.isa.wide:
            self.asm.emit(
                self.forms.load, vector, self.address(element), mask=self.mask(element.lanes), zero=True
            )
        else:
            mask = self._lane_mask(element.lanes)
            self.asm.emit(self.forms.masked_load, vector, self.isa.vector(mask), self.address(element))
            self.give(mask)

    def _indices(self, stride: int) -> int:
        """Load the offsets of strided lanes into a register that the caller gives back."""
        register = self.take()
        lanes = self.isa.lanes
        data = struct.pack(f"<{lanes}i", *(stride * i for i in range(lanes)))
        if len(data) == 16:
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
        self.asm.emit(self.forms.bit_xor, vector, vector, vector)
        if self.isa.wide:
            self._set_k7(element.lanes)
            self.asm.emit(self.forms.gather, vector, memory, mask=int(Register.K7))
        else:
            mask = self._lane_mask(element.lanes)
            self.asm.emit(self.forms.gather, vector, memory, self.isa.vector(mask))
            self.give(mask)
        self.give(indices)

    def _set_k7(self, lanes: int) -> None:
        k7 = int(Register.K7)
        if lanes == self.isa.lanes:
            self.asm.emit(Code.VEX_KXNORW_KR_KR_KR, k7, k7, k7)
        else:
            source = self.mask(lanes)
            self.asm.emit(Code.VEX_KMOVW_KR_KM16, k7, source)

    def store(self, register: int, element: Element) -> None:
        """Store the lanes of a vector."""
        vector = self.isa.vector(register)
        if element.lanes == 1:
            self.asm.emit(self.forms.store_scalar, self.address(element), self.isa.xmm(register))
        elif element.stride != 1:
            self._scatter(register, element)
        elif element.lanes == self.isa.lanes:
            self.asm.emit(self.forms.store, self.address(element), vector)
        elif self.isa.wide:
            self.asm.emit(self.forms.store, self.address(element), vector, mask=self.mask(element.lanes))
        else:
            mask = self._lane_mask(element.lanes)
            self.asm.emit(self.forms.masked_store, self.address(element), self.isa.vector(mask), vector)
            self.give(mask)

    def _scatter(self, register: int, element: Element) -> None:
        if self.isa.wide:
            indices = self._indices(element.stride)
            base = self.pointers.base(self.asm, element.pointer)
            memory = Mem(base, element.disp, self._index_register(indices), self.isa.itemsize)
            self._set_k7(element.lanes)
            self.asm.emit(self.forms.scatter, memory, self.isa.vector(register), mask=int(Register.K7))
            self.give(indices)
            return
        part = self.take()
        per_half = 16 // self.isa.itemsize
        for lane in range(element.lanes):
            if lane % per_half == 0:
                half = Imm(lane // per_half)
                self.asm.emit(self.forms.upper_quarter, self.isa.xmm(part), self.isa.ymm(register), half)
            place = element._replace(disp=element.disp + lane * element.stride * self.isa.itemsize)
            self.asm.emit(self.forms.store_scalar, self.address(place), self.isa.xmm(part))
            if lane + 1 < element.lanes:
                rotate = Imm(0b00111001 if per_half == 4 else 0b01)
                self.asm.emit(self.forms.permute, self.isa.xmm(part), self.isa.xmm(part), rotate)
        self.give(part)

    # Arithmetic

    def _write(self, item: Item) -> None:
        if isinstance(item.target, Accumulator):
            self._accumulate(item, item.target.register)
            return
        register = self._evaluate(item.value)
        self._pinned.add(register)
        if item.reduce:
            old = self.take()
            self.load(old, item.target._replace(stride=item.target.stride or 1))
            vector = self.isa.vector
            code = self.forms.arithmetic[_REDUCE[item.reduce]]
            self.asm.emit(code, vector(old), vector(old), vector(register))
            self.store(old, item.target)
            self.give(old)
        else:
            self.store(register, item.target)
        self._pinned.discard(register)
        self._release(item.value, register)

    def _accumulate(self, item: Item, target: int) -> None:
        value = item.value
        partial = item.lanes < self.isa.lanes and item.reduce is not None
        mask = self.mask(item.lanes) if partial and self.isa.wide else 0
        vector = self.isa.vector
        blended = partial and not self.isa.wide
        multiply = item.reduce == "add" and isinstance(value, Operation) and value.function == "mul"
        if multiply and not blended:
            assert isinstance(value, Operation)
            self._multiply_add(target, value.args[0], value.args[1], mask)
            return
        register = self._evaluate(value)
        if item.reduce:
            code = self.forms.arithmetic[_REDUCE[item.reduce]]
            operand = self._neutral(register, item, target) if blended else register
            self.asm.emit(code, vector(target), vector(target), vector(operand), mask=mask)
            if operand != register:
                self.give(operand)
        elif register != target:
            self.asm.emit(self.forms.copy, vector(target), vector(register))
        self._release(value, register)

    def _neutral(self, register: int, item: Item, target: int) -> int:
        """AVX2: make the lanes beyond the vector's end harmless by repeating the accumulator's own."""
        if item.reduce in ("max", "min"):
            neutral = target
        else:
            self._pinned.add(register)
            neutral = self.take()
            self.load_number(neutral, 0.0 if item.reduce == "add" else 1.0)
        self._pinned.update((register, neutral))
        mask = self._lane_mask(item.lanes)
        result = self.take()
        self._pinned.difference_update((register, neutral))
        v = self.isa.vector
        self.asm.emit(self.forms.blend, v(result), v(neutral), v(register), v(mask))
        self.give(mask)
        if neutral != target:
            self.give(neutral)
        return result

    def _multiply_add(self, target: int, a: Vector, b: Vector, mask: int) -> None:
        vector = self.isa.vector
        if self._better_in_memory(a) and not self._better_in_memory(b):
            a, b = b, a
        left = self._evaluate(a)
        self._pinned.add(left)
        if self._better_in_memory(b):
            operand = self._memory(b)
            self.asm.emit(self.forms.fma, vector(target), vector(left), operand, mask=mask)
        else:
            right = self._evaluate(b)
            self.asm.emit(self.forms.fma, vector(target), vector(left), vector(right), mask=mask)
            if right != left:
                self._release(b, right)
        self._pinned.discard(left)
        self._release(a, left)

    def _better_in_memory(self, value: Vector) -> bool:
        """Whether a value should be a memory operand instead of taking a register."""
        if not isinstance(value, Element) or value in self._held:
            return False
        whole = value.stride == 1 and value.lanes == self.isa.lanes
        possible = whole or (value.stride == 0 and self.isa.wide)
        return possible and (self._count[value] == 1 or not self._free)

    def _memory(self, value: Vector) -> Mem:
        assert isinstance(value, Element)
        return self.address(value, broadcast=value.stride == 0)

    def _evaluate(self, value: Vector) -> int:
        """Bring a value into a register; `_release` gives it back if nothing else holds it."""
        match value:
            case Accumulator(register):
                return register
            case Operation(function, args):
                return self._operate(function, args)
            case _:
                return self._hold(value)

    def _release(self, value: Vector, register: int) -> None:
        if isinstance(value, Operation) and register not in self._free:
            self.give(register)

    def _operate(self, function: str, args: tuple[Vector, ...]) -> int:
        registers: list[int] = []
        added: list[int] = []
        for arg in args:
            register = self._evaluate(arg)
            registers.append(register)
            if register not in self._pinned:
                self._pinned.add(register)
                added.append(register)
        if function in EXPANDED:
            result = expand(self, function, registers[0])
        else:
            result = self.take()
            self._instruct(function, result, registers)
        self._pinned.difference_update(added)
        for arg, register in zip(args, registers, strict=True):
            if register != result:
                self._release(arg, register)
        return result

    def _instruct(self, function: str, result: int, args: list[int]) -> None:
        v = [self.isa.vector(r) for r in args]
        dst = self.isa.vector(result)
        emit = self.asm.emit
        if function in _INSTRUCTION:
            emit(self.forms.arithmetic[_INSTRUCTION[function]], dst, v[0], v[1])
        elif function == "sqrt":
            emit(self.forms.sqrt, dst, v[0])
        elif function in ("neg", "abs"):
            sign = b"\0" * (self.isa.itemsize - 1) + b"\x80"
            keep = b"\xff" * (self.isa.itemsize - 1) + b"\x7f"
            data, code = (sign, self.forms.bit_xor) if function == "neg" else (keep, self.forms.bit_and)
            emit_constant = self.asm.emit_constant
            emit_constant(self.forms.broadcast, dst, data=data)
            emit(code, dst, dst, v[0])
        else:
            raise TargetError(f"no machine code for function '{function}'")


def _loaded(value: Vector) -> list[Vector]:
    """The values that come from memory, in order of evaluation."""
    if isinstance(value, Operation):
        return [leaf for arg in value.args for leaf in _loaded(arg)]
    return [] if isinstance(value, Accumulator) else [value]
