"""Chooses the coresets that come with planish, on training functions alone.

    python experiments/thesis_ch4/coreset.py CORPUS LABELS... -o FILE [--objective text_bytes]

The candidates are the shipped lists, and those that saved most in some labels. They are tried on functions
that labels improved, and on others that a few of the lists improve: the rest has nothing to save. A greedy
cover chooses; then each round tries variations of the chosen lists on the same functions, and chooses again
among all that were tried.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import rng
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.levels.llvm.passes.pipeline import available, candidate_of, passes_of
from planish.levels.llvm.passes.space import pass_space
from planish.sandbox.fork_pool import forked
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row
from planish.train.labeling.choice import Costing, greedy_cover, most_saving
from planish.train.labeling.label_plan import LabelBench, LabelPlan, bench, read_labels

Costs = NDArray[np.float64]
Passes = tuple[str, ...]
SIZES = (1, 3, 5, 10, 20, 40)
VARIED = 20
"""Of so many lists the variations are made: the first ones, which a search begins with."""


def main() -> None:
    asked = options()
    made = bench(LabelPlan(asked.objective, seed=asked.seed, jobs=asked.jobs))
    labels = [label for folder in asked.labels for label in read_labels(folder) if label.split == "train"]
    shipped = [*load_coreset(asked.objective), *load_coreset()]
    lists = list(dict.fromkeys([*shipped, *most_saving(labels, asked.candidates)]))
    every = list(read_corpus(asked.corpus, "train"))
    draws = random.Random(asked.seed)
    improved = {label.identity for label in labels if label.saved}
    labeled = {label.identity for label in labels}
    rows = drawn([row for row in every if row.identity in improved], asked.improved, draws)
    some = costs_of(made, rows[: asked.improved // 3], lists)
    rest = drawn([row for row in every if row.identity not in labeled], asked.screened, draws)
    few = [lists[place] for place in greedy_cover(*some, asked.few)]
    costs, baseline = costs_of(made, rest, few)
    found = [row for row, gain in zip(rest, saved(costs, baseline), strict=True) if gain > 0]
    print(f"{len(lists)} lists; {len(rows)} functions, and {len(found)} of {len(rest)} others", flush=True)
    kept = [lists[place] for place in greedy_cover(*some, 4 * asked.size)]
    held: dict[str, Any] = {"llvm": made.bindings.version, "objective": asked.objective}
    for chosen in grown(made, [*rows, *found], kept, asked):
        held["lists"] = [list(each) for each in chosen]
        asked.output.write_text(json.dumps(held, indent=1) + "\n")


def options() -> argparse.Namespace:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("labels", type=Path, nargs="+")
    given.add_argument("--objective", default="instructions")
    given.add_argument("--candidates", type=int, default=200)
    given.add_argument("--improved", type=int, default=500, help="functions that labels improved, at most")
    given.add_argument("--screened", type=int, default=2000, help="others, which a few lists are tried on")
    given.add_argument("--few", type=int, default=8, help="how many lists that are")
    given.add_argument("--rounds", type=int, default=8)
    given.add_argument("--variations", type=int, default=24, help="of each round")
    given.add_argument("--size", type=int, default=40)
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--jobs", type=int, default=0)
    given.add_argument("-o", "--output", type=Path, required=True)
    return given.parse_args()


def drawn(rows: Sequence[Row], count: int, draws: random.Random) -> list[Row]:
    return draws.sample(rows, min(count, len(rows)))


def costs_of(made: LabelBench, rows: Sequence[Row], lists: Sequence[Passes]) -> tuple[Costs, Costs]:
    """Run each list on each function.

    Returns:
        Costs, functions x lists, infinite where a list failed; and the functions' costs after -Oz, 0 where
        it failed, so that nothing can be saved.
    """
    place = {row.identity: i for i, row in enumerate(rows)}
    costs, baseline = np.full((len(rows), len(lists)), np.inf), np.zeros(len(rows))
    answer = tuple[int | None, list[int | None]]
    at_once = made.at_once(len(lists))
    for done in forked(rows, Costing(made, lists), answer, made.plan.processes, at_once=at_once):
        if done.answer and done.answer[0] is not None:
            at = place[done.item.identity]
            baseline[at] = done.answer[0]
            costs[at] = [np.inf if cost is None else cost for cost in done.answer[1]]
    return costs, baseline


def saved(costs: Costs, baseline: Costs) -> Costs:
    """Give what the best of the lists saves, by function."""
    return np.maximum(baseline - costs.min(axis=1, initial=np.inf), 0)


def grown(
    made: LabelBench, rows: Sequence[Row], lists: Sequence[Passes], asked: argparse.Namespace
) -> Iterator[list[Passes]]:
    """Choose among lists, then again and again among them and variations of those chosen."""
    pool = list(lists)
    costs, baseline = costs_of(made, rows, pool)
    for number in range(asked.rounds + 1):
        places = greedy_cover(costs, baseline, asked.size)
        chosen = [pool[place] for place in places]
        sums = [f"{size}: {saved(costs[:, places[:size]], baseline).sum():,.0f}" for size in SIZES]
        print(f"round {number}: the first so many lists save {', '.join(sums)}", flush=True)
        yield chosen
        if number < asked.rounds:
            fresh = variations(chosen[:VARIED], set(pool), made, number, asked)
            costs = np.hstack([costs, costs_of(made, rows, fresh)[0]])
            pool += fresh


def variations(
    chosen: Sequence[Passes], known: set[Passes], made: LabelBench, number: int, asked: argparse.Namespace
) -> list[Passes]:
    """Vary lists, by passes that are frequent in them; each is as likely."""
    space = pass_space("passes", available(made.bindings), asked.objective, coreset=chosen)
    draws, fresh = rng(asked.seed, number), dict[Passes, None]()
    while len(fresh) < asked.variations:
        one, other = (candidate_of(chosen[int(i)]) for i in draws.integers(len(chosen), size=2))
        start = one if draws.random() < 0.7 else space.crossover(one, other, draws)[0]
        varied = passes_of(space.mutate(start, draws))
        if varied and varied not in known:
            fresh[varied] = None
    return list(fresh)


if __name__ == "__main__":
    main()
