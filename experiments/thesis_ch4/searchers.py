"""The thesis's random search beside ours: improvement against the number of compilations, as table and plot.

    python experiments/thesis_ch4/searchers.py CORPUS [--plot FILE.html]

The thesis draws lists evenly and minimizes the best at the end (4.3.2); both begin with -Oz here, so that the
curves show what is found beyond it.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from planish.sandbox.fork_pool import Watchdog, forked
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row
from planish.train.labeling.function_search import search
from planish.train.labeling.label_plan import LabelBench, LabelPlan, bench
from planish.tuning.settings import Budget

AT = (1, 3, 10, 20, 40, 100, 200, 400, 1000)
NAMES = {"portfolio": "ours (portfolio)", "random-minimize": "the thesis's (random, minimized)"}


@dataclass(frozen=True)
class Tracing:
    """Follows the best cost of a search on a function, within a child."""

    bench: LabelBench
    evaluations: int

    def __call__(self, row: Row, watchdog: Watchdog) -> list[int] | None:
        made = self.bench
        with made.costing(row, watchdog) as costs:
            baseline = costs.cost(made.baseline) if costs else None
            if costs is None or baseline is None:
                return None
            budget, seed = Budget(trials=self.evaluations), made.seed_of(row)
            search(costs, made.space, made.objective, budget, seed, made.plan.searcher)
            trace = list(costs.ranking.costs.values())[1:]  # as it is comes first
        known = [baseline if cost is None else cost for cost in trace]
        best = list(accumulate(known, min))
        return [baseline, *best[1:], *[best[-1]] * (self.evaluations - len(best))][: self.evaluations]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("--split", default="test")
    given.add_argument("--functions", type=int, default=300)
    given.add_argument("--evaluations", type=int, default=1000)
    given.add_argument("--plot", type=Path, default=Path("searchers.html"))
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--jobs", type=int, default=0)
    asked = given.parse_args()
    rows = list(read_corpus(asked.corpus, asked.split))
    rows = random.Random(asked.seed).sample(rows, min(asked.functions, len(rows)))
    curves = {name: curve(rows, asked, name) for name in NAMES}
    show(curves, len(rows), asked)


def curve(rows: Sequence[Row], asked: argparse.Namespace, searcher: str) -> list[float]:
    """Give the overall improvement after each number of compilations."""
    made = bench(
        LabelPlan(evaluations=asked.evaluations, searcher=searcher, seed=asked.seed, jobs=asked.jobs)
    )
    tracing = Tracing(made, asked.evaluations)
    done = forked(rows, tracing, list[int], made.plan.processes, at_once=made.at_once(asked.evaluations))
    sums = [sum(costs) for costs in zip(*(one.answer for one in done if one.answer), strict=True)]
    return [(sums[0] - each) / sums[0] for each in sums]


def show(curves: dict[str, list[float]], functions: int, asked: argparse.Namespace) -> None:
    import plotly.graph_objects as go

    at = [count for count in AT if count <= asked.evaluations]
    print(f"{functions:,} functions ({asked.split}): improvement over -Oz after so many compilations\n")
    print(f"| | {' | '.join(map(str, at))} |")
    print("|---" * (len(at) + 1) + "|")
    for name, each in curves.items():
        print(f"| {NAMES[name]} | {' | '.join(f'{each[count - 1]:.2%}' for count in at)} |")
    drawn = go.Figure(
        [
            go.Scatter(x=list(range(1, len(each) + 1)), y=[100 * gain for gain in each], name=NAMES[name])
            for name, each in curves.items()
        ]
    )
    drawn.update_layout(
        template="simple_white",
        xaxis_title="compilations a function",
        yaxis_title="instructions saved over -Oz, %",
        xaxis_type="log",
    )
    drawn.write_html(asked.plot, include_plotlyjs=True)
    print(f"\nwrote {asked.plot}")


if __name__ == "__main__":
    main()
