"""NSGA-II beside random search and hill climbing: as many evaluations each, several seeds, the hypervolume.

Hill climbing mutates a member of the front that it has, drawn at random, once for each evaluation. It begins
with the unchanged module, and knows nothing else. The front of each search is measured again interleaved with
the unchanged module, in a fresh process, since of many noisy times the best are the luckiest. A line for each
run is printed as it ends, then the mean and the spread over the seeds.
`python experiments/gevo_ml/searchers.py 2fcnet.mlir --data DIR --trials 64 --seeds 5`
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from planish.core import (
    Candidate,
    Measured,
    Objective,
    Outcome,
    Searcher,
    Task,
    Trial,
    evaluate_in_order,
    rng,
)
from planish.core.front import growth_of, pareto_front
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.space import PatchSpace
from planish.measure.comparison import PairedMeasurement
from planish.measure.executors import LocalExecutor
from planish.search import make_searcher
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "examples" / "hlo"
ROUNDS = 5
"""In which a front is measured again."""
SEARCHERS = ("nsga2", "random", "hill climbing")


class HillClimbing(Searcher):
    """Mutates a member of the front.

    Args:
        space: where to search.
        objectives: of the front.
        seed: the i-th candidate is made with `rng(seed, i)`.
    """

    def __init__(self, space: PatchSpace, objectives: Sequence[Objective], seed: int) -> None:
        self._space, self._objectives, self._seed = space, objectives, seed
        self._trials: list[Trial] = []
        self._known = {space.state_key(space.start())}

    def ask(self, n: int) -> Sequence[Candidate]:
        """Propose one candidate, which was never proposed before."""
        del n
        generator = rng(self._seed, len(self._known))
        front = [trial.candidate for trial in pareto_front(self._trials, self._objectives)]
        child = front[int(generator.integers(len(front)))]
        while (name := self._space.state_key(child)) in self._known:
            child = self._space.mutate(child, generator)
        self._known.add(name)
        return [child]

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what was measured."""
        self._trials += trials


def made(name: str, task: Task, seed: int) -> Searcher:
    """Make a searcher by name."""
    space = HloLevel().space(task, "patches")
    assert isinstance(space, PatchSpace)
    if name == "hill climbing":
        return HillClimbing(space, task.objectives, seed)
    return make_searcher(name, space, task.objectives, seed)


def run(task: Task, searcher: Searcher, count: int) -> list[Trial]:
    """Measure the unchanged module, then so many candidates."""
    trials: list[Trial] = []
    spec = HloLevel().evaluator(task)
    with LocalExecutor(spec, workers=1) as executor:
        asked: Sequence[Candidate] = [Candidate()]
        while asked and len(trials) <= count:
            found = evaluate_in_order(executor, asked)
            answered = [Trial(result.candidate, result.outcome) for result in found if result]
            if not trials:
                spec.set_baseline(answered[0].outcome)  # as a run does: all times are shares of this one
            searcher.tell(answered)
            trials += answered
            asked = searcher.ask(min(8, count + 1 - len(trials))) if len(trials) <= count else ()
    return trials


def measured_again(task: Task, trials: Sequence[Trial]) -> list[Trial]:
    """Measure the front's times anew, as shares of the unchanged module's, which is the first trial.

    Who errs twice as often as that one is left out: it adds nothing to the hypervolume.
    """
    base, (time, error) = trials[0], (objective.name for objective in task.objectives)
    start = value(base.outcome, error)
    front = [t for t in pareto_front(trials[1:], task.objectives) if value(t.outcome, error) < 2 * start]
    with LocalExecutor(HloLevel().evaluator(task, final=True), workers=1) as executor:
        patches = [trial.candidate for trial in (base, *front)]
        bases, *found = PairedMeasurement(executor).measure(patches, ROUNDS)
    again = [base]
    for trial, rounds in zip(front, found, strict=True):
        shares = [value(one, time) / value(other, time) for one, other in zip(rounds, bases, strict=True)]
        seconds = statistics.median(shares) * value(base.outcome, time)
        again.append(replace(trial, outcome=Measured({time: seconds, error: value(trial.outcome, error)})))
    return again


def value(outcome: Outcome, name: str) -> float:
    """Give a value of what was measured, which on a front all were."""
    assert isinstance(outcome, Measured), outcome
    return outcome.values[name]


def main() -> None:
    """Run all, and print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("module")
    given.add_argument("--data", default="")
    given.add_argument("--trials", type=int, default=64)
    given.add_argument("--seeds", type=int, default=5)
    given.add_argument("--searchers", nargs="+", choices=SEARCHERS, default=SEARCHERS)
    asked = given.parse_args()
    path = Path(asked.module) if Path(asked.module).exists() else EXAMPLES / asked.module
    level = HloLevel()
    task = task_of(level, level.load(str(path), {"data": asked.data} if asked.data else {}), Settings())
    volumes: dict[str, list[float]] = {name: [] for name in asked.searchers}
    for seed in range(asked.seeds):
        for name in asked.searchers:
            trials = run(task, made(name, task, seed), asked.trials)
            searched, found = (
                growth_of(some, task.objectives, Candidate()).volume or 0.0
                for some in (trials, measured_again(task, trials))
            )
            volumes[name].append(found)
            print(
                f"seed {seed}, {name}: {found:.3f} after {len(trials) - 1}; searched {searched:.3f}",
                flush=True,
            )
    show(volumes)


def show(volumes: Mapping[str, Sequence[float]]) -> None:
    """Print the table."""
    print("\n| searcher | hypervolume: mean | least | most |\n|---|---|---|---|")
    for name, found in volumes.items():
        print(f"| {name} | {statistics.mean(found):.2f} | {min(found):.2f} | {max(found):.2f} |")


if __name__ == "__main__":
    main()
