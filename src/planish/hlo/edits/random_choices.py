"""Random choices for edits: operations, places, and the values that repair them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.edit import Repair
from planish.hlo.edits.mirror import Fact
from planish.hlo.edits.module_draft import Draft, Source
from planish.hlo.edits.resize import plan_resize
from planish.hlo.ir import TensorType

if TYPE_CHECKING:
    from numpy.random import Generator

T = TypeVar("T")
Visible = Sequence[tuple[str, TensorType | None]]

RESIZED_SHARE = 0.25
"""How often a free choice takes a value of another type although there are some of the right one, as figure 5
of the paper does for the operand of a copy."""


def pick(items: Sequence[T], rng: Generator) -> T:
    """Choose one; raises ScheduleError where there is none."""
    if not items:
        raise ScheduleError("there is nothing to choose from")
    return items[int(rng.integers(len(items)))]


def targets(draft: Draft) -> list[str]:
    """List the operations that may be changed, without those that nothing needs: it would change nothing."""
    live = draft.live()
    return [uid for uid in draft.mirror.facts if uid in live and exclusions.is_target(draft, uid)]


def replacement(visible: Visible, wanted: TensorType | None, rng: Generator, *, free: bool = False) -> Source:
    """Choose a value of a type, as the paper repairs.

    Args:
        visible: what may be used.
        wanted: the type; None for what is no tensor, which nothing replaces.
        rng: where randomness comes from.
        free: whether a value of another type may be taken although there is one of this type.

    Returns:
        A value of the same type, at random; else one of the same element type, resized; else any, converted.

    Raises:
        ScheduleError: there is none.
    """
    if wanted is None:
        raise ScheduleError("only tensors can be replaced")
    same = [name for name, type_ in visible if type_ == wanted]
    if same and not (free and rng.random() < RESIZED_SHARE):
        return pick(same, rng), ()
    others = [(n, t) for n, t in visible if t is not None and t != wanted and t.element == wanted.element]
    if wanted.plain and not others and not same:
        others = [(name, type_) for name, type_ in visible if type_ is not None and type_.plain]
    if not others or not wanted.plain:
        return pick(same, rng), ()
    name, type_ = pick(others, rng)
    return name, plan_resize(type_, wanted)


def repairs(
    fact: Fact, indices: Sequence[int], visible: Visible, rng: Generator, *, free: bool
) -> tuple[Repair, ...]:
    """Choose a value for each of some operands."""
    return tuple((i, *replacement(visible, fact.operands[i], rng, free=free)) for i in indices)


def free_operands(fact: Fact) -> list[int]:
    """List the operands that edits may replace."""
    kept = exclusions.starts(fact.name, len(fact.operands))
    return [i for i, type_ in enumerate(fact.operands) if i not in kept and type_ is not None]
