"""Random edits with their repairs: mutation draws from them until one gives a valid module."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from planish.core import ScheduleError
from planish.levels.hlo.edits.deferred import applied
from planish.levels.hlo.edits.drop_channels import DropChannels
from planish.levels.hlo.edits.edit import Edit, Repair, Rewrite, pick
from planish.levels.hlo.edits.editable import EditableModule, Source
from planish.levels.hlo.edits.factor import Factor
from planish.levels.hlo.edits.fold import Fold
from planish.levels.hlo.edits.freeze import Freeze
from planish.levels.hlo.edits.hoist import Hoist
from planish.levels.hlo.edits.lower import Lower
from planish.levels.hlo.edits.op_index import OpInfo
from planish.levels.hlo.edits.operations import (
    CopyOp,
    DeleteOp,
    MoveOp,
    ReplaceConstant,
    ReplaceOperand,
    ScaleConstant,
    SetAttribute,
    SwapOps,
    can_scale,
    splat_value,
)
from planish.levels.hlo.edits.precision import Narrow, Quantize
from planish.levels.hlo.edits.relayout import Relayout
from planish.levels.hlo.edits.replace_reduction import ReplaceReduction
from planish.levels.hlo.edits.resize import Resize, plan_resize
from planish.levels.hlo.edits.share import Share
from planish.levels.hlo.edits.shorten import Shorten
from planish.levels.hlo.edits.shrink import Shrink
from planish.levels.hlo.edits.sink_transposes import SinkTransposes
from planish.levels.hlo.edits.tile_batch import TileBatch
from planish.levels.hlo.ir.mlir import TensorType, integer, integers, ir

if TYPE_CHECKING:
    from numpy.random import Generator

Visible = Sequence[tuple[str, TensorType | None]]

RESIZED_SHARE = 0.25
"""Probability that a free choice takes a value of another type although the right one exists, as figure 5
of the paper does for the operand of a copy."""


def replacement(visible: Visible, wanted: TensorType | None, rng: Generator, *, free: bool = False) -> Source:
    """Choose a value of a type, as the paper repairs.

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
    info: OpInfo, indices: Sequence[int], visible: Visible, rng: Generator, *, free: bool
) -> tuple[Repair, ...]:
    """Choose a value for each of some operands."""
    return tuple((i, *replacement(visible, info.operands[i], rng, free=free)) for i in indices)


def free_operands(info: OpInfo) -> list[int]:
    """List the operands that edits may replace."""
    return [i for i, type_ in enumerate(info.operands) if i not in info.init_operands and type_ is not None]


REWRITES: tuple[type[Rewrite], ...] = (
    TileBatch,
    Lower,
    Fold,
    Relayout,
    SinkTransposes,
    Hoist,
    Share,
    Shrink,
    Narrow,
    Quantize,
    DropChannels,
    Factor,
    Shorten,
    Freeze,
    ReplaceReduction,
)
"""The edits that a module's structure allows for some operations; each draws its own."""


Attributes = tuple[tuple[str, str], ...]

COMPARISONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


def other_attributes(op: ir.Operation, rng: Generator) -> Attributes:
    """Draw new attributes for one of the `CHANGEABLE`; raises ScheduleError where it has none to change."""
    return _CHANGES[op.name](op, rng)


def _compare(op: ir.Operation, rng: Generator) -> Attributes:
    old = str(op.attributes["comparison_direction"])
    others = [name for name in COMPARISONS if f" {name}>" not in old]
    return (("comparison_direction", f"#stablehlo<comparison_direction {pick(others, rng)}>"),)


def _slice(op: ir.Operation, rng: Generator) -> Attributes:
    """Shift the window along one dimension."""
    starts, limits = (integers(op, name) for name in ("start_indices", "limit_indices"))
    extents = op.operands[0].type.shape
    shifts = [(d, s) for d, n in enumerate(extents) for s in range(-starts[d], n - limits[d] + 1) if s]
    dimension, shift = pick(shifts, rng)
    for bounds in (starts, limits):
        bounds[dimension] += shift
    return (("start_indices", _array(starts)), ("limit_indices", _array(limits)))


def _pad(op: ir.Operation, rng: Generator) -> Attributes:
    """Shift the content along one dimension."""
    low, high = (integers(op, name) for name in ("edge_padding_low", "edge_padding_high"))
    dimension, shift = pick([(d, s) for d in range(len(low)) for s in range(-low[d], high[d] + 1) if s], rng)
    low[dimension] += shift
    high[dimension] -= shift
    return (("edge_padding_low", _array(low)), ("edge_padding_high", _array(high)))


