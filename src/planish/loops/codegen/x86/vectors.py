"""The values that straight-line code works on, and the operations on them."""

from __future__ import annotations

from typing import NamedTuple

from planish.loops.codegen.x86.pointers import Pointer


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
    """

    __slots__ = ("disp", "folds", "lanes", "last", "pointer", "register", "stride", "uses", "word")

    def __init__(
        self,
        pointer: Pointer,
        disp: int,
        stride: int,
        lanes: int,
        folds: bool = False,
        word: bool = False,
    ) -> None:
        self.pointer = pointer
        self.disp = disp
        self.stride = stride
        self.lanes = lanes
        self.folds = folds
        self.word = word
        self.register = -1
        self.uses = 0
        self.last = -1


class Number:
    """A constant in all lanes; each is one object in a block."""

    __slots__ = ("last", "register", "uses", "value")
    folds = False

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


class Gathered(NamedTuple):
    """An element so many strides behind another as a value says, which is the same in all lanes.

    Args:
        element: where it would be for the index 0; it is never loaded itself.
        place: the value.
        stride: bytes.
        extent: indices are brought below it.
        whole: the bytes of the whole number in memory that the value is, where all else is computed in
            another type; 0 for a value of that type.
    """

    element: Element
    place: Vector
    stride: int
    extent: int
    whole: int = 0


Loaded = Element | Number
Vector = Element | Number | Accumulator | Operation | Gathered


class Item(NamedTuple):
    """`target = value` or `target = reduce(target, value)`; `lanes` of the vector count."""

    target: Accumulator | Element
    reduce: str | None
    value: Vector
    lanes: int


Product = tuple[int, int]
"""(register, lanes) of `register += left * right`: the item that most code is made of."""


def loads_of(value: Vector) -> list[Loaded]:
    """The values that come from memory, in order of evaluation."""
    if isinstance(value, Operation):
        return [load for arg in value.args for load in loads_of(arg)]
    if isinstance(value, Gathered):
        # A whole number goes through a general register, and no vector is loaded for it.
        return [] if value.whole else loads_of(value.place)
    return [] if isinstance(value, Accumulator) else [value]
