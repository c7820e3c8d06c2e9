"""Choice of the lists that are good for many functions: the coreset, and the lists that are broadcast."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import Candidate, PlanishError
from planish.levels.llvm.passes.catalogue import pass_cost
from planish.sandbox.fork_pool import Forked, Watchdog, forked
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row
from planish.train.cost_tables import CostTable
from planish.train.labeling.function_search import FunctionCosts, Passes, candidates_of, search, shorten
from planish.train.labeling.label_plan import Label, LabelBench, LabelPlan, bench, read_labels
from planish.tuning.settings import Budget

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def greedy_cover(
    costs: NDArray[np.float64],
    baseline: NDArray[np.float64],
    size: int,
    efforts: NDArray[np.float64] | None = None,
) -> list[int]:
    """Choose lists greedily, each the one that saves most beside those before it.

    With efforts it is the one that saves most by the square root of its effort: between the most for an
    evaluation and the most for a second.

    Args:
        costs: functions x lists; infinite where a list failed.
        baseline: functions; what each costs without any list of these.
        size: most lists that are chosen.
        efforts: of each list, above 0; None where all are alike.

    Returns:
        Indices of the lists in the order of their choice; fewer than `size` where no more of them save.
    """
    import numpy as np

    least, chosen = baseline.astype(float), list[int]()
    weights = 1.0 if efforts is None else np.sqrt(efforts)
    # Greedy cover comes within 1 - 1/e of the best choice of as many, since what is saved is submodular.
    for _ in range(min(size, costs.shape[1])):
        saved = np.maximum(least[:, None] - costs, 0.0).sum(axis=0) / weights
        best = int(saved.argmax())
        if saved[best] <= 0:
            break
        chosen.append(best)
        least = np.minimum(least, costs[:, best])
    return chosen


@dataclass(frozen=True)
class Searching:
    """Searches on functions by themselves.

    Args:
        bench: what with.
        budget: of each function.
        give_up: lists after which a search ends if none is better than -Oz; 0: never.
    """

    bench: LabelBench
    budget: Budget
    give_up: int = 0

    def __call__(self, row: Row, watchdog: Watchdog) -> Label | None:
        """Label one function; None where LLVM cannot read it, or -Oz fails."""
        bench = self.bench
        with bench.costing(row, watchdog) as costs:
            if costs is None:
                return None
            if costs.cost(bench.baseline) is not None:
                seed, name = bench.seed_of(row), bench.plan.searcher
                search(costs, bench.space, bench.objective, self.budget, seed, name, self.give_up)
            return label_of(row, costs, "search")


@dataclass(frozen=True)
class _Listed:
    """Has lists to run."""

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
        """Return the label, better where one of the lists is."""
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
        """Return the cost after -Oz and after each list; None where LLVM cannot read the function."""
        with self.bench.costing(row, watchdog) as costs:
            if costs is None:
                return None
            costs.run(self.candidates)
            return costs.cost(self.bench.baseline), [costs.cost(passes) for passes in self.lists]


def label_of(row: Row, costs: FunctionCosts, found_by: str) -> Label | None:
    """Make the label of what was found; None where -Oz, or the function as it is, cannot be measured."""
    ranking = costs.ranking
    best, baseline = ranking.best(), costs.cost(ranking.baseline)
    if best is None or baseline is None or costs.unoptimized is None:
        return None
    other = ranking.other()
    return Label(
        identity=row.identity,
        package=row.package,
        split=row.split,
        unoptimized=costs.unoptimized,
        baseline=baseline,
        best=best[0],
        other=best[0] if other is None else other,
        passes=best[1],
        found_by=found_by if best[1] != ranking.baseline else "baseline",
        evaluations=ranking.evaluations,
        refused=(),
    )


_COSTS = tuple[int | None, list[int | None]]


def most_saving(labels: Iterable[Label], count: int) -> list[Passes]:
    """List the lists that saved most over -Oz on training functions, summed over those they are best for."""
    saved: Counter[Passes] = Counter()
    for label in labels:
        if label.split == "train" and label.saved:
            saved[label.passes] += label.saved
    return [passes for passes, _ in saved.most_common(count)]


def choose(
    bench: LabelBench, rows: Iterable[Row], lists: Sequence[Passes], size: int, spread: Forked = forked
) -> list[Passes]:
    """Choose by greedy cover; a list that takes longer has to save more.

    Args:
        bench: what with.
        rows: training functions.
        lists: the candidates.
        size: most that are chosen.
        spread: runs them.

    Returns:
        The chosen ones, the most useful first.
    """
    baseline, costs = cost_table(bench, rows, lists, spread)
    return [lists[index] for index in greedy_cover(costs, baseline, size, efforts(lists))]


def joined(lists: Sequence[Passes], longest: int) -> list[Passes]:
    """Return each two lists as one, the second after the first, each with itself too; none too long."""
    both = [(*first, *second) for first in lists for second in lists]
    return [passes for passes in dict.fromkeys(both) if len(passes) <= longest]


def build_coreset(corpus: Path, labels: Path, plan: LabelPlan, size: int, joining: int = 0) -> dict[str, Any]:
    """Choose a coreset from a labeled corpus, on training functions alone.

    Labels are the best lists of single functions. Two of them that are good for different functions are often
    good for both as one list, which is one evaluation; no search on one function has a reason to find it.

    Args:
        corpus: what was labeled.
        labels: its labels.
        plan: the objective, how many candidates, and on how many functions: of those that their labels
            improve, since the others hardly distinguish lists.
        size: most lists that are chosen.
        joining: number of the lists chosen first that are joined two by two; it is chosen again among
            both; 0: none.

    Returns:
        What `load_coreset` reads: the LLVM, the objective, and the lists.

    Raises:
        PlanishError: there is no corpus, it has no labels, or those of another one; or no training function
            has a list that is better than -Oz.
    """
    made, known = bench(plan), list(read_labels(labels))
    candidates = most_saving(known, plan.candidates)
    if not candidates:
        what = f"no training function in {labels} has a list that is better than -Oz"
        raise PlanishError(what, "Label more of the split 'train', with more evaluations.")
    improved = {label.identity for label in known if label.saved}
    some = (row for row in read_corpus(corpus, "train") if row.identity in improved)
    rows = drawn(some, plan.sample, plan.seed)
    if not rows:
        raise PlanishError(f"{corpus} has none of the functions that {labels} improve", "Name their corpus.")
    lists = choose(made, rows, candidates, max(size, joining))
    if joining:
        both = dict.fromkeys([*lists, *joined(lists[:joining], made.space.longest)])
        lists = choose(made, rows, list(both), size)
    return {
        "llvm": made.bindings.version,
        "objective": plan.objective,
        "lists": [list(each) for each in lists],
    }


def lists_of_table(table: CostTable, objective: str, size: int, *, by_effort: bool = False) -> list[Passes]:
    """Choose of a table's lists by greedy cover, the most useful first.

    Args:
        table: of training functions.
        objective: what is made less.
        size: most that are chosen.
        by_effort: a list that takes longer has to save more, as in a coreset.

    Raises:
        PlanishError: none saves anything.
    """
    baseline = table.baseline[:, table.columns.objectives.index(objective)].astype(float)
    costs = baseline[:, None] - table.saved(objective).astype(float)
    chosen = greedy_cover(costs, baseline, size, efforts(table.columns.lists) if by_effort else None)
    if not chosen:
        what = "no list of the labels makes a function for training smaller than -Oz does"
        raise PlanishError(what, "There is nothing to learn: label more functions.")
    return [table.columns.lists[index] for index in chosen]


def efforts(lists: Iterable[Passes]) -> NDArray[np.float64]:
    """Return about what each list takes; see `planish.levels.llvm.passes.catalogue`."""
    import numpy as np

    return np.array([pass_cost(passes) for passes in lists])


def drawn(rows: Iterable[Row], size: int, seed: int) -> list[Row]:
    """Draw a number of rows, or all where there are fewer."""
    every = list(rows)
    return random.Random(seed).sample(every, min(size, len(every)))


def cost_table(
    bench: LabelBench, rows: Iterable[Row], lists: Sequence[Passes], spread: Forked = forked
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Run each list on each function.

    Returns:
        The costs after -Oz, by function; and those after each list, functions x lists, infinite where it
        failed. Functions that cannot be measured are left out; their order is not that of the rows.
    """
    import numpy as np

    work, at_once = Costing(bench, lists), bench.at_once(len(lists))
    done = list(spread(rows, work, _COSTS, bench.plan.jobs, at_once=at_once))
    for each in done:
        each.check()
    known = [(d.answer[0], d.answer[1]) for d in done if d.answer and d.answer[0] is not None]
    baseline = np.array([first for first, _ in known], float)
    costs = np.array([[np.inf if c is None else c for c in each] for _, each in known], float)
    return baseline, costs.reshape(len(known), len(lists))
