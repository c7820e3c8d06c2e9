"""The guided search beside random search and the level's own, at equal measurements: `graph` and `hlo`.

    python experiments/autotvm/levels.py build/levels.jsonl [--seeds 5] [--trials 48] [--budget 600]

A candidate is measured three times and counts by the middle, whoever asks for it and however often: so
searches of a program differ by what they ask for alone. The file has what was measured, and a later call goes
on; searches are cheap, and are made anew from it. After `--budget` seconds nothing more is measured, and a
seed that would need it is left out. Of StableHLO the time counts, of patches whose error is at most
`WORSE` times the unchanged module's; others count as failures.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tables import show

from planish.core import Candidate, Failed, Level, Measured, Space, Task, Trial, evaluate
from planish.core.registry import load_program
from planish.measure.executors import LocalExecutor
from planish.search import make_searcher
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS: Mapping[str, tuple[str, str, str]] = {
    "vit": ("graph", "../tests/levels/graph/small/vit-small-dynamo-raw.onnx", "relevant"),
    "gpt": ("graph", "../tests/levels/graph/small/gpt-small-dynamo-raw.onnx", "relevant"),
    "mobilenetv2": ("graph", "../tests/levels/graph/small/mobilenetv2-small-torchscript.onnx", "relevant"),
    "transformer": ("hlo", "hlo/transformer.mlir", "patches"),
}
"""Name to level, file and space."""
OBJECTIVES = {"graph": ("latency",), "hlo": ()}
"""None: the program's usual ones, the time and the error."""
WORSE = 1.02
OWN = {"graph": "portfolio", "hlo": "nsga2"}
"""The levels' own searchers."""
AT_ONCE = 4
"""Candidates that are asked for at once."""
TIMES = 3
"""A candidate is measured so often."""


class SpentError(Exception):
    """The budget is used up."""


@dataclass(frozen=True)
class Bench:
    """A program whose candidates are measured once.

    Args:
        task: with one objective.
        space: of the task.
        executor: measures.
        known: hash of a candidate to its cost; None where it failed.
        file: where what is measured goes.
        name: of the program.
        end: by the monotonic clock; nothing is measured after it.
        most: cost of the second objective that is allowed; 0 where there is none.
    """

    task: Task[Any]
    space: Space
    executor: LocalExecutor
    known: dict[str, float | None]
    file: Path
    name: str
    end: float
    most: float = 0.0

    def costs(self, candidates: Sequence[Candidate]) -> list[float | None]:
        """Give what candidates cost; what is not known is measured."""
        missing = [each for each in candidates if each.hash not in self.known]
        if missing:
            if time.monotonic() > self.end:
                raise SpentError
            found: dict[str, list[float | None]] = defaultdict(list)
            for _ in range(1 if self.task.objectives[0].exact else TIMES):
                for result in evaluate(self.executor, missing):
                    cost = self._cost(Trial(result.candidate, result.outcome))
                    found[result.candidate.hash].append(cost)
            self.known.update({name: _middle(costs) for name, costs in found.items()})
            rows = [(self.name, each.hash, self.known.get(each.hash)) for each in missing]
            with self.file.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        return [self.known.get(each.hash) for each in candidates]

    def _cost(self, trial: Trial) -> float | None:
        costs = trial.costs(self.task.objectives)
        if costs is None or (self.most and costs[1] > self.most):
            return None
        return costs[0]

    def search(self, searcher: str, options: Mapping[str, Any], seed: int, trials: int) -> Sequence[float]:
        """Search; gives the least cost after each trial, infinite while nothing ran."""
        objective = self.task.objectives[0]
        made = make_searcher(searcher, self.space, [objective], seed, options)
        best, curve = math.inf, list[float]()
        while len(curve) < trials and (asked := made.ask(min(AT_ONCE, trials - len(curve)))):
            costs = self.costs(asked)
            outcomes = [
                Failed("run", "not measured", "") if cost is None else Measured({objective.name: cost})
                for cost in costs
            ]
            pairs = zip(asked, outcomes, strict=True)
            made.tell([Trial(*pair, number) for number, pair in enumerate(pairs, len(curve))])
            for cost in costs:
                best = best if cost is None else min(best, cost)
                curve.append(best)
        return curve


def _error(here: Bench) -> float:
    """Give the error of the unchanged module."""
    here.executor.submit([Candidate()], math.inf)
    (answer,) = here.executor.results()
    costs = Trial(Candidate(), answer.outcome, 0).costs(here.task.objectives)
    assert costs is not None
    return costs[1]


def _middle(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return statistics.median(known) if known else None


@contextmanager
def bench(name: str, file: Path, seconds: float, objective: str | None) -> Generator[Bench]:
    """Start the workers for a program, and read what is known of it."""
    level_name, path, space = PROGRAMS[name]
    level: Level[Any]
    level, program = load_program(str(EXAMPLES / path), level_name, {})
    task = task_of(level, program, Settings(objectives=(objective,) if objective else OBJECTIVES[level_name]))
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    known = {row[1]: row[2] for row in map(json.loads, lines) if row[0] == name}
    with LocalExecutor(level.evaluator(task, final=False), workers=1) as executor:
        here = Bench(task, level.space(task, space), executor, known, file, name, time.monotonic() + seconds)
        yield here if len(task.objectives) == 1 else replace(here, most=WORSE * _error(here))


def main() -> None:
    """Read the command line."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("file", type=Path)
    given.add_argument("--seeds", type=int, default=5)
    given.add_argument("--trials", type=int, default=48)
    given.add_argument("--budget", type=float, default=600.0, help="seconds, for each program")
    given.add_argument("--objective", help="of graphs, in place of the latency; model_size has no noise")
    given.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    asked = given.parse_args()
    for name in asked.programs:
        own = OWN[PROGRAMS[name][0]]
        ways = {"random": ("random", {}), own: (own, {}), "model-guided": ("model-guided", {"model": "none"})}
        found: dict[str, list[Sequence[float]]] = {way: [] for way in ways}
        with bench(name, asked.file, asked.budget, asked.objective) as here, suppress(SpentError):
            for seed in range(asked.seeds):
                curves = [here.search(*given, seed, asked.trials) for given in ways.values()]
                for way, curve in zip(ways, curves, strict=True):
                    found[way].append(curve)
                print(name, "seed", seed, flush=True)
        if not found[own]:
            print(f"{name}: {len(here.known)} candidates are known, too few for a seed; call again")
            continue
        costs = [cost for cost in here.known.values() if cost is not None]
        print(f"\n**{name}**: {len(here.known)} candidates; the least {min(costs):.4g}\n")
        least = min(costs)
        show(
            {way: {name: [[least / each for each in c] for c in curves]} for way, curves in found.items()},
            asked.trials,
        )


if __name__ == "__main__":
    main()
