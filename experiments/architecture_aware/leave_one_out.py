"""How much of a search's gain does its class's list get, on a network that was never measured?

    python experiments/architecture_aware/leave_one_out.py --folder models --store leave.db --trials 200

Every model is searched. Then each is left out in turn: the lists are learnt from the others' trials alone,
and what they bring is measured with 0 measurements (the first list, unseen), 1 (the first list, if it is
measured to be better than the baseline) and 10 (the best of the first ten). At the end these, the paper's
list (AS-0) and the search's winner are measured again interleaved with the baseline. The share is of
logarithms: 100 % is the search's gain. The same command goes on where it was stopped, as trials are in the
store.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planish import tune
from planish.core import Candidate, Measured, Stage, Task, rng
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.program import GraphProgram, program_from
from planish.levels.graph.starting_lists import (
    ClassList,
    Outcomes,
    learn_lists,
    learned_list,
    recognition_of,
    records_of,
    starting_list,
)
from planish.store import Reader, open_store
from planish.tuning.api import task_of
from planish.tuning.settings import Budget, Settings
from planish.tuning.transfer import past

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "graph"))

from models.export import Wish, write

NAMES = (
    *("resnet18", "resnet34", "resnet50", "mobilenetv2", "mobilenetv3", "ssd-resnet50", "ssd-mobilenet"),
    *("bert-4x256", "bert-fused", "gpt", "llama", "unet", "unet-resize", "lstm", "gru", "cnn", "vgg16"),
)
EXPORTERS = ("torchscript", "dynamo-raw")
BUDGETS = (0, 1, 10)


@dataclass(frozen=True)
class Left:
    """What came of one model that was left out.

    Args:
        model: its file's name.
        classes: its own.
        learnt: what the others taught; None where no other is of its class.
        ratios: list to latency over the baseline's: "0", "1", "10", "AS-0", "search".
    """

    model: str
    classes: tuple[str, ...]
    learnt: ClassList | None
    ratios: Mapping[str, float]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--folder", type=Path, required=True, help="of models; what is missing is made")
    given.add_argument("--store", type=Path, required=True)
    given.add_argument("--models", nargs="+", default=[f"{n}:{e}" for n in NAMES for e in EXPORTERS])
    given.add_argument("--small", action="store_true")
    given.add_argument("--trials", type=int, default=200, help="of each search")
    given.add_argument("--rounds", type=int, default=15, help="of each comparison")
    asked = given.parse_args()
    level = GraphLevel()
    tasks = [_task(level, word, asked) for word in asked.models]
    winners = [_searched(task, asked) for task in tasks]
    with open_store(asked.store, read_only=True) as store:
        known = {text: tried for task in tasks for text, tried in _tried(level, store, task).items()}
    found = [_left(level, task, won, known, asked) for task, won in zip(tasks, winners, strict=True)]
    show(found, asked.trials)


def _task(level: GraphLevel, word: str, asked: argparse.Namespace) -> Task[GraphProgram]:
    name, _, exporter = word.partition(":")
    wish = Wish(name, exporter or "torchscript", small=asked.small)  # pyright: ignore[reportArgumentType]
    return task_of(level, level.load(str(write(wish, asked.folder)), {}), Settings("graph"))


def _searched(task: Task[GraphProgram], asked: argparse.Namespace) -> Candidate:
    """Search a model, or take the trials of the search from the store; gives the winner."""
    print(f"searching {task.program.file.stem} ...", file=sys.stderr)
    result = tune(
        task.program, budget=Budget(trials=asked.trials), settings=Settings("graph"), store=asked.store
    )
    return result.candidate


def _tried(level: GraphLevel, store: Reader, task: Task[GraphProgram]) -> Mapping[str, Outcomes]:
    """Return what was tried on this task's model, by its text."""
    return {
        each.program: [(trial.candidate, each.ratio(trial)) for trial in each.trials]
        for each in past(store, level, task)
        if each.program == task.program.text
    }


