"""Exhaustive search: every candidate of a finite space."""

from collections.abc import Sequence

from planish.core import UNTAUGHT, CanEnumerate, Objective, SearchContext
from planish.search.rounds import RoundSearcher, once


class Exhaustive(RoundSearcher):
    """Every candidate of a finite space, in the space's order; the seed plays no part."""

    needs = CanEnumerate

    def __init__(
        self,
        space: CanEnumerate,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = UNTAUGHT,  # noqa: ARG002
    ) -> None:
        super().__init__(objectives, once(space.candidates()))
