"""Edit `Fold`: what a product is multiplied by goes into its weights, and what is added twice is added once.

It changes no answer, to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planish.core import ScheduleError
from planish.levels.hlo.edits.drop_channels import channel_ties
from planish.levels.hlo.edits.edit import GroupRewrite
from planish.levels.hlo.edits.editable import EditableModule, OpBuilder
from planish.levels.hlo.edits.hoist import same_in_each_step
from planish.levels.hlo.ir.mlir import PRODUCTS, Value, integers, ir, maker, shape_of, type_of, uid_of


@dataclass(frozen=True)
class Fold(GroupRewrite):
    """Multiply weights instead of what is computed with them, as the scale of a batch normalization.

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

    def rewrite(self, module: EditableModule, uid: str, id_prefix: str) -> None:
        found = _folding(module, uid)
        if found is None:
            raise ScheduleError(f"operation '{uid}' does not scale what a product gives, or shift a sum")
        build = OpBuilder(module, uid, id_prefix)
        value = _scaled(module, uid, id_prefix, build, found) if found.product else _shifted(build, found)
        module.replace(uid, [value])

    @classmethod
    def match(cls, module: EditableModule) -> tuple[str, ...]:
        """Find what may be folded, of what the results need, in the order of the module."""
        live = module.live()
        return tuple(
            uid
            for order in module.blocks.values()
            for uid in order
            if uid in live and module.is_target(uid) and _folding(module, uid)
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


def _folding(module: EditableModule, uid: str) -> _Folding | None:
    infos = module.infos
    if infos[uid].name not in (*SHIFTS, SCALE):
        return None
    last = by_channel(module.op(uid).results[0])
    if last is None:
        return None
    return _scaling(module, uid, last) if infos[uid].name == SCALE else _shifting(module, uid, last)


def _shifting(module: EditableModule, uid: str, last: ByChannel) -> _Folding | None:
    before = by_channel(last.value)
    if before is None or before.op.name == SCALE or before.axis != last.axis:
        return None
    infos = module.infos
    # The sum of both would be computed in each step of a loop that reads one from outside.
    return _Folding(last, [before]) if infos[uid_of(before.op)].block == infos[uid].block else None


def _scaling(module: EditableModule, uid: str, last: ByChannel) -> _Folding | None:
    infos, between, value = module.infos, list[ByChannel](), last.value
    block = infos[uid].block
    while (step := by_channel(value)) is not None and step.axis == last.axis:
        # Another user would need it unscaled, and it would be computed twice.
        if infos[uid_of(step.op)].block != block or sum(1 for _ in value.uses) > 1:
            return None
        between.append(step)
        value = step.value
    product = maker(value)
    if product is None or product.name not in PRODUCTS or type_of(value).element != _element(last):
        return None
    axis, weights = _axis_of_weights(product, last.axis), product.operands[1]
    # The copy of a product that stands before a loop would be computed in each of its steps; and weights have
    # more numbers than a step gives: in a loop it must be possible to scale them before it.
    steady = all(same_in_each_step(module, each, block) for each in (last.numbers, weights))
    if axis is None or type_of(weights).element != _element(last) or not steady:
        return None
    name = uid_of(product)
    return _Folding(last, between, name, axis) if infos[name].block == block else None


def _element(step: ByChannel) -> str:
    return type_of(step.numbers).element


def _axis_of_weights(product: ir.Operation, axis: int) -> int | None:
    """Find the axis of weights that becomes an axis of the product: only along it may they be multiplied."""
    tie = next((tie for tie in channel_ties(product) if (product.results[0], axis) in tie), ())
    axes = [position for value, position in tie if value == product.operands[1]]
    return axes[0] if len(axes) == 1 else None


def _scaled(module: EditableModule, uid: str, id_prefix: str, build: OpBuilder, found: _Folding) -> Value:
    scale, weights = found.last.numbers, module.op(found.product).operands[1]
    type_ = type_of(weights)
    wide = build("broadcast_in_dim", type_, [scale], {"broadcast_dimensions": [found.axis]})
    scaled = build("multiply", type_, [weights, wide])
    # A copy, for the product itself may have other users, which need it unscaled.
    module.copy(found.product, f"{id_prefix}.p", uid)
    module.set_operand(f"{id_prefix}.p", 1, scaled)
    value: Value = module.op(f"{id_prefix}.p").results[0]
    for step in reversed(found.between):
        shifts = step.op.name != SCALE
        numbers = build("multiply", type_of(scale), [step.numbers, scale]) if shifts else step.numbers
        value = _again(build, step, value, numbers)
    return value


def _shifted(build: OpBuilder, found: _Folding) -> Value:
    (before,), last = found.between, found.last
    name = "add" if before.op.name == last.op.name else "subtract"
    numbers = build(name, type_of(last.numbers), [before.numbers, last.numbers])
    return _again(build, before, before.value, numbers)


def _again(build: OpBuilder, step: ByChannel, value: Value, numbers: Value) -> Value:
    """Do to another value, with other numbers, what was done to one."""
    type_ = type_of(value)
    wide = build("broadcast_in_dim", type_, [numbers], {"broadcast_dimensions": [step.axis]})
    operands = [value, wide] if step.position == 0 else [wide, value]
    return build(step.op.name.removeprefix("stablehlo."), type_, operands)


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
    if made is None or made.name not in ("stablehlo.reshape", _BROADCAST):
        return None
    return made.operands[0] if len(shape_of(made.operands[0])) == 1 else None
