"""Vector values of straight-line code, and the allocation of registers to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from planish.core import TargetError
from planish.levels.loops.codegen.x86.pointers import Pointer

# Values


@dataclass(eq=False, slots=True)
class Element:
    """A vector in memory; each is one object in a block, which keeps track of its register.

    Args:
        pointer: from where.
        disp: bytes from it.
        stride: elements between lanes: 1 is contiguous, 0 the same element in all lanes.
        lanes: how many lanes are there.
        folds: whether it can be a memory operand of any instruction.
        word: of int8, whether the upper half of each lane is zero, whatever the sign: what remains is the
            number in 16 bits, which multiplies pairs of words with nothing beside it.
        register: where it is held; -1 for none.
        uses: how many operands of the block's items it is.
        last: the last item that uses it.
        stored: the last item that writes it; until then, no load of it may come early.
    """

    pointer: Pointer
    disp: int
    stride: int
    lanes: int
    folds: bool = False
    word: bool = False
    register: int = -1
    uses: int = 0
    last: int = -1
    stored: int = -1


@dataclass(eq=False, slots=True)
class Number:
    """A constant in all lanes; each is one object in a block, as an `Element` is."""

    value: float
    register: int = -1
    uses: int = 0
    last: int = -1
    folds: ClassVar[bool] = False
    stored: ClassVar[int] = -1


class Accumulator(NamedTuple):
    """A register that holds a value for longer than a block."""

    register: int


class Operation(NamedTuple):
    """An element-wise function of vectors."""

    function: str
    args: tuple[Vector, ...]


class Gathered(NamedTuple):
    """An element whose distance from another, in strides, is a value that is the same in all lanes.

    Args:
        element: where it would be for the index 0; it is never loaded itself.
        row: the value.
        stride: bytes.
        extent: indices are brought below it.
        integer_bytes: of the integer in memory that the value is, where all else is computed in
            another type; 0 for a value of that type.
    """

    element: Element
    row: Vector
    stride: int
    extent: int
    integer_bytes: int = 0


Loaded = Element | Number
Vector = Element | Number | Accumulator | Operation | Gathered


class Item(NamedTuple):
    """`target = value` or `target = reduce(target, value)`; `lanes` of the vector count."""

    target: Accumulator | Element
    reduce: str | None
    value: Vector
    lanes: int


Product = tuple[int, int, int]
"""(form, register, lanes) of `register += left * right`: the item that most code is made of."""


def loads_of(value: Vector) -> list[Loaded]:
    """Return the values that come from memory, in order of evaluation."""
    if isinstance(value, Operation):
        return [load for arg in value.args for load in loads_of(arg)]
    if isinstance(value, Gathered):
        # An integer goes through a general register, and no vector is loaded for it.
        return [] if value.integer_bytes else loads_of(value.row)
    return [] if isinstance(value, Accumulator) else [value]


# Registers

SPARE = 3
"""Registers that are free beside one that keeps a constant."""


class NoRegisterError(TargetError):
    """All registers are in use by what cannot be loaded again."""


class Registers:
    """Allocator of registers; when they run out, a loaded value loses its own (Belady).

    Args:
        count: how many registers may be used, from the first one.
        loads: the loaded values of each item; the one whose next use is farthest goes first.

    Attributes:
        now: the item that is being written.
        constants: bytes that may be wanted again to the register that has them, until it is needed.
    """

    def __init__(self, count: int, loads: Sequence[tuple[Loaded, ...]]) -> None:
        self.free = list(range(count - 1, -1, -1))
        self.pinned: set[int] = set()
        self.now = 0
        self.constants: dict[bytes, int] = {}
        self._held: dict[int, Loaded] = {}
        self._loads = loads

    def take(self) -> int:
        """Allocate a register; raises NoRegisterError where all are in use by what cannot be loaded again."""
        if self.free:
            return self.free.pop()
        # Constants go first: they may be wanted again, the held values will be.
        if self.constants:
            return self.constants.popitem()[1]
        candidates = [load for register, load in self._held.items() if register not in self.pinned]
        if not candidates:
            raise NoRegisterError("an expression needs more vector registers than the processor has")
        self.let_go(max(candidates, key=self._next_use))
        return self.free.pop()

    def release(self, register: int) -> None:
        """Release a register that `take` returned."""
        self.free.append(register)

    def keep(self, register: int, data: bytes) -> None:
        """Release a register that has a constant, which stays where there are registers enough."""
        if len(self.free) >= SPARE:
            self.constants[data] = register
        else:
            self.free.append(register)

    def hold(self, load: Loaded, register: int) -> None:
        """Note that a taken register holds a loaded value."""
        load.register = register
        self._held[register] = load

    def let_go(self, load: Loaded) -> None:
        """Free the register of a loaded value."""
        del self._held[load.register]
        self.free.append(load.register)
        load.register = -1

    def let_all_go(self) -> None:
        """Free the registers of all loaded values and constants."""
        self.free.extend(self.constants.values())
        self.constants.clear()
        for load in list(self._held.values()):
            self.let_go(load)

    def _next_use(self, load: Loaded) -> int:
        return next(n for n in range(self.now, load.last + 1) if load in self._loads[n])
