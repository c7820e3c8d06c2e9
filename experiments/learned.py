"""What a search gains by what planish knows beforehand, on 30 programs a level that nothing has learned from.

    python experiments/learned.py [--levels loops llvm graph hlo] [--programs 30] [--seconds S]
    python experiments/learned.py --table            # of what was measured so far

Each program is searched by the level's default searcher, with as many trials each time (or for as many
seconds), without anything learned, and as by default. For `llvm`, the coreset and the policy are learned:
one more search has the coreset alone. For `llvm` and `graph` it is also searched by a user who has tuned the
other programs of its kind before. A search that is over is a line of the results, so the same command goes on
where it was stopped.

The table has means over programs: the trials, and seconds, to 95 % of the best value that any search of the
program found, over those of the search without anything learned; the share of that value after 8 trials; and
on how many programs it took more than 1.1 times as many trials. The value is the speed; for `llvm` what is
saved over -Oz, and for `hlo`, which has two objectives, what the hypervolume has grown. For `llvm`, whose
costs are exact, trials do not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from planish.core import Level, Program, Space, Task, Trial
from planish.core.front import growth_of
from planish.core.registry import level_named
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.space import PatchSpace
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.machine import elements_of
from planish.levels.llvm.passes.space import pass_space
from planish.levels.llvm.task_setup import baseline_text
from planish.store import Store, open_store
from planish.train.background import HELD_OUT
from planish.tuning.api import task_of, tune_program
from planish.tuning.settings import Budget, Settings

ROOT = Path(__file__).parents[1]
SHARE, FIRST, SLOWER = 0.95, 8, 1.1
UNTAUGHT, CORESET, DEFAULT, HISTORY = "nothing learned", "coreset alone", "default", "with history"
SEED = 9000
"""Of the drawn programs; no model has learned from those of this seed."""
LEARNT_FROM = 34
"""Networks of the shipped table of gains."""
SIZES = range(20, 250)
"""Instructions of functions."""
LEVELS = ("loops", "llvm", "graph", "hlo")
Row = Mapping[str, Any]


class StructureAlone(HloLevel):
    """The level `hlo`, whose patches keep the order in which the structure suggests them."""

    def space(self, task: Task[Any], name: str) -> Space:
        """Make a space whose seeds are in that order."""
        made = super().space(task, name)
        assert isinstance(made, PatchSpace)
        suggested = made.suggested
        made.seeds = lambda *_: suggested  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType]
        return made


class NoLists(LlvmLevel):
    """The level `llvm` without the coreset: its lists are not tried, and passes are drawn equally often."""

    def space(self, task: Task[Any], name: str) -> Space:
        """Make a space without lists that are known to be good."""
        elements, objective = elements_of(task.target), task.objectives[0].name
        small = partial(baseline_text, task)
        return pass_space(name, elements, objective, coreset=(), ir=task.program.ir, small=small)


@dataclass(frozen=True)
class Arm:
    """A search.

    Args:
        level: as by default, or with less learned.
        options: of the searcher.
    """

    level: Level[Any]
    options: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Case:
    """A program of the benchmark.

    Args:
        name: of it.
        kind: programs of one kind are the history of each other.
        load: reads it.
    """

    name: str
    kind: str
    load: Callable[[], Program]


@dataclass(frozen=True)
class Part:
    """The benchmark of a level.

    Args:
        trials: of each search.
        arms: the searches by name; the last one has the level as by default.
        cases: yields the programs.
        draws: programs that are searched for each one that can be improved, about.
    """

    trials: int
    arms: Mapping[str, Arm]
    cases: Callable[[], Iterator[Case]]
    draws: int = 1

    @property
    def level(self) -> Level[Any]:
        """Return the level as by default."""
        return [*self.arms.values()][-1].level


def parts(names: Sequence[str]) -> Iterator[Part]:
    """Yield the benchmarks of levels."""
    for name in names:
        level = level_named(name)
        usual = Arm(level)
        match name:
            case "loops":
                yield Part(64, {UNTAUGHT: Arm(level, {"model": "none"}), DEFAULT: usual}, _of_loops)
            case "llvm":
                no_policy = {"policy": "none"}
                less = {UNTAUGHT: Arm(NoLists(), no_policy), CORESET: Arm(level, no_policy)}
                yield Part(100, {**less, DEFAULT: usual, HISTORY: usual}, _of_llvm, draws=3)
            case "graph":
                # What a class begins with is the paper's: the store is all that is learned.
                yield Part(24, {UNTAUGHT: usual, HISTORY: usual}, _of_graph)
            case _:
                yield Part(32, {UNTAUGHT: Arm(StructureAlone()), DEFAULT: usual}, _of_hlo)


def _of_loops() -> Iterator[Case]:
    from planish.levels.loops.workloads import RESNET18, convolution
    from planish.train.cost_models import random_programs

    drawn = [*islice(random_programs(SEED), 2 * len(RESNET18))]
    for number, (name, shape) in enumerate(RESNET18.items()):
        yield Case(f"ResNet-18 {name}", "network", partial(convolution, *shape))
        for each in (2 * number, 2 * number + 1):
            yield Case(f"drawn {each}", "drawn", partial(drawn.__getitem__, each))


def _of_llvm() -> Iterator[Case]:
    from planish.train.corpus.reader import read_corpus

    rows = [row for row in read_corpus() if row.package in HELD_OUT and row.instructions in SIZES]
    for row in random.Random(SEED).sample(rows, len(rows)):
        yield Case(
            f"{row.package} {row.function}", row.package, partial(level_named("llvm").load, row.ir, {})
        )


def _of_graph() -> Iterator[Case]:
    for path in sorted((ROOT / "tests" / "levels" / "graph" / "small").glob("*.onnx")):
        # All are one kind: which models are alike is the level's matter.
        yield Case(path.stem, "network", partial(level_named("graph").load, str(path), {}))


def _of_hlo() -> Iterator[Case]:
    for name in ("transformer", "lstm", "regression", "2fcnet"):
        path = ROOT / "examples" / "hlo" / f"{name}.mlir"
        yield Case(name, "example", partial(level_named("hlo").load, str(path), {}))
    # Of the families of the table, whose networks have other numbers.
    sys.path.insert(0, str(ROOT / "experiments" / "first_answers"))
    networks, run = import_module("networks"), import_module("run")
    folder = ROOT / "build" / "learned"
    run.write_pictures(folder / "pictures")
    for name, make in islice(networks.networks(100), LEARNT_FROM, None):
        path = run.write(make(), folder / name)
        yield Case(name, "network", partial(level_named("hlo").load, str(path), {}))


def measure(part: Part, most: int, seconds: float | None, results: Path) -> None:
    """Search the programs of a level that are not yet among the results."""
    chosen = [*islice(part.cases(), most * part.draws)]
    done = {(row["level"], row["program"], row["arm"]) for row in read(results)}
    for case in chosen:
        for arm in part.arms:
            if (part.level.name, case.name, arm) in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "store.db"
                if arm == HISTORY:
                    alike = [each for each in chosen if each.kind == case.kind]
                    copy_history(part, alike, case, seconds, results.parent, path)
                with open_store(path) as store:
                    row = search(part, case, arm, seconds, store)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(part.level.name, case.name, arm, f"{len(row['values'])} trials", flush=True)


def copy_history(
    part: Part, alike: Sequence[Case], case: Case, seconds: float | None, folder: Path, path: Path
) -> None:
    """Tune all programs of a kind where that was not done, and copy the store without the runs of one."""
    known = folder / f"{part.level.name}-{case.kind}.db"
    with open_store(known) as store:
        over = (run.task_key for run in store.runs() if run.status == "finished")
        done = {store.task(key).program for key in over}
        for each in alike:
            if each.load().text not in done:
                search(part, each, HISTORY, seconds, store, compares=True)
    shutil.copy(known, path)
    program = case.load()
    with open_store(path) as store:
        for run in store.runs():
            if store.task(run.task_key).program == program.text:
                store.delete_run(run.id)


def search(
    part: Part, case: Case, arm: str, seconds: float | None, store: Store, *, compares: bool = False
) -> Row:
    """Search a program; return the best value so far after each trial, and when that was."""
    level = part.arms[arm].level
    settings = Settings(level.name, searcher_options=dict(part.arms[arm].options))
    program, budget = case.load(), Budget(trials=part.trials, seconds=seconds)
    found = tune_program(level, program, budget=budget, settings=settings, store=store, compares=compares)
    trials = store.run_trials(found.run.id, level.steps)
    times = [trial.time - found.run.started for trial in trials]
    values = progress(level, task_of(level, program, settings), trials)
    return {"level": level.name, "program": case.name, "arm": arm, "seconds": times, "values": values}


def progress(level: Level[Any], task: Task[Any], trials: Sequence[Trial]) -> list[float]:
    """Return the best value so far after each trial; more is better, and 0 is nothing."""
    objective, baseline = task.objectives[0], level.baseline(task)
    if len(task.objectives) > 1:
        counts = range(1, len(trials) + 1)
        volumes = (growth_of(trials[:count], task.objectives, baseline).volume for count in counts)
        return [max(0.0, (volume or 1.0) - 1) for volume in volumes]
    costs = [trial.cost(objective) for trial in trials]
    if not objective.exact:
        return [*accumulate((1 / cost if cost else 0.0 for cost in costs), max)]
    usual = next(cost for trial, cost in zip(trials, costs, strict=True) if trial.candidate == baseline)
    assert usual is not None
    return [*accumulate((usual - cost if cost is not None else 0.0 for cost in costs), max)]


def read(results: Path) -> list[Row]:
    """Read the results; a line that was cut off by an end is left out."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def reached(row: Row, goal: float) -> tuple[int, float]:
    """Return after how many trials and seconds a value was reached; where it was not, one more, and all."""
    for number, value in enumerate(row["values"], 1):
        if value >= goal:
            return number, row["seconds"][number - 1]
    return len(row["values"]) + 1, row["seconds"][-1]


