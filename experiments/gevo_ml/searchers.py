"""NSGA-II beside random search and hill climbing: as many evaluations each, several seeds, the hypervolume.

Hill climbing mutates a member of the front that it has, drawn at random, once for each evaluation. It begins
with the unchanged module, and knows nothing else. A line for each run is printed as it ends, then the mean
and the spread over the seeds.
`python experiments/gevo_ml/searchers.py 2fcnet.mlir --data DIR --trials 72 --seeds 5`
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from planish.core import Candidate, Objective, Searcher, Task, Trial, evaluate, growth_of, pareto_front, rng
from planish.executors import LocalExecutor
from planish.hlo.level import HloLevel
from planish.hlo.space import PatchSpace
from planish.search import make_searcher
from planish.settings import Settings
from planish.tuning.api import task_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "hlo"
SEARCHERS = ("nsga2", "random", "hill climbing")


class HillClimbing:
    """Mutates a member of the front.

    Args:
        space: where to search.
        objectives: of the front.
        seed: the i-th candidate is made with `rng(seed, i)`.
    """

    def __init__(self, space: PatchSpace, objectives: Sequence[Objective], seed: int) -> None:
        self._space, self._objectives, self._seed = space, objectives, seed
        self._trials: list[Trial] = []
        self._known = {space.state(space.start())}

    def ask(self, n: int) -> Sequence[Candidate]:
        """Propose one candidate, which was never proposed before."""
        del n
        generator = rng(self._seed, len(self._known))
        front = [trial.candidate for trial in pareto_front(self._trials, self._objectives)]
        child = front[int(generator.integers(len(front)))]
        while (name := self._space.state(child)) in self._known:
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
    with LocalExecutor(HloLevel().evaluator(task), workers=1) as executor:
        asked: Sequence[Candidate] = [Candidate()]
        while asked and len(trials) <= count:
            found = {answer.position: answer.outcome for answer in evaluate(executor, asked)}
            told = [Trial(candidate, found[place]) for place, candidate in enumerate(asked)]
            searcher.tell(told)
            trials += told
            asked = searcher.ask(min(8, count + 1 - len(trials))) if len(trials) <= count else ()
    return trials


def main() -> None:
    """Run all, and print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("module")
    given.add_argument("--data", default="")
    given.add_argument("--trials", type=int, default=72)
    given.add_argument("--seeds", type=int, default=5)
    asked = given.parse_args()
    path = Path(asked.module) if Path(asked.module).exists() else EXAMPLES / asked.module
    level = HloLevel()
    task = task_of(level, level.load(str(path), {"data": asked.data} if asked.data else {}), Settings())
    volumes: dict[str, list[float]] = {name: [] for name in SEARCHERS}
    for seed in range(asked.seeds):
        for name in SEARCHERS:
            trials = run(task, made(name, task, seed), asked.trials)
            volume = growth_of(trials, task.objectives, Candidate()).volume or 0.0
            volumes[name].append(volume)
            print(f"seed {seed}, {name}: {volume:.3f} after {len(trials) - 1}", flush=True)
    show(volumes)


def show(volumes: Mapping[str, Sequence[float]]) -> None:
    """Print the table."""
    print("\n| searcher | hypervolume: mean | least | most |\n|---|---|---|---|")
    for name, found in volumes.items():
        print(f"| {name} | {statistics.mean(found):.2f} | {min(found):.2f} | {max(found):.2f} |")


if __name__ == "__main__":
    main()
