"""Edit `Fold`: what a product is multiplied by goes into its weights, and what is added twice is added once.

It changes no answer, to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planish.core import ScheduleError
from planish.levels.hlo.edits import exclusions
from planish.levels.hlo.edits.draft import Draft, Writer
from planish.levels.hlo.edits.drop_channels import ties
from planish.levels.hlo.edits.edit import GroupRewrite
from planish.levels.hlo.edits.hoist import same_in_each_step
from planish.levels.hlo.ir.mlir import PRODUCTS, Value, integers, ir, maker, shape_of, type_of, uid_of


@dataclass(frozen=True)
class Fold(GroupRewrite):
    """Multiply weights instead of what is computed with them, as the scale of a batch normalisation.

    A scale passes what is added to each channel before it, which it scales too; a shift goes into the shift
    before it. The weights have fewer numbers, and in a loop of tiles they are multiplied once; in a loop of
    the module they are scaled only where `Hoist` may move that out of it. The answer stays, to rounding. The
    paper has nothing like it.

    ::

        y = (x @ w + broadcast(b)) * broadcast(s)   -- Fold(("y",)) -->   y = x @ (w * s) + broadcast(b * s)
        z = (x @ w + broadcast(b)) - broadcast(t)   -- Fold(("z",)) -->   z = x @ w + broadcast(b - t)

    Args:
        ops: multiplications of a product or a convolution, or of its sum with a bias, by a number for each of
            its outputs; and additions to such a sum. They are folded in this order.
    """

    exact = True

    def apply(self, draft: Draft) -> None:
        if not self.ops:
            raise ScheduleError("no operation is named", "Name multiplications, or additions to a sum.")
        for number, uid in enumerate(self.ops):
            exclusions.target(draft, uid)
            found = _folding(draft, uid)
            if found is None:
                raise ScheduleError(f"operation '{uid}' does not scale what a product gives, or shift a sum")
            _fold(draft, uid, f"{self.mark}.{number}", found)

    @classmethod
    def match(cls, draft: Draft) -> tuple[str, ...]:
        """Find what may be folded, of what the results need, in the order of the module."""
        live = draft.live()
        return tuple(
            uid
            for order in draft.mirror.blocks.values()
            for uid in order
            if uid in live and exclusions.is_target(draft, uid) and _folding(draft, uid) is not None
        )


@dataclass(frozen=True)
class _Folding:
    """A scale or shift, what it goes into, and the shifts and scales between, the nearest first.

    Args:
        last: what is folded.
        between: what a scale passes; of a shift the shift that it goes into, alone.
        product: whose weights a scale goes into; empty for a shift.
        axis: of the weights, along which they are multiplied.
    """

    last: ByChannel
    between: Sequence[ByChannel]
    product: str = ""
    axis: int = 0


def _folding(draft: Draft, uid: str) -> _Folding | None:
    facts = draft.mirror.facts
    if facts[uid].name not in (*SHIFTS, SCALE):
        return None
    last = by_channel(draft.op(uid).results[0])
    if last is None:
        return None
    return _scaling(draft, uid, last) if facts[uid].name == SCALE else _shifting(draft, uid, last)


def _shifting(draft: Draft, uid: str, last: ByChannel) -> _Folding | None:
    before = by_channel(last.value)
    if before is None or before.op.name == SCALE or before.axis != last.axis:
        return None
    facts = draft.mirror.facts
    # The sum of both would be computed in each step of a loop that reads one from outside.
    return _Folding(last, [before]) if facts[uid_of(before.op)].block == facts[uid].block else None


def _scaling(draft: Draft, uid: str, last: ByChannel) -> _Folding | None:
    facts, between, value = draft.mirror.facts, list[ByChannel](), last.value
    block = facts[uid].block
    while (step := by_channel(value)) is not None and step.axis == last.axis:
        # Another user would need it unscaled, and it would be computed twice.
        if facts[uid_of(step.op)].block != block or sum(1 for _ in value.uses) > 1:
            return None
        between.append(step)
        value = step.value
    product = maker(value)
    if product is None or product.name not in PRODUCTS or type_of(value).element != _element(last):
        return None
    axis, weights = _axis_of_weights(product, last.axis), product.operands[1]
    # The copy of a product that stands before a loop would be computed in each of its steps; and weights have
    # more numbers than a step gives: in a loop it must be possible to scale them before it.
    steady = all(same_in_each_step(draft, each, block) for each in (last.numbers, weights))
    if axis is None or type_of(weights).element != _element(last) or not steady:
        return None
    name = uid_of(product)
    return _Folding(last, between, name, axis) if facts[name].block == block else None


def _element(step: ByChannel) -> str:
    return type_of(step.numbers).element


def _axis_of_weights(product: ir.Operation, axis: int) -> int | None:
    """Find the axis of weights that becomes an axis of the product: only along it may they be multiplied."""
    tie = next((tie for tie in ties(product) if (product.results[0], axis) in tie), ())
    axes = [position for value, position in tie if value == product.operands[1]]
    return axes[0] if len(axes) == 1 else None


def _fold(draft: Draft, uid: str, mark: str, found: _Folding) -> None:
    write = Writer(draft, uid, mark)
    result = _scaled(draft, uid, mark, write, found) if found.product else _shifted(write, found)
    draft.replace(uid, [result])


def _scaled(draft: Draft, uid: str, mark: str, write: Writer, found: _Folding) -> Value:
    scale, weights = found.last.numbers, draft.op(found.product).operands[1]
    type_ = type_of(weights)
    wide = write("broadcast_in_dim", type_, [scale], {"broadcast_dimensions": [found.axis]})
    scaled = write("multiply", type_, [weights, wide])
    # A copy, for the product itself may have other users, which need it unscaled.
    draft.copy(found.product, f"{mark}.p", uid)
    draft.set_operand(f"{mark}.p", 1, scaled)
    value: Value = draft.op(f"{mark}.p").results[0]
    for step in reversed(found.between):
        shifts = step.op.name != SCALE
        numbers = write("multiply", type_of(scale), [step.numbers, scale]) if shifts else step.numbers
        value = _again(write, step, value, numbers)
    return value


def _shifted(write: Writer, found: _Folding) -> Value:
    (before,), last = found.between, found.last
    name = "add" if before.op.name == last.op.name else "subtract"
    numbers = write(name, type_of(last.numbers), [before.numbers, last.numbers])
    return _again(write, before, before.value, numbers)


def _again(write: Writer, step: ByChannel, value: Value, numbers: Value) -> Value:
    """Do to another value, with other numbers, what was done to one."""
    type_ = type_of(value)
    wide = write("broadcast_in_dim", type_, [numbers], {"broadcast_dimensions": [step.axis]})
    operands = [value, wide] if step.position == 0 else [wide, value]
    return write(step.op.name.removeprefix("stablehlo."), type_, operands)


SHIFTS = ("stablehlo.add", "stablehlo.subtract")
SCALE = "stablehlo.multiply"
_BROADCAST = "stablehlo.broadcast_in_dim"


@dataclass(frozen=True)
class ByChannel:
    """A scale or shift of each channel of a value by a number of its own.

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
    def position(self) -> int:
        """The position of the value among the operands."""
        return 0 if self.op.operands[0] == self.value else 1


def by_channel(value: Value) -> ByChannel | None:
    """Read the scale or shift of channels that makes a value; None where it is made otherwise."""
    op = maker(value)
    if op is None or op.name not in (*SHIFTS, SCALE):
        return None
    for position in (0,) if op.name == "stablehlo.subtract" else (0, 1):
        found = _numbers(op.operands[1 - position])
        if found is not None:
            return ByChannel(op, op.operands[position], *found)
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
    """Return the numbers of one dimension of which a value is another shape, itself where it has one."""
    if len(shape_of(given)) == 1:
        return given
    made = maker(given)
    reshapes = made is not None and made.name in ("stablehlo.reshape", _BROADCAST)
    return made.operands[0] if made and reshapes and len(shape_of(made.operands[0])) == 1 else None
