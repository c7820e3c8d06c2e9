"""Drawing pass lists at random: by weight, and by shape."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from numpy.random import Generator

T = TypeVar("T", bound=Hashable)


class Weighted(Generic[T]):
    """Things that are drawn each in proportion to its weight.

    Args:
        weights: thing to weight, not negative, and above 0 for one of them.
    """

    def __init__(self, weights: Mapping[T, float]) -> None:
        self.items = tuple(weights)
        sums = list(accumulate(weights.values()))
        self._bounds = [each / sums[-1] for each in sums]  # the last is 1 exactly, which no chance reaches

    def draw(self, count: int, rng: Generator) -> list[T]:
        """Draw with replacement."""
        # To the right of equal bounds: what weighs 0 has the bound of the one before it, and is never drawn.
        return [self.items[bisect(self._bounds, chance)] for chance in rng.random(count).tolist()]


@dataclass(frozen=True)
class ListShape:
    """A pattern of sampled lists: random passes, and one anchor at a given place.

    Args:
        weight: how often it is drawn beside the other shapes.
        anchors: of these one is in the list, each alike; none: the list is random throughout.
        place: where the anchor stands.
    """

    weight: float
    anchors: tuple[str, ...] = ()
    place: Literal["first", "last", "anywhere"] = "anywhere"

    def within(self, texts: Collection[str]) -> ListShape | None:
        """Give the shape with those anchors alone that are among these passes; None where none is."""
        kept = tuple(anchor for anchor in self.anchors if anchor in texts)
        return replace(self, anchors=kept) if kept or not self.anchors else None

    def anchor(self, rng: Generator) -> Sequence[str]:
        """Draw the anchor, as a list of one or none."""
        return [self.anchors[int(rng.integers(len(self.anchors)))]] if self.anchors else []

    def placed(self, anchor: Sequence[str], passes: Sequence[str], rng: Generator) -> list[str]:
        """Put the anchor into its place among random passes."""
        last = len(passes)
        place = {"first": 0, "last": last}.get(self.place)
        if place is None:
            place = int(rng.integers(last + 1))
        return [*passes[:place], *anchor, *passes[place:]]


ANY_LIST = (ListShape(1.0),)
"""The shape of lists that are random throughout."""
