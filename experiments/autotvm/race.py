"""Searchers beside each other on ResNet-18's convolutions and ten products: what they found, and when.

    python experiments/autotvm/race.py build/race.jsonl --seconds 2 --seeds 0 1 2
    python experiments/autotvm/race.py build/race.jsonl --table
    python experiments/autotvm/race.py build/equal.jsonl --seconds 60 --trials 128

A line of the file is one search: of each trial the seconds since the search began, and the best time so far.
Searches of one program follow each other, so that what disturbs the machine disturbs all of them.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tables import DRAWS, Shares, row
from tables import show as show_trials

from planish.core import Candidate
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import RESNET18, convolution, matmul
from planish.measure.executors import LocalExecutor
from planish.store import open_store
from planish.tuning.api import task_of, tune_program
from planish.tuning.settings import Budget, Settings

PRODUCTS = (
    *[(n, n, n) for n in (64, 128, 192, 256, 384, 512, 768, 1024)],
    (32, 1024, 1024),
    (128, 768, 3072),
)
BATCH = 8


def batched(size: int, inputs: int, outputs: int, kernel: int, stride: int) -> Program:
    """Give a convolution of eight images; arguments as of `convolution`."""
    window = ", ".join(f"{stride}*{axis} + {at} - {kernel // 2}" for axis, at in (("y", "r"), ("x", "s")))
    shapes = {"I": (BATCH, inputs, size, size), "W": (outputs, inputs, kernel, kernel)}
    made = parse(f"O[b,k,y,x] += pad(I[b, c, {window}], 0) * W[k,c,r,s]", {}, shapes)
    return made.with_constants(["W"])


PROGRAMS: Mapping[str, Program] = {
    **{name: convolution(*shape) for name, shape in RESNET18.items()},
    **{"x".join(map(str, shape)): matmul(*shape) for shape in PRODUCTS},
}
SLOW: Mapping[str, Program] = {
    **{f"{name}-batch-{BATCH}": batched(*RESNET18[name]) for name in ("C2", "C6", "C9")},
}
"""Whose candidates take long; a search asks for them by name."""
SEARCHERS: Mapping[str, tuple[str, Mapping[str, str | int | float | bool]]] = {
    "random": ("random", {}),
    "genetic": ("genetic", {"model": "none"}),
    "genetic, warm-started": ("genetic", {}),
    "guided": ("model-guided", {}),
    "guided, no history": ("model-guided", {"model": "none"}),
}
SECONDS = (0.25, 0.5, 1.0, 2.0)

LEVEL = LoopsLevel()

Curve = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """One search."""

    program: str
    searcher: str
    seed: int
    curve: Curve


def search(
    program: Program,
    name: str,
    seed: int,
    budget: Budget,
    executor: LocalExecutor,
    options: str,
    cores: int,
) -> Curve:
    """Search for so long; gives after each trial the seconds since the beginning, and the best time."""
    searcher, given = SEARCHERS[name]
    more = dict(part.split("=") for part in options.split(",") if part)
    settings = Settings(
        searcher=searcher,
        searcher_options={**given, **(more if "guided" in name else {})},
        seed=seed,
        cores=cores,
    )
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "race.db") as store:
        begun = time.time()
        result = tune_program(
            LEVEL,
            program,
            budget=budget,
            settings=settings,
            store=store,
            executor=executor,
            compares=False,
        )
        trials = store.trials(result.run.task_key, LEVEL.steps)
    best, curve = float("inf"), list[tuple[float, float]]()
    for trial in sorted(trials, key=lambda each: each.index):
        cost = trial.cost(LEVEL.objectives["time_s"])
        best = best if cost is None else min(best, cost)
        curve.append((round(trial.time - begun, 4), best))
    return curve


def run(
    path: Path,
    seeds: Sequence[int],
    budget: Budget,
    names: Sequence[str],
    programs: Sequence[str],
    options: str,
    cores: int,
) -> None:
    """Search what the file does not have yet."""
    done = {(line.program, line.searcher, line.seed) for line in read(path)}
    for seed in seeds:
        for number, program in enumerate(programs):
            missing = [name for name in names if (program, name, seed) not in done]
            if not missing:
                continue
            task = task_of(LEVEL, {**PROGRAMS, **SLOW}[program], Settings(cores=cores))
            with LocalExecutor(LEVEL.evaluator(task), workers=2) as executor:
                executor.submit([Candidate()], math.inf)  # the workers are there when the first search begins
                list(executor.results())
                # Who is first differs from program to program.
                turn = (number + seed) % len(missing)
                for name in [*missing[turn:], *missing[:turn]]:
                    curve = search(task.program, name, seed, budget, executor, options, cores)
                    with path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(vars(Line(program, name, seed, curve))) + "\n")
                    print(program, name, seed, len(curve), f"{curve[-1][1] * 1e6:.1f} us", flush=True)


def read(path: Path) -> list[Line]:
    if not path.exists():
        return []
    return [Line(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def after_seconds(curve: Curve, seconds: float) -> float:
    """Give the best time after so many seconds; infinite where nothing was measured by then."""
    return min((best for when, best in curve if when <= seconds), default=math.inf)


def show(lines: Sequence[Line], trials: int) -> None:
    """Print the tables: shares of the best time that any search found for the program."""
    curves: dict[str, dict[str, list[Curve]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        curves[line.searcher][line.program].append(line.curve)
    names = [name for name in SEARCHERS if name in curves]
    programs = [p for p in curves[names[0]] if all(p in curves[name] for name in names)]
    best = {p: min(c[-1][1] for name in names for c in curves[name][p]) for p in programs}
    by_trial = {
        name: {p: [[best[p] / cost for _, cost in curve] for curve in curves[name][p]] for p in programs}
        for name in names
    }
    show_trials(by_trial, trials)

    def shares(program: str, name: str, seconds: float) -> Shares:
        return np.array([best[program] / after_seconds(curve, seconds) for curve in curves[name][program]])

    print()
    row(["", *[f"{seconds:g} s" for seconds in SECONDS]])
    row(["---"] * (len(SECONDS) + 1))
    for name in names:
        row([name, *[_summary([shares(p, name, seconds) for p in programs]) for seconds in SECONDS]])
    for seconds in SECONDS[-2:]:
        print(f"\nAfter {seconds:g} s:\n")
        row(["", *names])
        row(["---"] * (len(names) + 1))
        for program in programs:
            medians = [np.median(shares(program, name, seconds)) for name in names]
            row([program, *[f"{median * 100:.1f} %" for median in medians]])


def _summary(mine: Sequence[Shares]) -> str:
    """Give the geometric mean over programs of the medians over seeds, with its 95 % interval."""
    none = sum(int(np.median(each) == 0) for each in mine)
    if none:
        return f"nothing yet of {none}"
    random = np.random.default_rng(0)

    def mean(found: Sequence[Shares]) -> float:
        return float(np.exp(np.mean([np.log(np.median(each)) for each in found])) * 100)

    # A draw of seeds may have searches alone that had measured nothing: they count as one part in a thousand.
    drawn = [mean([np.maximum(random.choice(each, len(each)), 1e-3) for each in mine]) for _ in range(DRAWS)]
    low, high = np.percentile(drawn, (2.5, 97.5))
    return f"{mean(mine):.1f} % ({low:.1f} to {high:.1f})"


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("file", type=Path)
    given.add_argument("--table", action="store_true", help="search nothing, and print what the file has")
    given.add_argument("--seconds", type=float, default=2.0)
    given.add_argument("--trials", type=int, default=200, help="of a search at most")
    given.add_argument("--seeds", type=int, nargs="+", default=[0])
    given.add_argument("--searchers", nargs="+", default=list(SEARCHERS), choices=list(SEARCHERS))
    given.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=[*PROGRAMS, *SLOW])
    given.add_argument("--cores", type=int, default=1, help="of each candidate")
    given.add_argument("--options", default="", help="of the guided ones, as steps=4,batch=32")
    asked = given.parse_args()
    if not asked.table:
        budget = Budget(trials=asked.trials, seconds=asked.seconds)
        run(asked.file, asked.seeds, budget, asked.searchers, asked.programs, asked.options, asked.cores)
    show(read(asked.file), asked.trials)


if __name__ == "__main__":
    main()
