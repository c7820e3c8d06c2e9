"""An exact edit: what a product is multiplied by goes into its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.hoist import same_in_each_step
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.writing import Writer
from planish.hlo.ir import ir
from planish.hlo.tiling.axes import integers, type_of
from planish.hlo.width.ties import ties

Value = ir.Value[Any]
_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")


@dataclass(frozen=True)
class Fold(Edit):
    """Multiply weights in place of what is computed with them, as the scale of a batch normalisation.

    The weights have fewer numbers, and in a loop of tiles they are multiplied once; in a loop of the module
    they are scaled only where `Hoist` may move that out of it. The answer stays, to
    rounding. The paper has nothing like it.

    ::

        y = (x @ w) * broadcast(s)   -- Fold(("y",)) -->   y = x @ (w * broadcast(s))

    Args:
        ops: multiplications of a product or a convolution by a number for each of its outputs.
    """

    ops: tuple[str, ...]

    def apply(self, draft: Draft) -> None:
        if not self.ops:
            raise ScheduleError("no operation is named", "Name multiplications.")
        for number, uid in enumerate(self.ops):
            exclusions.target(draft, uid)
            found = _scaled(draft, uid)
            if found is None:
                raise ScheduleError(f"operation '{uid}' does not scale what a product gives")
            _fold(draft, uid, f"{self.mark}.{number}", found)


@dataclass(frozen=True)
class _Scaled:
    """A product by id, the numbers that its outputs are multiplied by, the outputs' axis in the weights."""

    product: str
    numbers: Value
    axis: int


def foldable(draft: Draft) -> tuple[str, ...]:
    """List the multiplications that may be folded, of those that the results need."""
    live = draft.live()
    return tuple(
        uid
        for uid in draft.mirror.facts
        if uid in live and exclusions.is_target(draft, uid) and _scaled(draft, uid) is not None
    )


def _scaled(draft: Draft, uid: str) -> _Scaled | None:
    facts = draft.mirror.facts
    if facts[uid].name != "stablehlo.multiply":
        return None
    one, other = draft.op(uid).operands
    found = _read(draft, one, other) or _read(draft, other, one)
    # The copy of a product that stands before a loop would be computed in each of its steps.
    if found is None or facts[found.product].block != facts[uid].block:
        return None
    weights = draft.op(found.product).operands[1]
    # Weights have more numbers than a step gives: in a loop it must be possible to scale them before it.
    steady = all(same_in_each_step(draft, value, facts[uid].block) for value in (found.numbers, weights))
    return found if steady else None


def _read(draft: Draft, product: Value, scale: Value) -> _Scaled | None:
    made, wide = _maker(product), _maker(scale)
    if made is None or made.name not in _PRODUCTS:
        return None
    if wide is None or wide.name != "stablehlo.broadcast_in_dim":
        return None
    numbers, weights, to = wide.operands[0], made.operands[1], integers(wide, "broadcast_dimensions")
    if len(to) != 1 or type_of(numbers).element != type_of(weights).element:
        return None
    tie = next((tie for tie in ties(made) if (product, to[0]) in tie), ())
    # The axis of the weights that becomes this axis of the result: only along that one may they be
    # multiplied.
    axes = [axis for value, axis in tie if value == weights]
    if len(axes) != 1 or type_of(numbers).shape[0] != type_of(product).shape[to[0]]:
        return None
    return _Scaled(draft.name(product).partition("#")[0], numbers, axes[0])


def _maker(value: Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _fold(draft: Draft, uid: str, mark: str, found: _Scaled) -> None:
    weights = draft.op(found.product).operands[1]
    type_ = type_of(weights)
    write = Writer(draft, uid, mark)
    wide = write("broadcast_in_dim", type_, [found.numbers], {"broadcast_dimensions": [found.axis]})
    scaled = write("multiply", type_, [weights, wide])
    # A copy, for the product itself may have other users, who want it unscaled.
    draft.copy(found.product, f"{mark}.p", uid)
    draft.set_operand(f"{mark}.p", 1, scaled)
    result = draft.op(f"{mark}.p").results[0]
    for user, index in draft.users(uid)[0]:
        draft.set_operand(user, index, result)
    draft.erase(uid)
