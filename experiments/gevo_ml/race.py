"""What a race against the front, in place of twice the baseline's error, would have spared a recorded search.

    python experiments/gevo_ml/race.py STORE RUN [--images 1000] [--batch 100]

Each candidate meets the front as it was then, and draws images of which as many are wrong as were measured.
It is shown no more once its error is beyond that of a faster member, by the bound of the search's race.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planish.core import Trial
from planish.core.front import pareto_front
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.scoring.scorers import Race
from planish.store import open_store

OBJECTIVES = (HloLevel.objectives["time_s"], HloLevel.objectives["error"])


@dataclass(frozen=True)
class Spared:
    """Seconds of verifying: all, what the race spares, and what the first batch would if it decided."""

    seconds: float
    by_race: float
    by_oracle: float


def looks(race: Race, wrong: np.ndarray, batch: int) -> int:
    """Give how many images are seen until a race is lost, at powers of two of batches."""
    counts = [batch << power for power in range(len(wrong).bit_length()) if batch << power < len(wrong)]
    lost = (n for n in counts if race.lost(float(wrong[:n].mean()), n))
    return next(lost, len(wrong))


def spared(trial: Trial, front: Sequence[Trial], limit: Race, wrong: np.ndarray, batch: int) -> Spared:
    """Compare both races for one candidate."""
    seconds, costs = trial.seconds.get("verify", 0.0), trial.costs(OBJECTIVES)
    rivals = [known for each in front if (known := each.costs(OBJECTIVES)) and costs and known[0] <= costs[0]]
    if costs is None or not rivals or costs[1] <= (least := min(rival[1] for rival in rivals)):
        return Spared(seconds, 0.0, 0.0)  # it enters the front
    seen = looks(limit, wrong, batch)
    fewer = min(seen, looks(Race(least), wrong, batch))
    return Spared(seconds, seconds * (1 - fewer / seen), seconds * (1 - min(batch, seen) / seen))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store")
    parser.add_argument("run")
    parser.add_argument("--images", type=int, default=1000, help="of the search's part")
    parser.add_argument("--batch", type=int, default=100)
    asked, rng = parser.parse_args(), np.random.default_rng(0)
    with open_store(asked.store) as store:
        trials = store.run_trials(store.run(asked.run).id, HloLevel().steps)
    baseline = next(
        costs[1] for each in trials if not each.candidate.steps and (costs := each.costs(OBJECTIVES))
    )
    found = list[Spared]()
    for place, trial in enumerate(trials):
        error = (trial.costs(OBJECTIVES) or (0.0, 1.0))[1]
        wrong = rng.permutation(asked.images) < round(error * asked.images)
        front = pareto_front(trials[:place], OBJECTIVES)
        found.append(spared(trial, front, Race.against(baseline), wrong, asked.batch))
    every = sum(sum(each.seconds.values()) for each in trials)
    rows = {
        "all evaluations": every,
        "answering for images": sum(each.seconds for each in found),
        "spared by the race against the front": sum(each.by_race for each in found),
        "spared if the first batch decided": sum(each.by_oracle for each in found),
    }
    print(f"| {len(trials)} evaluations | s | share |\n|---|--:|--:|")
    for name, seconds in rows.items():
        print(f"| {name} | {seconds:.1f} | {seconds / every:.1%} |")


if __name__ == "__main__":
    main()
