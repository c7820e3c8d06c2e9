"""Operations that scale or shift each channel of a value by a number of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planish.hlo.ir import ir
from planish.hlo.tiling.axes import integers, maker, shape_of

Value = ir.Value[Any]
SHIFTS = ("stablehlo.add", "stablehlo.subtract")
SCALE = "stablehlo.multiply"
_BROADCAST = "stablehlo.broadcast_in_dim"


@dataclass(frozen=True)
class ByChannel:
    """What an operation does to the channels of a value.

    Args:
        op: `add`, `subtract` (of the numbers, and never from them) or `multiply`.
        value: whose channels they are.
        numbers: C, one for each channel.
        axis: along which the channels lie.
    """

    op: ir.Operation
    value: Value
    numbers: Value
    axis: int

    @property
    def place(self) -> int:
        """Which operand the value is."""
        return 0 if self.op.operands[0] == self.value else 1


def by_channel(value: Value) -> ByChannel | None:
    """Tell what the operation that makes a value does to channels; None where it is another one."""
    op = maker(value)
    if op is None or op.name not in (*SHIFTS, SCALE):
        return None
    for place in (0,) if op.name == "stablehlo.subtract" else (0, 1):
        found = _numbers(op.operands[1 - place])
        if found is not None:
            return ByChannel(op, op.operands[place], *found)
    return None


def _numbers(wide: Value) -> tuple[Value, int] | None:
    """Find the numbers that are broadcast along all axes but one; JAX does so in two steps."""
    made = maker(wide)
    if made is None or made.name != _BROADCAST:
        return None
    given, to = made.operands[0], integers(made, "broadcast_dimensions")
    long = [axis for axis, size in enumerate(shape_of(given)) if size > 1]
    if len(shape_of(given)) == 1:
        long = [0]
    if len(long) != 1 or shape_of(given)[long[0]] != shape_of(wide)[to[long[0]]]:
        return None
    row = _row(given)
    return None if row is None else (row, to[long[0]])


def _row(given: Value) -> Value | None:
    """Give the numbers of one dimension of which a value is another shape, itself where it has one."""
    if len(shape_of(given)) == 1:
        return given
    made = maker(given)
    reshapes = made is not None and made.name in ("stablehlo.reshape", _BROADCAST)
    return made.operands[0] if made and reshapes and len(shape_of(made.operands[0])) == 1 else None