def _convolution(op: ir.Operation, rng: Generator) -> Attributes:
    """Turn the kernel round along one dimension, or shift the padding by one."""
    rank = len(op.results[0].type.shape) - 2
    if rank < 1:
        raise ScheduleError("this convolution has no window")
    dimension = int(rng.integers(rank))
    if rng.random() < 0.5 or "padding" not in op.attributes:
        old = op.attributes.get("window_reversal")
        flags = list(old) if isinstance(old, ir.DenseBoolArrayAttr) else [False] * rank
        flags[dimension] = not flags[dimension]
        return (("window_reversal", f"array<i1: {', '.join(str(flag).lower() for flag in flags)}>"),)
    import numpy as np

    padding = np.array(op.attributes["padding"]).reshape(rank, 2)
    padding[dimension] += pick(([1, -1], [-1, 1]), rng)
    return (("padding", f"dense<{padding.tolist()}> : tensor<{rank}x2xi64>"),)


def _order(name: str) -> Callable[[ir.Operation, Generator], Attributes]:
    """Exchange two entries of a list of dimensions."""

    def change(op: ir.Operation, rng: Generator) -> Attributes:
        order = integers(op, name)
        if len(order) < 2:
            raise ScheduleError("there is nothing to exchange")
        i, j = (int(position) for position in rng.choice(len(order), 2, replace=False))
        order[i], order[j] = order[j], order[i]
        return ((name, _array(order)),)

    return change


def _iota(op: ir.Operation, rng: Generator) -> Attributes:
    others = [d for d in range(len(op.results[0].type.shape)) if d != integer(op, "iota_dimension")]
    return (("iota_dimension", f"{pick(others, rng)} : i64"),)


_CHANGES: Mapping[str, Callable[[ir.Operation, Generator], Attributes]] = {
    "stablehlo.compare": _compare,
    "stablehlo.slice": _slice,
    "stablehlo.pad": _pad,
    "stablehlo.convolution": _convolution,
    "stablehlo.transpose": _order("permutation"),
    "stablehlo.broadcast_in_dim": _order("broadcast_dimensions"),
    "stablehlo.iota": _iota,
}
CHANGEABLE = frozenset(_CHANGES)
"""Operations that may have an attribute to change."""


