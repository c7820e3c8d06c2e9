"""Choosing the lists that are good for many functions: the coreset, and what is broadcast."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import PlanishError
from planish.corpus.corpus_reader import read_corpus
from planish.corpus.labelling.cover import greedy_cover
from planish.corpus.labelling.jobs import Costing
from planish.corpus.labelling.label import Label
from planish.corpus.labelling.label_plan import LabelBench, LabelPlan, bench
from planish.corpus.labelling.label_shards import read_labels
from planish.corpus.labelling.ranking import Passes
from planish.corpus.row import Row
from planish.learn.cost_table import CostTable
from planish.llvm.passes import pass_cost
from planish.sandbox import forked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_COSTS = tuple[int | None, list[int | None]]


def most_saving(labels: Iterable[Label], count: int) -> list[Passes]:
    """List the lists that saved most over -Oz on training functions, summed over those they are best for."""
    saved: Counter[Passes] = Counter()
    for label in labels:
        if label.split == "train" and label.saved:
            saved[label.passes] += label.saved
    return [passes for passes, _ in saved.most_common(count)]


def choose(bench: LabelBench, rows: Iterable[Row], lists: Sequence[Passes], size: int) -> list[Passes]:
    """Choose by greedy cover; a list that takes longer has to save more.

    Args:
        bench: what with.
        rows: training functions.
        lists: the candidates.
        size: at most so many are chosen.

    Returns:
        The chosen ones, the most useful first.
    """
    baseline, costs = cost_table(bench, rows, lists)
    return [lists[place] for place in greedy_cover(costs, baseline, size, efforts(lists))]


def joined(lists: Sequence[Passes], longest: int) -> list[Passes]:
    """Give each two lists as one, the second behind the first, each with itself too; none too long."""
    both = [(*first, *second) for first in lists for second in lists]
    return [passes for passes in dict.fromkeys(both) if len(passes) <= longest]


def build_coreset(corpus: Path, labels: Path, plan: LabelPlan, size: int, joining: int = 0) -> dict[str, Any]:
    """Choose a coreset from a labelled corpus, on training functions alone.

    Labels are the best lists of single functions. Two of them that are good for different functions are often
    good for both as one list, which is one evaluation; no search on one function has a reason to find it.

    Args:
        corpus: what was labelled.
        labels: its labels.
        plan: the objective, how many candidates, and on how many functions: of those that their labels
            improve, since the others hardly tell lists apart.
        size: at most so many lists.
        joining: so many of the lists chosen first are joined two by two, and it is chosen again among
            both; 0: none.

    Returns:
        What `load_coreset` of `planish.llvm.passes` reads: the LLVM, the objective, and the lists.

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
        "llvm": made.backend.version,
        "objective": plan.objective,
        "lists": [list(each) for each in lists],
    }


def lists_of_table(table: CostTable, objective: str, size: int, *, by_effort: bool = False) -> list[Passes]:
    """Choose of a table's lists by greedy cover, the most useful first.

    Args:
        table: of training functions.
        objective: what is made less.
        size: at most so many.
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
    return [table.columns.lists[place] for place in chosen]


def efforts(lists: Iterable[Passes]) -> NDArray[np.float64]:
    """Give about what each list takes; see `planish.llvm.passes.catalogue`."""
    import numpy as np

    return np.array([pass_cost(passes) for passes in lists])


def drawn(rows: Iterable[Row], size: int, seed: int) -> list[Row]:
    """Draw so many rows; they are all of them where there are no more."""
    every = list(rows)
    return random.Random(seed).sample(every, min(size, len(every)))


def cost_table(
    bench: LabelBench, rows: Iterable[Row], lists: Sequence[Passes]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Run each list on each function.

    Returns:
        The costs after -Oz, by function; and those after each list, functions x lists, infinite where it
        failed. Functions that cannot be measured are left out; their order is not that of the rows.
    """
    import numpy as np

    work, plan = Costing(bench, lists), bench.plan
    done = list(forked(rows, work, _COSTS, plan.processes, at_once=bench.at_once(len(lists))))
    for each in done:
        each.check()
    known = [(d.answer[0], d.answer[1]) for d in done if d.answer and d.answer[0] is not None]
    baseline = np.array([first for first, _ in known], float)
    costs = np.array([[np.inf if c is None else c for c in each] for _, each in known], float)
    return baseline, costs.reshape(len(known), len(lists))
