"""Chains of the guided search as AutoTVM publishes them, and as they are here, at equal measurements.

    python experiments/autotvm/chains.py [--seeds 2] [--trials 96]

On the recorded programs by which no constant of the search was chosen (`plans.FRESH`), searches differ in how
chains go on and how far they move for a batch. The table has means over programs and seeds of the best speed,
as a share of the best of the recording, after so many trials, and the seconds of processor time that the
searcher took for a search.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from plans import ALONE, FRESH
from recorded import RecordedSpace, curve_of, recorded
from searching import AT_ONCE, TIME, Options, Setting

from planish.search import guided, make_searcher

POINTS = (16, 32, 64, 96)
NEVER = 1000


@dataclass(frozen=True)
class Way:
    """Constants of the chains.

    Args:
        era: batches after which chains begin anew.
        options: of the searcher.
    """

    era: int = guided.ERA
    options: Options = field(default_factory=dict[str, str | int | float | bool])


WAYS: Mapping[str, Way] = {
    "as it is: anew every 8 batches, 4 moves for 64": Way(),
    "never anew": Way(NEVER),
    "never anew, from where they ended": Way(NEVER, {"restarts": 0}),
    "64 moves for 64": Way(options={"steps": 64}),
    "500 moves for 64": Way(options={"steps": 500}),
    "as published: from where they ended, 500 moves for 64": Way(NEVER, {"restarts": 0, "steps": 500}),
}


def searched(setting: Setting, way: Way, seed: int, trials: int) -> tuple[Sequence[float], float]:
    """Return the best speed so far after each trial, as a share of the best there is, and the seconds."""
    space = recorded(setting)
    guided.ERA = way.era
    begun = time.process_time()
    made = make_searcher("model-guided", RecordedSpace(space), [TIME], seed, {**ALONE, **way.options})
    curve = curve_of(made, space, trials)
    return curve, time.process_time() - begun


def main() -> None:
    """Print the table, a line as it is found."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--seeds", type=int, default=2)
    given.add_argument("--trials", type=int, default=96)
    asked = given.parse_args()
    points = [point for point in POINTS if point <= asked.trials]
    print(f"| | {' | '.join(f'{point} trials' for point in points)} | standard error | s |", flush=True)
    print("|---|" + "---|" * (len(points) + 2))
    searched(FRESH[0], Way(), 0, AT_ONCE)  # imports take time, too
    for name, way in WAYS.items():
        found = [
            searched(setting, way, seed, asked.trials) for setting in FRESH for seed in range(asked.seeds)
        ]
        curves = np.array([[curve[min(point, len(curve)) - 1] for point in points] for curve, _ in found])
        error = curves[:, -1].std(ddof=1) / np.sqrt(len(curves))
        shares = " | ".join(f"{100 * share:.1f} %" for share in curves.mean(axis=0))
        seconds = np.mean([seconds for _, seconds in found])
        print(f"| {name} | {shares} | {100 * error:.1f} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