def table(rows: Sequence[Row]) -> None:
    """Print the table."""
    programs = defaultdict[tuple[str, str], dict[str, Row]](dict)
    for row in rows:
        programs[row["level"], row["program"]][row["arm"]] = row
    arms = dict.fromkeys((row["level"], row["arm"]) for row in rows)
    print(f"| level | search | programs | trials to {SHARE:.0%} | seconds | after {FIRST} trials | slower |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for level, arm in arms:
        trials, seconds, shares = list[float](), list[float](), list[float]()
        for (name, _), searches in programs.items():
            best = max(max(row["values"], default=0.0) for row in searches.values())
            # Where nothing can be gained there is nothing to be quicker at.
            if name != level or best <= 0 or not {arm, UNTAUGHT} <= searches.keys():
                continue
            mine, other = (reached(searches[each], SHARE * best) for each in (arm, UNTAUGHT))
            trials.append(mine[0] / other[0])
            seconds.append(max(mine[1], 1e-3) / max(other[1], 1e-3))
            shares.append(searches[arm]["values"][:FIRST][-1] / best)
        if trials:
            means = (f"{math.exp(statistics.fmean(map(math.log, each))):.2f}" for each in (trials, seconds))
            slower = sum(ratio > SLOWER for ratio in trials)
            cells = [level, arm, str(len(trials)), *means, f"{statistics.fmean(shares):.1%}", str(slower)]
            print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Read the command line."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--levels", nargs="+", choices=LEVELS, default=LEVELS)
    given.add_argument("--programs", type=int, default=30)
    given.add_argument("--seconds", type=float, help="of each search, beside its trials")
    given.add_argument("--folder", type=Path, default=ROOT / "build" / "learned", help="of the results")
    given.add_argument("--table", action="store_true", help="print the table, and measure nothing")
    asked = given.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    results = asked.folder / "results.jsonl"
    for part in () if asked.table else parts(asked.levels):
        measure(part, asked.programs, asked.seconds, results)
    table(read(results))


if __name__ == "__main__":
    main()