def _array(values: list[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


TRIES = 200
SCALE_LIMIT = 32.0
PLAIN_VALUES = (0.0, 1.0, -1.0, 0.5, 2.0)


def propose(module: EditableModule, rng: Generator, kinds: Sequence[str] = ()) -> tuple[Edit, EditableModule]:
    """Draw an edit that gives a valid module, and return that too; of some kinds of `PROPOSALS`, else of all.

    Raises:
        ScheduleError: no valid edit was found in many tries.
    """
    known = tuple(kinds) or tuple(PROPOSALS)
    for _ in range(TRIES):
        try:
            # The kind is drawn anew in each try: one that finds no operation in the module must not use up
            # all tries.
            edit = PROPOSALS[pick(known, rng)](module, rng)
            return edit, applied(module, [edit])
        except ScheduleError:
            continue
    raise ScheduleError(f"no valid edit was found in {TRIES} tries", "The module may be too small to edit.")


def _copy(module: EditableModule, rng: Generator) -> CopyOp:
    sources = [uid for uid in module.infos if module.is_target(uid)]
    positions = [uid for uid, info in module.infos.items() if module.is_open(info)]
    uid, before = pick(sources, rng), pick(positions, rng)
    info, visible = module.infos[uid], module.visible(before)
    operands = repairs(info, free_operands(info), visible, rng, free=True)
    return CopyOp(uid, before, operands, *_user(module, uid, before, rng))


def _user(module: EditableModule, uid: str, before: str, rng: Generator) -> tuple[str, int, Resize]:
    """Choose a later use for a copy: of the same type, else of the same element type; else none."""
    infos, position = module.infos, module.position(before)
    users = set(module.targets())
    later = [uid for uid in module.blocks[infos[before].block][position:] if uid in users]
    uses = [(user, i, infos[user].operands[i]) for user in later for i in free_operands(infos[user])]
    type_ = next(iter(infos[uid].results), None)
    same = [use for use in uses if use[2] == type_]
    alike = [(u, i, t) for u, i, t in uses if t and type_ and t.plain and t.element == type_.element]
    if type_ is None or not (same or alike):
        return "", 0, ()
    user, index, wanted = pick(same or alike, rng)
    assert wanted is not None
    return user, index, plan_resize(type_, wanted)


def _delete(module: EditableModule, rng: Generator) -> DeleteOp:
    uid = pick(module.targets(), rng)
    visible = module.visible(uid)
    return DeleteOp(uid, tuple(replacement(visible, type_, rng) for type_ in module.infos[uid].results))


def _bypass(module: EditableModule, rng: Generator) -> DeleteOp:
    """Delete an operation whose users then take one of its own operands, as if it did nothing.

    Each type is as likely as the others: what joins the blocks of a network is of a few types, and most
    operations are inside of them. So blocks are left out about as often as parts of them.
    """
    infos = module.infos
    passing: dict[TensorType, list[str]] = {}
    for uid in module.targets():
        type_ = infos[uid].results[0] if len(infos[uid].results) == 1 else None
        if type_ is not None and type_ in infos[uid].operands:
            passing.setdefault(type_, []).append(uid)
    wanted = pick(list(passing), rng)
    uid = pick(passing[wanted], rng)
    values = zip(module.op(uid).operands, infos[uid].operands, strict=True)
    alike = [value for value, type_ in values if type_ == wanted]
    return DeleteOp(uid, ((module.name(pick(alike, rng)), ()),))


def _replace_operand(module: EditableModule, rng: Generator) -> ReplaceOperand:
    uid = pick(module.targets(), rng)
    info, visible = module.infos[uid], module.visible(uid)
    index = pick(free_operands(info), rng)
    return ReplaceOperand(uid, index, *replacement(visible, info.operands[index], rng, free=True))


def _move(module: EditableModule, rng: Generator) -> MoveOp:
    uid = pick(module.targets(), rng)
    info = module.infos[uid]
    before = pick([other for other in module.blocks[info.block] if other != uid], rng)
    # Upwards only its operands may come too late; downwards only its users too early.
    if module.position(before) < module.position(uid):
        return MoveOp(uid, before, repairs(info, *_hidden(module, uid, before), rng, free=False))
    visible = module.visible(uid)
    return MoveOp(uid, before, (), tuple(replacement(visible, type_, rng) for type_ in info.results))


def _swap(module: EditableModule, rng: Generator) -> SwapOps:
    one = pick(module.targets(), rng)
    block = module.blocks[module.infos[one].block]
    other = pick([uid for uid in block if uid != one and module.is_target(uid)], rng)
    a, b = sorted((one, other), key=module.position)
    results = [module.infos[uid].results for uid in (a, b)]
    of_a, of_b = (types[0] if len(types) == 1 else None for types in results)
    if of_a is None or of_b is None or (of_a != of_b and not (of_a.plain and of_b.plain)):
        raise ScheduleError("only tensors are exchanged")
    operands = repairs(module.infos[b], *_hidden(module, b, a), rng, free=False)
    return SwapOps(a, b, operands, plan_resize(of_b, of_a), plan_resize(of_a, of_b))


def _set_attribute(module: EditableModule, rng: Generator) -> SetAttribute:
    uid = pick(module.targets(*CHANGEABLE), rng)
    return SetAttribute(uid, other_attributes(module.op(uid), rng))


def _scale_constant(module: EditableModule, rng: Generator) -> ScaleConstant:
    scalable = [uid for uid in module.targets("stablehlo.constant") if can_scale(module.op(uid))]
    # Evenly by logarithm: halved is as likely as doubled.
    factor = math.exp(rng.uniform(-math.log(SCALE_LIMIT), math.log(SCALE_LIMIT)))
    # Three digits, so that patches stay readable.
    return ScaleConstant(pick(scalable, rng), float(f"{factor:.3g}"))


def _replace_constant(module: EditableModule, rng: Generator) -> ReplaceConstant:
    constants = module.targets("stablehlo.constant")
    splats = (splat_value(module.op(uid)) for uid in constants)
    # Sorted, for draws must repeat and a set has no order of its own.
    values = sorted(
        {*PLAIN_VALUES, *(splat for splat in splats if splat is not None and math.isfinite(splat))}
    )
    return ReplaceConstant(pick(constants, rng), pick(values, rng))


PROPOSALS: Mapping[str, Callable[[EditableModule, Generator], Edit]] = {
    "CopyOp": _copy,
    "DeleteOp": _delete,
    "Bypass": _bypass,
    "ReplaceOperand": _replace_operand,
    "SwapOps": _swap,
    "MoveOp": _move,
    "SetAttribute": _set_attribute,
    "ScaleConstant": _scale_constant,
    "ReplaceConstant": _replace_constant,
    **{rewrite.__name__: rewrite.draw for rewrite in REWRITES},
}
"""Name of an edit, or of a way to draw one, to what draws it; they raise ScheduleError where they find none.

`Bypass` draws a DeleteOp whose repair the paper draws once in hundreds of times: it leaves something out,
which a trained network often tolerates.
"""


EXACT = tuple(rewrite.__name__ for rewrite in REWRITES if rewrite.exact)
"""Names of the edits that leave the answer as it is, to rounding."""


def _hidden(module: EditableModule, uid: str, before: str) -> tuple[list[int], Visible]:
    """List the operands of an operation that are not visible at an earlier position, and what is."""
    visible = module.visible(before)
    names = dict(visible)
    return [i for i, value in enumerate(module.op(uid).operands) if module.name(value) not in names], visible
