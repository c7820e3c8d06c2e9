"""What the coreset and a short search save on functions of packages that nothing was chosen on.

    python experiments/thesis_ch4/heldout.py CORPUS [--objective text_bytes] [--split test validation]

As many functions are drawn of each split. Each function is given -Oz, the coreset's lists, then a search.
The search's seconds are those of the processor in the process that does it, so a machine that is busy with
other work gives what a quiet one gives. All columns are beside -Oz as clang means it. The intervals are
bootstrapped over packages.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from planish.levels.llvm.passes.catalogue import load_coreset
from planish.sandbox.fork_pool import Watchdog, forked
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row
from planish.train.labeling.function_search import FunctionCosts, Passes, search
from planish.train.labeling.label_plan import LabelBench, LabelPlan, bench
from planish.train.labeling.run import HEADS, Saving, cells, summarize
from planish.tuning.settings import Budget

SIZES = (1, 3, 5, 10, 20)


@dataclass(frozen=True)
class Tried:
    """One function: its cost after -Oz, after the best of the first lists, and after the search."""

    package: str
    baseline: int
    after: Sequence[int]
    searched: int
    other: int
    evaluations: int


@dataclass(frozen=True)
class Trying:
    """Tries the coreset's lists and a search on a function, within a child."""

    bench: LabelBench
    lists: Sequence[Passes]
    seconds: float

    def __call__(self, row: Row, watchdog: Watchdog) -> Tried | None:
        made = self.bench
        with made.costing(row, watchdog) as costs:
            baseline = costs.cost(made.baseline) if costs else None
            return None if costs is None or baseline is None else self._tried(row, costs, baseline)

    def _tried(self, row: Row, found: FunctionCosts, baseline: int) -> Tried:
        made = self.bench
        costs = [found.cost(passes) for passes in self.lists]
        unoptimized = found.unoptimized or baseline  # what is left where a list is refused
        known = [unoptimized if cost is None else cost for cost in costs]
        after = [min(known[:size], default=baseline) for size in SIZES]
        search(found, made.space, made.objective, Budget(seconds=self.seconds), made.seed_of(row))
        best = found.ranking.best()
        searched = baseline if best is None else best[0]
        other = found.ranking.other() or baseline
        return Tried(row.package, baseline, after, searched, other, found.ranking.evaluations)


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("--split", nargs="+", default=["test"], help="one or more of them, taken together")
    given.add_argument("--functions", type=int, default=2000, help="of each split")
    given.add_argument("--seconds", type=float, default=1.0, help="of processor time, a function")
    given.add_argument("--objective", default="instructions")
    given.add_argument("--coreset", type=Path, help="a file; else the one that comes with planish")
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--jobs", type=int, default=0)
    asked = given.parse_args()
    rows = [row for split in asked.split for row in drawn(asked, split)]
    made = bench(LabelPlan(asked.objective, seed=asked.seed, jobs=asked.jobs))
    held = json.loads(asked.coreset.read_text())["lists"] if asked.coreset else load_coreset(asked.objective)
    lists = [tuple(each) for each in held][: max(SIZES)]
    show(made, rows, Trying(made, lists, asked.seconds), asked)


def drawn(asked: argparse.Namespace, split: str) -> list[Row]:
    rows = list(read_corpus(asked.corpus, split))
    return random.Random(asked.seed).sample(rows, min(asked.functions, len(rows)))


def show(made: LabelBench, rows: Sequence[Row], trying: Trying, asked: argparse.Namespace) -> None:
    began = time.monotonic()
    done = forked(rows, trying, Tried, made.plan.processes, at_once=made.at_once(2000))
    tried = [one.answer for one in done if one.answer]
    packages = len({one.package for one in tried})
    each = sum(one.evaluations for one in tried) / len(tried)
    print(
        f"{len(tried):,} functions of {packages} packages ({', '.join(asked.split)}), {asked.objective}, "
        f"LLVM {made.bindings.version}; {each:,.0f} evaluations each, in {asked.seconds:g} s of processor "
        f"time after the coreset; {time.monotonic() - began:,.0f} s by the clock\n"
    )
    print(f"| | -Oz backup | {' | '.join(HEADS)} |")
    print("|---" * (len(HEADS) + 2) + "|")
    for place, size in enumerate(SIZES):
        effects = [Saving(one.package, one.baseline, one.after[place]) for one in tried]
        row(f"coreset, {size}", effects)
    name = f"search, {asked.seconds:g} s of processor time"
    row(name, [Saving(one.package, one.baseline, one.other) for one in tried], "no")
    row(name, [Saving(one.package, one.baseline, one.searched) for one in tried], "yes")


def row(name: str, effects: Sequence[Saving], kinds: str = "no yes") -> None:
    for kind in kinds.split():
        summary = summarize(effects, backup=kind == "yes")
        print(f"| {name} | {kind} | {' | '.join(cells({**asdict(summary), 'overall': summary.overall}))} |")


if __name__ == "__main__":
    main()
