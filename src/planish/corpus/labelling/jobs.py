"""Jobs on one function, each within a forked child."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from planish.core import Candidate
from planish.corpus.labelling.function_costs import FunctionCosts, candidates_of
from planish.corpus.labelling.function_search import FunctionBudget, search, shorten
from planish.corpus.labelling.label import Label
from planish.corpus.labelling.label_plan import LabelBench
from planish.corpus.labelling.ranking import Passes
from planish.corpus.row import Row
from planish.sandbox import Watchdog


@dataclass(frozen=True)
class Searching:
    """Searches on functions by themselves.

    Args:
        bench: what with.
        budget: of each function.
    """

    bench: LabelBench
    budget: FunctionBudget

    def __call__(self, row: Row, watchdog: Watchdog) -> Label | None:
        """Label one function; None where LLVM cannot read it, or -Oz fails."""
        bench = self.bench
        with bench.costing(row, watchdog) as costs:
            if costs is None:
                return None
            if costs.cost(bench.baseline) is not None:
                seed, name = bench.seed_of(row), bench.plan.searcher
                search(costs, bench.space, bench.objective, self.budget, seed, name)
            return label_of(row, costs, "search")


@dataclass(frozen=True)
class _Listed:
    """Has lists to run.

    Args:
        bench: what with.
        lists: the lists.
    """

    bench: LabelBench
    lists: Sequence[Passes]

    @cached_property
    def candidates(self) -> Sequence[Candidate]:
        """The lists as an executor takes them."""
        return candidates_of(self.lists)


@dataclass(frozen=True)
class Broadcasting(_Listed):
    """Runs the lists of others on functions."""

    def __call__(self, item: tuple[Row, Label], watchdog: Watchdog) -> Label:
        """Give the label, better where one of the lists is."""
        row, label = item
        bench = self.bench
        with bench.costing(row, watchdog) as costs:
            assert costs is not None  # it has a label, so it could be read
            costs.run((*candidates_of([bench.baseline, label.passes]), *self.candidates))
            best = costs.ranking.best()
            if best is not None and best[0] < label.best:
                shorten(costs, bench.space, bench.objective)
            found = label_of(row, costs, "broadcast")
        evaluations = label.evaluations + costs.ranking.evaluations
        if found is None or found.best >= label.best:
            other = min(label.other, found.other) if found else label.other
            return replace(label, other=other, evaluations=evaluations)
        other = min(found.other, label.other)
        return replace(found, other=other, evaluations=evaluations, refused=label.refused)


@dataclass(frozen=True)
class Costing(_Listed):
    """Runs lists on functions, for their costs alone."""

    def __call__(self, row: Row, watchdog: Watchdog) -> tuple[int | None, list[int | None]] | None:
        """Give the cost after -Oz and after each list; None where LLVM cannot read the function."""
        with self.bench.costing(row, watchdog) as costs:
            if costs is None:
                return None
            costs.run(self.candidates)
            return costs.cost(self.bench.baseline), [costs.cost(passes) for passes in self.lists]


def label_of(row: Row, costs: FunctionCosts, found_by: str) -> Label | None:
    """Make the label of what was found; None where -Oz, or the function as it is, cannot be measured."""
    ranking = costs.ranking
    best, baseline = ranking.best(), costs.cost(ranking.baseline)
    if best is None or baseline is None or costs.unoptimised is None:
        return None
    other = ranking.other()
    return Label(
        identity=row.identity,
        package=row.package,
        split=row.split,
        unoptimised=costs.unoptimised,
        baseline=baseline,
        best=best[0],
        other=best[0] if other is None else other,
        passes=best[1],
        found_by=found_by if best[1] != ranking.baseline else "baseline",
        evaluations=ranking.evaluations,
        refused=(),
    )
