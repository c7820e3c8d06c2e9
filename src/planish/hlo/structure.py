"""What the structure of a module suggests: exact edits, then those that leave out a part of the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.core import ScheduleError
from planish.hlo.approximate_edits import approximate
from planish.hlo.edits import (
    DeleteOp,
    Draft,
    Edit,
    Narrow,
    Quantize,
    Shrink,
    TileBatch,
    narrowable,
    quantizable,
)
from planish.hlo.exact_edits import LAYOUTS, PRODUCTS, alone, together
from planish.hlo.learning_rates import larger_steps
from planish.hlo.patch import extended

TILES = (2, 5, 10, 20)
"""Numbers of tiles; what lies between is for mutations."""

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
        self._alone = alone(draft, self._may)
        self._together, self._layouts = (together(draft, way, self._may) for way in (PRODUCTS, LAYOUTS))
        self._left = extended(draft, tuple(self._together))
        self._approximate = approximate(draft, kinds)
        self._rates = [] if kinds else list(larger_steps(draft))

    def _may(self, kind: str) -> bool:
        return not self._kinds or kind in self._kinds

    def edits(self) -> list[Edit]:
        """List all edits, each of which may be added to a patch."""
        exact = [edit for edits in self._alone for edit in edits]
        return [*self._tiles, *exact, *self._approximate]

    def patches(self) -> Iterator[Sequence[Edit]]:
        """List patches: larger learning rates, what is exact, and approximate edits together with that.

        None of the edits stands in another's way, and each saves a part of what the others leave. So they are
        worth a measurement before chance puts them together. Where products can be narrowed, all others come
        with narrow ones first: what that costs is next to nothing.
        """
        yield from self._rates
        base, added = self._in_tiles(self._together), self._added()
        if base:
            yield base
        narrow = [*base, *self._narrowed()]
        if narrow != base:
            yield narrow
            yield from ([*narrow, edit] for edit in added)
        crops = [edit for edit in added if isinstance(edit, Shrink)]
        for crop in crops[:CROPS]:
            yield from ([*narrow, crop, edit] for edit in added if isinstance(edit, DeleteOp))
        yield from self._exact()
        yield from self._quantized()
        yield from ([*base, edit] for edit in added)

    def _exact(self) -> Iterator[Sequence[Edit]]:
        """List them by kind, together, and with convolutions as they are, for products may be slower."""
        yield from self._alone
        if self._together and self._tiles:
            yield self._together
        if self._layouts:
            yield self._layouts
        yield from ([*self._together, tile] for tile in self._tiles)

    def _in_tiles(self, exact: Sequence[Edit]) -> list[Edit]:
        """Give exact edits with the tiles that others are combined with."""
        size = -(-self._draft.batch() // TOGETHER) if self._tiles else 0
        return [*exact, *(tile for tile in self._tiles if tile == TileBatch(size, loop=True))]

    def _added(self) -> list[Edit]:
        """List the approximate edits of what exact ones leave, and those of what they made."""
        now, before = (draft.mirror.facts for draft in (self._left, self._draft))
        kept = [edit for edit in self._approximate if _named(edit) in ("", *now)]
        made = approximate(self._left, self._kinds) if self._together else []
        return [*kept, *(edit for edit in made if _named(edit) not in ("", *before))]

    def _narrowed(self) -> list[Narrow]:
        found = narrowable(self._left) if self._may("Narrow") else ()
        return [Narrow(found)] if found else []

    def _quantized(self) -> Iterator[Sequence[Edit]]:
        """List patches in which all products are of whole numbers, and convolutions are such, or are kept."""
        for exact in (self._together, self._layouts):
            found = quantizable(extended(self._draft, tuple(exact))) if self._may("Quantize") else ()
            if found:
                yield [*self._in_tiles(exact), Quantize(found)]


def _named(edit: Edit) -> str:
    """Name the operation that an edit is of; empty where it is of a value or a result."""
    return getattr(edit, "op", "")


def _tiles(draft: Draft) -> list[TileBatch]:
    try:
        batch = draft.batch()
    except ScheduleError:
        return []
    sizes = {-(-batch // tiles): None for tiles in TILES}
    return [TileBatch(size, loop) for loop in (False, True) for size in sizes if size < batch]
