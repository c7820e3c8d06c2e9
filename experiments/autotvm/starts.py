"""Trials that the first candidates of the shipped model save on recorded spaces, over many seeds.

    python experiments/autotvm/starts.py [--seeds 10] [--trials 64]

Each recorded program is searched by the genetic searcher, which is the default one of `loops`, without a
model and with the shipped one, from the same seeds. A line has medians of the trials to 95 % of the best of
the recording, the geometric mean of their ratio, on how many seeds the search with the model took more than
1.1 times as many trials and on how many fewer, and the mean share of the best after 8 trials. Programs with
fewer than 64 drawn candidates are left out. No machine is needed, so only the seeds differ.
"""

from __future__ import annotations

import argparse
from statistics import fmean, geometric_mean, median

from plans import FRESH, SOURCES, TARGETS, settings
from recorded import Recorded, RecordedSpace, curve_of, recorded
from searching import TIME, Options
from tables import row, trials_to

from planish.search import make_searcher

SHARE, FIRST, SLOWER = 0.95, 8, 1.1
"""As in `experiments/learned.py`."""
FEWEST_DRAWN = 64
PROGRAMS = (
    *SOURCES,
    *TARGETS,
    *settings("C11", "64x64x64", "192x192x192", "256x256x256", "384x384x384"),
    *FRESH,
)


def searched(space: Recorded, options: Options, seed: int, trials: int) -> list[float]:
    """Search a recorded space; return the share of its best after each trial."""
    return curve_of(make_searcher("genetic", RecordedSpace(space), [TIME], seed, options), space, trials)


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--seeds", type=int, default=10)
    given.add_argument("--trials", type=int, default=64)
    asked = given.parse_args()
    row(["", "no model", "shipped", "ratio", "slower", "faster", f"after {FIRST}: no model", "shipped"])
    row(["---"] * 8)
    ratios, slower, faster = list[float](), list[int](), list[int]()
    for setting in PROGRAMS:
        space = recorded(setting)
        if len(space.drawn) < FEWEST_DRAWN:
            continue
        curves = [
            [searched(space, options, seed, asked.trials) for seed in range(asked.seeds)]
            for options in ({"model": "none"}, {})
        ]
        counts = [[min(trials_to(each, SHARE), asked.trials + 1) for each in found] for found in curves]
        pairs = [mine / none for none, mine in zip(*counts, strict=True)]
        ratios.append(geometric_mean(pairs))
        slower.append(sum(ratio > SLOWER for ratio in pairs))
        faster.append(sum(ratio < 1 for ratio in pairs))
        shares = [f"{fmean(each[FIRST - 1] for each in found):.1%}" for found in curves]
        medians = [f"{median(each):g}" for each in counts]
        row([setting.text, *medians, f"{ratios[-1]:.2f}", str(slower[-1]), str(faster[-1]), *shares])
    whole = len(ratios) * asked.seeds
    row([f"{len(ratios)} programs", "", "", f"{geometric_mean(ratios):.2f}", f"{sum(slower) / whole:.0%}",
         f"{sum(faster) / whole:.0%}", "", ""])  # fmt: skip


if __name__ == "__main__":
    main()
