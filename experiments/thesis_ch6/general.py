"""Figure 6.3 on other levels: ways of sampling LoopTune's policy, and a policy made of graph's class lists.

    python experiments/thesis_ch6/general.py loops [--programs 6]
    python experiments/thesis_ch6/general.py graph [--programs 6] [--models FOLDER]

Programs are the thesis's test matmuls, and models of FOLDER. Samples of all ways are built, verified and
timed in this process, each state once, in any order; the best few are timed again, alternately.
The table has geometric means over the programs of the best of so many samples, as shares of the best that any
way has found. Draws have a seed for each program.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from planish.core import Candidate, CanStep, Evaluator, Level, Measured, Stage, Task
from planish.core.registry import level_named
from planish.levels.loops.workloads import matmul, thesis_split
from planish.models.named_policies import policy_named
from planish.search.decoding import Decoding, PrefixTree, decode

BUDGETS = (1, 3, 5, 10, 30)
WAYS: Mapping[str, Decoding] = {
    "Priority Sampling": Decoding("priority"),
    "PS geometric": Decoding("priority", by="mean"),
    "PS by the product": Decoding("priority", by="whole"),
    "Temperature 1": Decoding("temperature"),
    "Nucleus, Temp1": Decoding("nucleus"),
    "Nucleus, Temp1.4": Decoding("nucleus", temperature=1.4),
    "Beam 30": Decoding("beam"),
    "Stochastic beam": Decoding("stochastic-beam"),
    "Unique randomizer": Decoding("unique"),
}
AGAIN, TURNS = 8, 5
"""So many of the best are timed again, so often."""
SMALL = Path(__file__).parents[2] / "tests" / "graph" / "small"


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("level", choices=["loops", "graph"])
    given.add_argument("--programs", type=int, default=6)
    given.add_argument("--policy", default="auto")
    given.add_argument("--models", type=Path, default=SMALL)
    asked = given.parse_args()
    level = level_named(asked.level)
    name, objective = ("steps", "time_s") if asked.level == "loops" else (level.spaces[0], "latency")
    found = list[Mapping[str, Sequence[float]]]()
    for seed, task in enumerate(tasks(level, objective, asked)):
        space = level.space(task, name)
        assert isinstance(space, CanStep)
        tree = PrefixTree(policy_named(space, asked.policy), space)
        ways = {
            way: [node.candidate for node in decode(tree, replace(how, samples=BUDGETS[-1], seed=seed))]
            for way, how in WAYS.items()
        }
        found.append(shares(space, level.evaluator(task)(), objective, ways))
    table(found)


def tasks(level: Level, objective: str, asked: argparse.Namespace) -> Iterator[Task]:
    """Give the programs."""
    if asked.level == "loops":
        programs = [matmul(*size) for size in thesis_split()[1][: asked.programs]]
    else:
        files = sorted(asked.models.glob("*.onnx"))[: asked.programs]
        programs = [level.load(str(file), {}) for file in files]
    for program in programs:
        target = level.target(program, 1)
        yield Task(program, target, (level.objectives[objective],), level.version)


def shares(
    space: CanStep, evaluator: Evaluator, objective: str, ways: Mapping[str, Sequence[Candidate]]
) -> Mapping[str, Sequence[float]]:
    """Measure what all ways gave; give the best of each budget as a share of the best of all."""
    states = {space.state_key(each): each for lists in ways.values() for each in lists}
    order = sorted(states)
    random.Random(0).shuffle(order)
    values = {state: measured(evaluator, states[state], objective) for state in order}
    best = sorted(values, key=lambda state: values[state])[:AGAIN]
    turns = [{state: measured(evaluator, states[state], objective) for state in best} for _ in range(TURNS)]
    values |= {state: statistics.median(turn[state] for turn in turns) for state in best}
    least = min(values.values())
    reached = {way: [values[space.state_key(each)] for each in lists] for way, lists in ways.items()}
    return {way: [least / min(costs[:count]) for count in BUDGETS if costs] for way, costs in reached.items()}


def measured(evaluator: Evaluator, candidate: Candidate, objective: str) -> float:
    """Give what a candidate takes; for ever where it fails."""
    outcome = evaluator.evaluate(candidate, untimed)
    return outcome.values[objective] if isinstance(outcome, Measured) else float("inf")


@contextmanager
def untimed(stage: Stage) -> Generator[None]:
    """Time no stage."""
    del stage
    yield


def table(found: Sequence[Mapping[str, Sequence[float]]]) -> None:
    print(f"{len(found)} programs\n\n| samples | {' | '.join(map(str, BUDGETS))} |")
    print("|---" * (len(BUDGETS) + 1) + "|")
    for way in WAYS:
        columns = zip(*(each[way] for each in found), strict=True)
        means = [statistics.geometric_mean(max(share, 1e-3) for share in column) for column in columns]
        print(f"| {way} | {' | '.join(f'{mean:.3f}' for mean in means)} |")


if __name__ == "__main__":
    main()
