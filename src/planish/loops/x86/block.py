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


class Element:
    """A vector in memory; each is one object in a block, which keeps track of its register.

    Args:
        pointer: from where.
        disp: bytes from it.
        stride: elements between lanes: 1 is contiguous, 0 the same element in all lanes.
        lanes: how many lanes are there.
    """

    __slots__ = ("disp", "lanes", "last", "pointer", "register", "stride", "uses")

    def __init__(self, pointer: Pointer, disp: int, stride: int, lanes: int) -> None:
        self.pointer = pointer
        self.disp = disp
        self.stride = stride
        self.lanes = lanes
        self.register = -1
        self.uses = 0
        self.last = -1


class Number:
    """A constant in all lanes; each is one object in a block."""

    __slots__ = ("last", "register", "uses", "value")

    def __init__(self, value: float) -> None:
        self.value = value
        self.register = -1
        self.uses = 0
        self.last = -1


class Accumulator(NamedTuple):
    """A register that holds a value for longer than a block."""

    register: int


class Operation(NamedTuple):
    """An element-wise function of vectors."""

    function: str
    args: tuple[Vector, ...]


Loaded = Element | Number
Vector = Element | Number | Accumulator | Operation


class Item(NamedTuple):
    """`target = value` or `target = reduce(target, value)`; `lanes` of the vector count.

    `loads` are the values of it that come from memory, in order of evaluation.
    """

    target: Accumulator | Element
    reduce: str | None
    value: Vector
    lanes: int
    loads: tuple[Loaded, ...]


class MultiplyAdd(NamedTuple):
    """`register += left * right`: the item that most code is made of."""

    register: int
    loads: tuple[Loaded, Loaded]
    lanes: int


LOOK_AHEAD = 6
REDUCE = {"add": "ADD", "max": "MAX", "min": "MIN", "mul": "MUL"}
_INSTRUCTION = {**REDUCE, "sub": "SUB", "div": "DIV"}


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
        self._items: list[Item | MultiplyAdd] = []
        self._elements: dict[tuple[int, int, int], dict[int, Element]] = {}
        self._numbers: dict[float, Number] = {}
        self._free = list(reversed(registers))
        self._held: dict[int, Loaded] = {}
        self._pinned: set[int] = set()
        self._number = 0
        self._first_vector = isa.vector(0)

    def elements(self, pointer: Pointer, stride: int, lanes: int) -> dict[int, Element]:
        """The block's elements of one kind, by displacement; `element` fills it."""
        return self._elements.setdefault((id(pointer), stride, lanes), {})

    def number(self, value: float) -> Number:
        """The block's object for a constant."""
        return self._numbers.setdefault(value, Number(value))

    def add(self, target: Accumulator | Element, reduce: str | None, value: Vector, lanes: int) -> None:
        """Append an item."""
        loads = tuple(_loaded(value))
        for load in loads:
            load.uses += 1
            load.last = len(self._items)
        self._items.append(Item(target, reduce, value, lanes, loads))

    def add_product(self, register: int, left: Loaded, right: Loaded, lanes: int) -> None:
        """Append `register += left * right`."""
        items = self._items
        left.uses += 1
        right.uses += 1
        left.last = right.last = len(items)
        items.append(MultiplyAdd(register, (left, right), lanes))

    def flush(self) -> None:
        """Write the items; afterwards no loaded value is held."""
        items = self._items
        if not items:
            return
        ahead, count = 0, len(items)
        for number, item in enumerate(items):
            self._number = number
            while ahead < count and ahead < number + LOOK_AHEAD and self._load_early(items[ahead].loads):
                ahead += 1
            if ahead <= number:
                ahead = number + 1
            if isinstance(item, MultiplyAdd):
                self._multiply_add(item)
            else:
                self._write(item)
            for load in item.loads:
                if load.last == number and load.register >= 0:
                    self._let_go(load)
        items.clear()
        for load in list(self._held.values()):
            self._let_go(load)
        for table in self._elements.values():
            table.clear()
        self._numbers.clear()

    # Registers

    def _let_go(self, load: Loaded) -> None:
        del self._held[load.register]
        self._free.append(load.register)
        load.register = -1

    def give(self, register: int) -> None:
        """Give back a register that `take` gave."""
        self._free.append(register)

    def take(self) -> int:
        """Take a register; a loaded value that can be loaded again may lose its own."""
        if self._free:
            return self._free.pop()
        candidates = [load for register, load in self._held.items() if register not in self._pinned]
        if not candidates:
            raise TargetError("an expression needs more vector registers than the processor has")
        self._let_go(max(candidates, key=self._next_use))
        return self._free.pop()

    def _next_use(self, load: Loaded) -> int:
        numbers = range(self._number, load.last + 1)
        return next(n for n in numbers if load in self._items[n].loads)

    def _load_early(self, loads: tuple[Loaded, ...]) -> bool:
        """Load what an item will need and others too; false when registers run out."""
        for load in loads:
            if load.register < 0 and load.uses > 1:
                if len(self._free) < 2:
                    return False
                self._hold(load)
        return True

    def _hold(self, load: Loaded) -> int:
        """Load a value into a register that stays its own until its last use."""
        register = load.register
        if register < 0:
            register = self.take()
            if isinstance(load, Number):
                self.load_number(register, load.value)
            else:
                self.load(register, load)
            load.register = register
            self._held[register] = load
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
            disp = element.disp + lane * element.stride * self.isa.itemsize
            place = Element(element.pointer, disp, 0, 1)
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
        self.store(register, item.target)
        self._pinned.discard(register)
        self._release(item.value, register)

    def _accumulate(self, item: Item, target: int) -> None:
        value = item.value
        partial = item.lanes < self.isa.lanes and item.reduce is not None
        mask = self.mask(item.lanes) if partial and self.isa.wide else 0
        vector = self.isa.vector
        blended = partial and not self.isa.wide
        register = self._evaluate(value)
        if item.reduce:
            code = self.forms.arithmetic[REDUCE[item.reduce]]
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

    def _multiply_add(self, item: MultiplyAdd) -> None:
        asm, base = self.asm, self._first_vector
        left, right = item.loads
        mask = self.mask(item.lanes) if item.lanes < self.isa.lanes else 0
        if self._better_in_memory(left) and not self._better_in_memory(right):
            left, right = right, left
        held = left.register if left.register >= 0 else self._hold(left)
        if self._better_in_memory(right):
            assert isinstance(right, Element)
            operand = self.address(right, broadcast=right.stride == 0)
            asm.emit(self.forms.fma, base + item.register, base + held, operand, mask=mask)
            return
        self._pinned.add(held)
        other = right.register if right.register >= 0 else self._hold(right)
        self._pinned.discard(held)
        asm.emit(self.forms.fma, base + item.register, base + held, base + other, mask=mask)

    def _better_in_memory(self, load: Loaded) -> bool:
        """Whether a value should be a memory operand instead of taking a register."""
        if load.register >= 0 or not isinstance(load, Element) or (load.uses > 1 and self._free):
            return False
        if load.stride == 0:
            return self.isa.wide
        return load.stride == 1 and load.lanes == self.isa.lanes

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


def _loaded(value: Vector) -> list[Loaded]:
    """The values that come from memory, in order of evaluation."""
    if isinstance(value, Operation):
        return [load for arg in value.args for load in _loaded(arg)]
    return [] if isinstance(value, Accumulator) else [value]
