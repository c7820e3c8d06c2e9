"""GEVO-ML, 6.2, by counted evaluations: 2fcNet's least error at no more time, where others use the machine.

    python experiments/gevo_ml/counted.py --data FOLDER_WITH_MNIST [--trials 32] [--seed 0] [--seeds 3]

`training.py` has seconds for a search and its end, of which others may take most. Here each seed has so many
evaluations by NSGA-II. The front is measured again interleaved with the unchanged module, in a fresh
process, by processor time; who is slower beyond the interval of the rounds is out. The others are trained
whole, and that of least error on the validation data is taken. Prints mean and spread over the seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from study import spread
from training import PARTS, PLAIN, RATE, row, scored, with_rate

from planish.core import Candidate, Measured, Outcome, Ratio, Task, Trial
from planish.core.front import pareto_front
from planish.levels.hlo.evaluator import scores_at_the_end
from planish.levels.hlo.level import HloLevel
from planish.measure import by_processor_time
from planish.measure.comparison import PairedMeasurement
from planish.measure.executors import LocalExecutor
from planish.measure.intervals import ratio
from planish.tuning.api import task_of
from planish.tuning.settings import Settings
from searchers import EXAMPLES, made, run, value

ROUNDS = 9


def main() -> None:
    """Run all seeds, and print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--data", default="")
    given.add_argument("--trials", type=int, default=32)
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--seeds", type=int, default=3)
    asked = given.parse_args()
    level = HloLevel()
    named = {"data": asked.data} if asked.data else {}
    task = task_of(level, level.load(str(EXAMPLES / "2fcnet.mlir"), named), Settings())
    errors: dict[str, list[float]] = {part: [] for part in PARTS}
    for seed in range(asked.seed, asked.seed + asked.seeds):
        found = best(task, run(task, made("nsga2", task, seed), asked.trials), seed)
        for part in PARTS:
            errors[part].append(found[f"error_{part}"])
    spread({f"evolved, at no more time: error on the {part} data": errors[part] for part in PARTS}, ".2%")
    print("\n| error | validation | final |\n|---|---|---|", flush=True)
    for name, rate in (("original", RATE), (f"its learning rate of {RATE} set to {PLAIN}", PLAIN)):
        row(name, scored(task, with_rate(task, rate)))


def best(task: Task, trials: Sequence[Trial], seed: int) -> Mapping[str, float]:
    """Give the errors of the best that is no slower, and print what it is."""
    start = value(trials[0].outcome, "error")
    front = [t for t in pareto_front(trials[1:], task.objectives) if value(t.outcome, "error") < start]
    with LocalExecutor(HloLevel().evaluator(task, final=True), workers=1) as executor:
        patches = [Candidate(), *(trial.candidate for trial in front)]
        base, *times = PairedMeasurement(executor).measure(patches, ROUNDS)
    shares = [beside(rounds, base) for rounds in times]
    kept = [place for place, share in enumerate(shares) if share.low <= 1]
    candidates = [front[place].candidate for place in kept]
    whole = scores_at_the_end(task, candidates, partial(LocalExecutor, workers=1), PARTS)
    known = [
        (each.values, place) for each, place in zip(whole, kept, strict=True) if isinstance(each, Measured)
    ]
    found, place = min(known, key=lambda each: each[0]["error_validation"])
    share, steps = shares[place], front[place].candidate.steps
    print(
        f"seed {seed}: {len(trials) - 1} evaluations, {len(front)} better on the front, {len(kept)} no slower"
    )
    print(f"  time {share.value:.3f} ({share.low:.3f} to {share.high:.3f}), error in the search", end=" ")
    print(
        f"{value(front[place].outcome, 'error'):.2%}, final {found['error_final']:.2%}: {[*map(str, steps)]}"
    )
    return {part: found[part] for part in (f"error_{each}" for each in PARTS)}


def beside(rounds: Sequence[Outcome], base: Sequence[Outcome]) -> Ratio:
    """Give the ratio of times of one to the unchanged module's, by processor time, with its interval."""
    own, unchanged = ([_processor(one) for one in each] for each in (rounds, base))
    return ratio([own], [unchanged])


def _processor(outcome: Outcome) -> float:
    assert isinstance(outcome, Measured), outcome
    samples = sorted(outcome.samples[by_processor_time("time_s")])
    return samples[len(samples) // 2]


if __name__ == "__main__":
    main()
