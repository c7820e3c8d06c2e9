"""The pass lists that were run on one function, and which of them is the best."""

from __future__ import annotations

from typing import NamedTuple

Passes = tuple[str, ...]


class _Rank(NamedTuple):
    """A list among others: the least of these is the best."""

    cost: int
    other: bool
    length: int
    passes: Passes


class Ranking:
    """Ranks pass lists by what they cost.

    Args:
        baseline: -Oz as clang means it, on functions that are `minsize optsize`, as all of them are here.

    Attributes:
        costs: of the lists, in the order in which they were run; None where one fails or breaks the function.
    """

    def __init__(self, baseline: Passes) -> None:
        self.baseline = baseline
        self.costs: dict[Passes, int | None] = {}
        self._best: _Rank | None = None
        self._other: int | None = None

    @property
    def evaluations(self) -> int:
        """How many lists were run."""
        return len(self.costs)

    @property
    def improved(self) -> bool:
        """Whether a list is better than -Oz."""
        return self._best is not None and self._best.other

    def best(self) -> tuple[int, Passes] | None:
        """Give the least cost, and the shortest of its lists: -Oz where it is as good; None if all failed."""
        return self._best and (self._best.cost, self._best.passes)

    def other(self) -> int | None:
        """Give the least cost of the lists that are not -Oz itself; None if all failed."""
        return self._other

    def matters(self, passes: Passes, cost: int) -> bool:
        """Whether a list would be the best one, or the best beside -Oz; of equals the first is."""
        return self._leads(passes, cost) or self._leads_others(passes, cost)

    def add(self, passes: Passes, cost: int | None) -> None:
        """Note what a list costs; none at all is the function as it is, which has no rank."""
        self.costs[passes] = cost
        if cost is None or not passes:
            return
        if self._leads(passes, cost):
            self._best = _Rank(cost, passes != self.baseline, len(passes), passes)
        if self._leads_others(passes, cost):
            self._other = cost

    def _leads(self, passes: Passes, cost: int) -> bool:
        # -Oz wins a tie, for it needs no list of its own; then the shorter list.
        return self._best is None or (cost, passes != self.baseline, len(passes)) < self._best[:3]

    def _leads_others(self, passes: Passes, cost: int) -> bool:
        return passes != self.baseline and (self._other is None or cost < self._other)