def _left(
    level: GraphLevel,
    task: Task[GraphProgram],
    winner: Candidate,
    known: Mapping[str, Outcomes],
    asked: argparse.Namespace,
) -> Left:
    """Leave a model out, and measure what the others taught."""
    program = task.program
    recognition = recognition_of(program)
    # The same network by another exporter is no other network.
    own = _network(program.file)
    others = [item for item in known.items() if _network(program_from(item[0]).file) != own]
    learnt = learned_list(learn_lists(r for each in others for r in records_of(*each)), recognition.classes)
    paper = starting_list(recognition)
    lists = {"AS-0": paper, "search": winner}
    if learnt is not None:
        first = _measured(level, task, learnt.ranked, rounds=1)
        lists |= {str(count): _chosen(learnt, first, count) for count in BUDGETS}
    ratios = _measured(level, task, list(lists.values()), rounds=asked.rounds, seed=1)
    return Left(program.file.stem, recognition.classes, learnt, {n: ratios[c] for n, c in lists.items()})


def _network(file: Path) -> str:
    """Name the network of a file, whichever exporter wrote it."""
    return file.stem.partition("-torchscript")[0].partition("-dynamo")[0]


def _chosen(learnt: ClassList, measured: Mapping[Candidate, float], count: int) -> Candidate:
    """Choose a list with so many measurements; the baseline counts as known."""
    if not count:
        return learnt.best
    return min([Candidate(), *learnt.ranked[:count]], key=lambda candidate: measured[candidate])


def _measured(
    level: GraphLevel,
    task: Task[GraphProgram],
    candidates: Sequence[Candidate],
    *,
    rounds: int,
    seed: int = 0,
) -> Mapping[Candidate, float]:
    """Return the latency of candidates over the interleaved baseline's, the median of rounds."""
    evaluator = level.evaluator(task, final=True)()
    everybody = list(dict.fromkeys([Candidate(), *candidates]))
    found: dict[Candidate, list[float]] = {candidate: [] for candidate in everybody}
    order = rng(seed)
    for _ in range(rounds):
        values: dict[Candidate, float] = {}
        for place in order.permutation(len(everybody)):
            outcome = evaluator.evaluate(everybody[int(place)], _no_clock)
            failed = not isinstance(outcome, Measured)
            values[everybody[int(place)]] = math.inf if failed else outcome.values["latency"]
        for candidate, value in values.items():
            found[candidate].append(value / values[Candidate()])
    return {candidate: statistics.median(ratios) for candidate, ratios in found.items()}


def _no_clock(stage: Stage) -> Any:
    del stage
    return nullcontext()


def show(found: Sequence[Left], trials: int) -> None:
    print(f"Gain over ONNX Runtime's defaults (times), and the share of the gain of {trials} trials\n")
    names = ("search", "AS-0", *map(str, BUDGETS))
    heads = ["model", "class", "learned from", "search", "AS-0", *(f"{n} measured" for n in BUDGETS)]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for left in found:
        taught = f"{left.learnt.models} models" if left.learnt else "none"
        cells = [_cell(left, name) for name in names]
        print(f"| {' | '.join([left.model, '+'.join(left.classes), taught, *cells])} |")
    print("\nMedian share, of models whose search gained 3 % or more\n")
    for name in names[1:]:
        shares = [share for left in found if (share := _share(left, name)) is not None]
        print(f"- {name}: {statistics.median(shares):.0%} of {len(shares)}" if shares else f"- {name}: none")


def _cell(left: Left, name: str) -> str:
    ratio = left.ratios.get(name)
    if ratio is None:
        return ""
    share = _share(left, name)
    return f"{1 / ratio:.2f}" + (f" ({share:.0%})" if share is not None and name != "search" else "")


def _share(left: Left, name: str) -> float | None:
    """Give the share of the search's gain, in logarithms; None where there is no gain to share."""
    whole, part = left.ratios["search"], left.ratios.get(name)
    if part is None or math.isinf(part) or whole > 1 / 1.03:
        return None
    return math.log(part) / math.log(whole)


if __name__ == "__main__":
    main()
