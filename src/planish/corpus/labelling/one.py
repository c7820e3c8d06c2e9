"""Labelling one function, within a child."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planish.corpus.labelling.examiner import Examiner, Passes
from planish.corpus.labelling.label import Label
from planish.corpus.labelling.plan import Bench
from planish.corpus.labelling.search import Budget, search, shorten
from planish.corpus.row import Row
from planish.isolation import Watchdog


@dataclass(frozen=True)
class Searching:
    """Searches on functions by themselves.

    Args:
        bench: what with.
        budget: of each function.
    """

    bench: Bench
    budget: Budget

    def __call__(self, row: Row, watchdog: Watchdog) -> Label | None:
        """Label one function; None where LLVM cannot read it, or -Oz fails."""
        bench = self.bench
        with bench.examining(row, watchdog) as examiner:
            if examiner is None:
                return None
            if examiner.cost(bench.baseline) is not None:
                seed, name = bench.seed_of(row), bench.plan.searcher
                search(examiner, bench.space, bench.objective, self.budget, seed, name)
            return label_of(row, examiner, "search")


@dataclass(frozen=True)
class Broadcasting:
    """Runs the lists of others on functions.

    Args:
        bench: what with.
        lists: the lists.
    """

    bench: Bench
    lists: Sequence[Passes]

    def __call__(self, item: tuple[Row, Label], watchdog: Watchdog) -> Label:
        """Give the label, better where one of the lists is."""
        row, label = item
        bench = self.bench
        with bench.examining(row, watchdog) as examiner:
            assert examiner is not None  # it has a label, so it could be read
            for passes in (bench.baseline, label.passes, *self.lists):
                examiner.cost(passes)
            best = examiner.best()
            if best is not None and best[0] < label.best:
                shorten(examiner, bench.space, bench.objective)
            found = label_of(row, examiner, "broadcast")
        evaluations = label.evaluations + examiner.evaluations
        if found is None or found.best >= label.best:
            other = min(label.other, found.other) if found else label.other
            return replace(label, other=other, evaluations=evaluations)
        other = min(found.other, label.other)
        return replace(found, other=other, evaluations=evaluations, refused=label.refused)


@dataclass(frozen=True)
class Costing:
    """Runs lists on functions, for their costs alone.

    Args:
        bench: what with.
        lists: the lists.
    """

    bench: Bench
    lists: Sequence[Passes]

    def __call__(self, row: Row, watchdog: Watchdog) -> tuple[int | None, list[int | None]] | None:
        """Give the cost after -Oz and after each list; None where LLVM cannot read the function."""
        with self.bench.examining(row, watchdog) as examiner:
            if examiner is None:
                return None
            costs = [examiner.cost(passes) for passes in self.lists]
            return examiner.cost(self.bench.baseline), costs


def label_of(row: Row, examiner: Examiner, found_by: str) -> Label | None:
    """Make the label of what was found; None where -Oz, or the function as it is, cannot be measured."""
    best, baseline = examiner.best(), examiner.cost(examiner.baseline)
    if best is None or baseline is None or examiner.unoptimised is None:
        return None
    other = examiner.other()
    return Label(
        identity=row.identity,
        package=row.package,
        split=row.split,
        unoptimised=examiner.unoptimised,
        baseline=baseline,
        best=best[0],
        other=best[0] if other is None else other,
        passes=best[1],
        found_by=found_by if best[1] != examiner.baseline else "baseline",
        evaluations=examiner.evaluations,
        refused=(),
    )
