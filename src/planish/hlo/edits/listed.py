"""Random ones of the edits that a module's structure allows: what is listed is drawn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from planish.hlo.edits.drop_channels import DropChannels, droppable, narrower
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.factor import Factor, factorable, lower_ranks
from planish.hlo.edits.fold import Fold, foldable
from planish.hlo.edits.freeze import frozen_parts
from planish.hlo.edits.hoist import Hoist, hoistable
from planish.hlo.edits.lower import lowerings
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.narrow import Narrow, narrowable
from planish.hlo.edits.quantize import Quantize, quantizable
from planish.hlo.edits.random_choices import pick
from planish.hlo.edits.relayout import LAYOUTS, Relayout, layouts
from planish.hlo.edits.replace_reduction import KINDS, ReplaceReduction, reductions
from planish.hlo.edits.share import Share, shareable
from planish.hlo.edits.shorten import shorter
from planish.hlo.edits.shrink import shrinks
from planish.hlo.edits.sink import Sink, sinkable
from planish.hlo.edits.tile_batch import TileBatch, sizes

if TYPE_CHECKING:
    from numpy.random import Generator

E = TypeVar("E", bound=Edit)
Draw = Callable[[Draft, "Generator"], Edit]


def _one(listed: Callable[[Draft], Sequence[E]]) -> Draw:
    """Make what draws one of the edits that are listed."""
    return lambda draft, rng: pick(listed(draft), rng)


def _several(edit: Callable[[tuple[str, ...]], Edit], listed: Callable[[Draft], Sequence[str]]) -> Draw:
    """Make what draws an edit of some of the operations that are listed."""
    return lambda draft, rng: edit(_some(listed(draft), rng))


def _some(found: Sequence[str], rng: Generator) -> tuple[str, ...]:
    """Draw a share of some operations, at least one; any share is as likely as another."""
    share = rng.random()
    return tuple(uid for uid in found if rng.random() < share) or (pick(found, rng),)


def _tile_batch(draft: Draft, rng: Generator) -> TileBatch:
    loop = bool(rng.integers(2))
    now = draft.tiles.examples if draft.tiles and draft.tiles.loop == loop else 0
    return TileBatch(pick([size for size in sizes(draft.batch()) if size != now], rng), loop)


def _drop_channels(draft: Draft, rng: Generator) -> DropChannels:
    uid, size = pick(list(droppable(draft).items()), rng)
    return pick(narrower(uid, size), rng)


def _factor(draft: Draft, rng: Generator) -> Factor:
    uid, useful = pick(list(factorable(draft).items()), rng)
    return pick(lower_ranks(uid, useful), rng)


def _relayout(draft: Draft, rng: Generator) -> Relayout:
    channels = pick(list(LAYOUTS), rng)
    return Relayout(_some(layouts(draft, channels), rng), channels)


def _replace_reduction(draft: Draft, rng: Generator) -> ReplaceReduction:
    uid, now = pick(list(reductions(draft).items()), rng)
    return ReplaceReduction(uid, pick([kind for kind in KINDS if kind != now], rng))


LISTED: Mapping[str, Draw] = {
    "TileBatch": _tile_batch,
    "Lower": _one(lowerings),
    "Fold": _several(Fold, foldable),
    "Relayout": _relayout,
    "Sink": _several(Sink, sinkable),
    "Hoist": _several(Hoist, hoistable),
    "Share": _several(Share, shareable),
    "Shrink": _one(shrinks),
    "Narrow": _several(partial(Narrow), narrowable),
    "Quantize": _several(Quantize, quantizable),
    "DropChannels": _drop_channels,
    "Factor": _factor,
    "Shorten": _one(shorter),
    "Freeze": _one(frozen_parts),
    "ReplaceReduction": _replace_reduction,
}
"""Name of an edit to what draws one; they raise ScheduleError where there is none."""
