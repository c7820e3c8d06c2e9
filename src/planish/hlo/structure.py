"""What the structure of a module suggests: exact edits, blocks left out, fewer pixels, narrower numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.core import ScheduleError
from planish.hlo.edits import (
    Draft,
    DropChannels,
    Edit,
    Fold,
    Lower,
    Narrow,
    Shrink,
    TileBatch,
    applied,
    droppable,
    foldable,
    lowerings,
    narrowable,
    narrower,
    shrinks,
)
from planish.hlo.flops import flops_of
from planish.hlo.learning_rates import larger_steps
from planish.hlo.network_blocks import blocks

TILES = (2, 5, 10, 20)
"""Numbers of tiles; what lies between is for mutations."""

BLOCKS = 20
"""Those that compute most."""

WIDTHS = 10
"""Products whose channels are cut: those that compute most."""

MILD = 3 / 4
"""Of the channels that are kept, at least."""

TOGETHER = 10
"""The number of tiles that is combined with other edits."""

CROPS = 1
"""Those that cut least, to be combined with each block left out."""


class Structure:
    """What is worth a measurement, whatever a search finds.

    Args:
        draft: the unchanged module.
        kinds: names of the edits that may be made; all when empty.
    """

    def __init__(self, draft: Draft, kinds: Sequence[str] = ()) -> None:
        self._draft, self._kinds = draft, kinds
        self._tiles = _tiles(draft) if self._may("TileBatch") else []
        self._lowered = _preferred(draft) if self._may("Lower") else []
        self._folds = _folds(draft) if self._may("Fold") else []
        self._crops = cropped(draft) if self._may("Shrink") else []
        # Those who draw the paper's edits alone draw them as the paper does.
        self._bypasses = [] if kinds else [block.bypass for block in blocks(draft)[:BLOCKS]]
        self._widths = _widths(draft) if self._may("DropChannels") else []
        self._rates = [] if kinds else list(larger_steps(draft))

    def _may(self, kind: str) -> bool:
        return not self._kinds or kind in self._kinds

    def edits(self) -> list[Edit]:
        """List all edits, each of which may be added to a patch."""
        return [*self._tiles, *self._lowered, *self._folds, *self._bypasses, *self._crops, *self._widths]

    def patches(self) -> Iterator[Sequence[Edit]]:
        """List patches: larger learning rates, what is exact, and approximate edits together with that.

        None of the edits stands in another's way, and each saves a part of what the others leave. So they are
        worth a measurement before chance puts them together. Where products can be narrowed, all others come
        with narrow ones first: what that costs is next to nothing.
        """
        yield from self._rates
        base = self._base()
        if base:
            yield base
        others = [*self._bypasses, *self._crops, *self._widths]
        narrow = [*base, *self._narrowed(base)]
        if narrow != base:
            yield narrow
            yield from ([*narrow, edit] for edit in others)
        for crop in self._crops[:CROPS]:
            yield from ([*narrow, crop, bypass] for bypass in self._bypasses)
        yield from self._exact()
        yield from ([*base, edit] for edit in others)

    def _exact(self) -> Iterator[Sequence[Edit]]:
        if self._lowered:
            yield self._lowered
        if self._folds:
            yield self._folds
        yield from ([*self._lowered, tile] for tile in self._tiles)

    def _base(self) -> list[Edit]:
        """Give the exact edits that others are combined with."""
        size = -(-self._draft.batch() // TOGETHER) if self._tiles else 0
        return [
            *self._lowered,
            *self._folds,
            *(tile for tile in self._tiles if tile == TileBatch(size, loop=True)),
        ]

    def _narrowed(self, base: Sequence[Edit]) -> list[Narrow]:
        if not self._may("Narrow"):
            return []
        draft = self._draft
        for edit in base:
            draft = applied(draft, edit)
        found = narrowable(draft)
        return [Narrow(found)] if found else []


def cropped(draft: Draft) -> list[Shrink]:
    """List crops of the pictures that a function is given, those that cut least first."""
    return [edit for edit in shrinks(draft) if edit.value.startswith("arg") and edit.stride == 1]


def _folds(draft: Draft) -> list[Fold]:
    found = foldable(draft)
    return [Fold(found)] if found else []


def _widths(draft: Draft) -> list[DropChannels]:
    """List the mildest cut of each product's channels, if it is mild; those that compute most first."""
    found = sorted(droppable(draft).items(), key=lambda item: -flops_of(draft, item[0]))
    mildest = ((size, edit) for uid, size in found for edit in narrower(uid, size)[:1])
    return [edit for size, edit in mildest if edit.keep >= MILD * size][:WIDTHS]


def _preferred(draft: Draft) -> list[Lower]:
    """List one form of each convolution."""
    found: dict[str, Lower] = {}
    for edit in lowerings(draft):
        found.setdefault(edit.op, edit)
    return list(found.values())


def _tiles(draft: Draft) -> list[TileBatch]:
    try:
        batch = draft.batch()
    except ScheduleError:
        return []
    sizes = {-(-batch // tiles): None for tiles in TILES}
    return [TileBatch(size, loop) for loop in (False, True) for size in sizes if size < batch]
