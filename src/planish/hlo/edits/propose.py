"""Random edits, with their repairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.changing import ReplaceConstant, ReplaceOperand, ScaleConstant, SetAttribute
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.listed import LISTED
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.operation_edits import CopyOp, DeleteOp, MoveOp, SwapOps
from planish.hlo.edits.other_attributes import CHANGEABLE, other_attributes
from planish.hlo.edits.other_constants import can_scale, splat_value
from planish.hlo.edits.random_choices import Visible, free_operands, pick, repairs, replacement, targets
from planish.hlo.edits.resize import Resize, plan_resize
from planish.hlo.ir import TensorType

if TYPE_CHECKING:
    from numpy.random import Generator

TRIES = 200
SCALE_LIMIT = 32.0
PLAIN_VALUES = (0.0, 1.0, -1.0, 0.5, 2.0)


def propose(draft: Draft, rng: Generator, kinds: Sequence[str] = ()) -> tuple[Edit, Draft]:
    """Draw an edit that gives a valid module.

    Args:
        draft: a module; it is not changed.
        rng: where randomness comes from.
        kinds: names in `PROPOSALS` to draw from, each as likely; all when empty.

    Returns:
        The edit, and the module that it gives.

    Raises:
        ScheduleError: no valid edit was found in many tries.
    """
    known = tuple(kinds) or tuple(PROPOSALS)
    for _ in range(TRIES):
        try:
            # The kind is drawn anew in each try: one that the module has no place for must not use all tries
            # up.
            edit = PROPOSALS[pick(known, rng)](draft, rng)
            return edit, applied(draft, edit)
        except ScheduleError:
            continue
    raise ScheduleError(f"no valid edit was found in {TRIES} tries", "The module may be too small to edit.")


def applied(draft: Draft, edit: Edit) -> Draft:
    """Give the module after an edit; raises ScheduleError where that is not legal or not valid."""
    changed = draft.clone()
    edit.apply(changed)
    changed.verify()
    return changed


def _copy(draft: Draft, rng: Generator) -> CopyOp:
    sources = [uid for uid in draft.mirror.facts if exclusions.is_target(draft, uid)]
    uid, before = pick(sources, rng), pick(_places(draft), rng)
    fact, visible = draft.mirror.facts[uid], list(draft.mirror.visible(before))
    operands = repairs(fact, free_operands(fact), visible, rng, free=True)
    return CopyOp(uid, before, operands, *_user(draft, uid, before, rng))


def _user(draft: Draft, uid: str, before: str, rng: Generator) -> tuple[str, int, Resize]:
    """Choose a later use for a copy: of the same type, else of the same element type; else none."""
    facts, position = draft.mirror.facts, draft.mirror.position(before)
    users = set(targets(draft))
    later = [uid for uid in draft.mirror.blocks[facts[before].block][position:] if uid in users]
    uses = [(user, i, facts[user].operands[i]) for user in later for i in free_operands(facts[user])]
    type_ = next(iter(facts[uid].results), None)
    same = [use for use in uses if use[2] == type_]
    alike = [(u, i, t) for u, i, t in uses if t and type_ and t.plain and t.element == type_.element]
    if type_ is None or not (same or alike):
        return "", 0, ()
    user, index, wanted = pick(same or alike, rng)
    assert wanted is not None
    return user, index, plan_resize(type_, wanted)


def _delete(draft: Draft, rng: Generator) -> DeleteOp:
    uid = pick(targets(draft), rng)
    visible = list(draft.mirror.visible(uid))
    return DeleteOp(uid, tuple(replacement(visible, type_, rng) for type_ in draft.mirror.facts[uid].results))


def _bypass(draft: Draft, rng: Generator) -> DeleteOp:
    """Delete an operation whose users then take one of its own operands, as if it did nothing.

    Each type is as likely as the others: what joins the blocks of a network is of a few types, and most
    operations are inside of them. So blocks are left out about as often as parts of them.
    """
    facts = draft.mirror.facts
    passing: dict[TensorType, list[str]] = {}
    for uid in targets(draft):
        type_ = facts[uid].results[0] if len(facts[uid].results) == 1 else None
        if type_ is not None and type_ in facts[uid].operands:
            passing.setdefault(type_, []).append(uid)
    wanted = pick(list(passing), rng)
    uid = pick(passing[wanted], rng)
    values = zip(draft.op(uid).operands, facts[uid].operands, strict=True)
    alike = [value for value, type_ in values if type_ == wanted]
    return DeleteOp(uid, ((draft.name(pick(alike, rng)), ()),))


def _replace_operand(draft: Draft, rng: Generator) -> ReplaceOperand:
    uid = pick(targets(draft), rng)
    fact, visible = draft.mirror.facts[uid], list(draft.mirror.visible(uid))
    index = pick(free_operands(fact), rng)
    return ReplaceOperand(uid, index, *replacement(visible, fact.operands[index], rng, free=True))


def _move(draft: Draft, rng: Generator) -> MoveOp:
    uid, mirror = pick(targets(draft), rng), draft.mirror
    fact = mirror.facts[uid]
    before = pick([other for other in mirror.blocks[fact.block] if other != uid], rng)
    # Upwards only its operands may come too late; downwards only its users too early.
    if mirror.position(before) < mirror.position(uid):
        return MoveOp(uid, before, repairs(fact, *_hidden(draft, uid, before), rng, free=False))
    visible = list(mirror.visible(uid))
    return MoveOp(uid, before, (), tuple(replacement(visible, type_, rng) for type_ in fact.results))


def _swap(draft: Draft, rng: Generator) -> SwapOps:
    one, mirror = pick(targets(draft), rng), draft.mirror
    block = mirror.blocks[mirror.facts[one].block]
    other = pick([uid for uid in block if uid != one and exclusions.is_target(draft, uid)], rng)
    a, b = sorted((one, other), key=mirror.position)
    results = [mirror.facts[uid].results for uid in (a, b)]
    of_a, of_b = (types[0] if len(types) == 1 else None for types in results)
    if of_a is None or of_b is None or (of_a != of_b and not (of_a.plain and of_b.plain)):
        raise ScheduleError("only tensors are exchanged")
    operands = repairs(mirror.facts[b], *_hidden(draft, b, a), rng, free=False)
    return SwapOps(a, b, operands, plan_resize(of_b, of_a), plan_resize(of_a, of_b))


def _set_attribute(draft: Draft, rng: Generator) -> SetAttribute:
    uid = pick([uid for uid in targets(draft) if draft.mirror.facts[uid].name in CHANGEABLE], rng)
    return SetAttribute(uid, other_attributes(draft.op(uid), rng))


def _scale_constant(draft: Draft, rng: Generator) -> ScaleConstant:
    scalable = [uid for uid in _constants(draft) if can_scale(draft.op(uid))]
    # Evenly by logarithm: halved is as likely as doubled.
    factor = math.exp(rng.uniform(-math.log(SCALE_LIMIT), math.log(SCALE_LIMIT)))
    # Three digits, so that patches stay readable.
    return ScaleConstant(pick(scalable, rng), float(f"{factor:.3g}"))


def _replace_constant(draft: Draft, rng: Generator) -> ReplaceConstant:
    constants = _constants(draft)
    found = {splat_value(draft.op(uid)) for uid in constants}
    # Sorted, for draws must repeat and a set has no order of its own.
    values = sorted(
        {*PLAIN_VALUES, *(value for value in found if value is not None and math.isfinite(value))}
    )
    return ReplaceConstant(pick(constants, rng), pick(values, rng))


PROPOSALS: Mapping[str, Callable[[Draft, Generator], Edit]] = {
    "CopyOp": _copy,
    "DeleteOp": _delete,
    "Bypass": _bypass,
    "ReplaceOperand": _replace_operand,
    "SwapOps": _swap,
    "MoveOp": _move,
    "SetAttribute": _set_attribute,
    "ScaleConstant": _scale_constant,
    "ReplaceConstant": _replace_constant,
    **LISTED,
}
"""Name of an edit, or of a way to draw one, to what draws it; they raise ScheduleError where they find none.

`Bypass` draws a DeleteOp whose repair the paper draws once in hundreds of times: it leaves something out,
which a trained network often bears.
"""


EXACT = ("TileBatch", "Lower", "Fold", "Relayout", "Sink", "Hoist", "Share")
"""Those of them that leave the answer as it is, to rounding."""


def _places(draft: Draft) -> list[str]:
    return [uid for uid, fact in draft.mirror.facts.items() if exclusions.is_open(draft, fact)]


def _constants(draft: Draft) -> list[str]:
    return [uid for uid in targets(draft) if draft.mirror.facts[uid].name == "stablehlo.constant"]


def _hidden(draft: Draft, uid: str, before: str) -> tuple[list[int], Visible]:
    """List the operands of an operation that are not there at an earlier place, and what is."""
    visible = list(draft.mirror.visible(before))
    names = {name for name, _ in visible}
    hidden = [i for i, value in enumerate(draft.op(uid).operands) if draft.name(value) not in names]
    return hidden, visible
