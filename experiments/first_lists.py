"""What a search of pass lists has found after few evaluations, by what it begins with.

    python experiments/first_lists.py [CORPUS] [--functions 250] [--trials 101] [--package sqlite3 ...]

Functions are of packages that no list and no policy was made from, by default five of those of the sample of
planish. All searches begin with -Oz. Then comes the coreset; or the policy's most probable lists before
it; or, as where a user has tuned the other functions of the package, what was best on those that are similar.
The first table has what is saved over -Oz, in instructions of all functions, after so many evaluations of
each; the second, over the functions that any of the searches improves, how many evaluations they take to 95 %
of what the best of the searches saves on all of them.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from planish.core import Candidate, Measured, Objective, SearchContext, Trial, Tried, evaluate
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.pipeline import candidate_of, passes_of
from planish.levels.llvm.passes.space import oz_of, recommended
from planish.sandbox.fork_pool import Watchdog, forked
from planish.search.minimization import Portfolio
from planish.train.background import HELD_OUT
from planish.train.corpus.reader import SAMPLE, read_corpus
from planish.train.corpus.shards import Row
from planish.train.labeling.function_search import FunctionExecutor, observed_space

AT = (1, 2, 3, 4, 6, 8, 11, 16, 21, 41, 101, 201)
"""Evaluations of the table, -Oz included."""
OBJECTIVE = Objective("instructions", exact=True)
SHARE = 0.95


def never(passes: Sequence[str], values: Mapping[str, float]) -> bool:
    """Run no list again: what varies from run to run does so in every arm."""
    del passes, values
    return False


@dataclass(frozen=True)
class Arm:
    """What a search begins with.

    Args:
        policy: as the option of `portfolio`.
        lists: of the policy, as the option.
        knows: whether the other functions of the package were tuned before.
    """

    policy: str = "none"
    lists: int = 0
    knows: bool = False


ARMS: Mapping[str, Arm] = {
    "the coreset": Arm(),
    "1 list of the policy": Arm("auto", 1),
    "3 lists of the policy": Arm("auto", 3),
    "8 lists of the policy": Arm("auto", 8),
    "40 lists of the policy": Arm("auto", 40),
    "similar functions of the package": Arm(knows=True),
    "both": Arm("auto", 8, knows=True),
}


@dataclass(frozen=True)
class Searching:
    """Searches on a function, within a child.

    Args:
        arm: what the search begins with.
        trials: how many lists it measures.
        known: what was best on other functions, by package.
    """

    arm: Arm
    trials: int
    known: Mapping[str, Tried] = field(default_factory=dict[str, Tried])

    def __call__(self, row: Row, watchdog: Watchdog) -> tuple[list[int], list[str]] | None:
        bindings, every = open_bindings(), elements()
        oz = oz_of({*every})
        assert oz is not None
        space = observed_space(bindings, tuple(every.values()), (oz,), row.ir)
        others = {text: known for text, known in self.known.get(row.package, {}).items() if text != row.ir}
        warm = recommended(row.ir, others) if self.arm.knows else ()
        options = {"policy": self.arm.policy, **({"proposed": self.arm.lists} if self.arm.lists else {})}
        searcher = Portfolio(space, (OBJECTIVE,), 0, SearchContext(warm_start=warm), **options)  # pyright: ignore[reportArgumentType]
        costs = dict[Candidate, int | None]()
        executor = FunctionExecutor(bindings, row.ir, [OBJECTIVE.name], never, watchdog)
        with closing(executor):
            while len(costs) < self.trials and (asked := searcher.ask(1)):
                (answer,) = evaluate(executor, asked)
                outcome = answer.outcome
                searcher.tell([Trial(asked[0], outcome)])
                found = outcome.values[OBJECTIVE.name] if isinstance(outcome, Measured) else None
                costs[asked[0]] = None if found is None else int(found)
        baseline = costs[candidate_of((oz,))]
        if baseline is None:
            return None
        trace = list(accumulate((baseline if cost is None else cost for cost in costs.values()), min))
        best = min(costs, key=lambda each: baseline if costs[each] is None else costs[each] or 0)
        return [*trace, *[trace[-1]] * (self.trials - len(trace))], list(passes_of(best))


def winners(rows: Sequence[Row], found: Sequence[tuple[list[int], list[str]]]) -> Mapping[str, Tried]:
    """Return what was best on each function, by package."""
    known = defaultdict[str, dict[str, list[tuple[Candidate, float | None]]]](dict)
    for row, (trace, passes) in zip(rows, found, strict=True):
        if trace[-1] < trace[0]:
            known[row.package][row.ir] = [(candidate_of(passes), trace[-1] / trace[0])]
    return known


def main() -> None:
    """Print the tables, a line as it is found."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path, nargs="?", default=SAMPLE)
    given.add_argument("--package", nargs="+", default=HELD_OUT)
    given.add_argument("--functions", type=int, default=250)
    given.add_argument("--trials", type=int, default=101)
    asked = given.parse_args()
    rows = [row for row in read_corpus(asked.corpus) if row.package in asked.package]
    rows = random.Random(0).sample(rows, min(asked.functions, len(rows)))
    at = [count for count in AT if count <= asked.trials]
    print(f"{len(rows):,} functions of {', '.join(sorted({row.package for row in rows}))}\n")
    print(f"| saved over -Oz, by evaluations | {' | '.join(map(str, at))} |")
    print("|---" * (len(at) + 1) + "|")
    known, traces = dict[str, Tried](), dict[str, list[list[int]]]()
    for name, arm in ARMS.items():
        done = forked(
            rows, Searching(arm, asked.trials, known), tuple[list[int], list[str]] | None, 1, at_once=8
        )
        by_row = {one.item.identity: one.answer for one in done if one.answer}
        kept = [row for row in rows if row.identity in by_row]
        found = [by_row[row.identity] for row in kept]
        traces[name] = [trace for trace, _ in found]
        if not known:
            known = {**winners(kept, found)}
        sums = [sum(costs) for costs in zip(*traces[name], strict=True)]
        print(
            f"| {name} | {' | '.join(f'{1 - sums[count - 1] / sums[0]:.2%}' for count in at)} |", flush=True
        )
    sums = {name: [sum(costs) for costs in zip(*each, strict=True)] for name, each in traces.items()}
    start = next(iter(sums.values()))[0]
    goal = start - SHARE * (start - min(each[-1] for each in sums.values()))
    print(f"\n| evaluations to {SHARE:.0%} of the most that is saved | |\n|---|--:|")
    for name, each in sums.items():
        reached = next((str(number) for number, total in enumerate(each, 1) if total <= goal), "not reached")
        print(f"| {name} | {reached} |")


if __name__ == "__main__":
    main()
