"""Chooses the lists that are tried first on hot functions, by programs that no table of results has.

    python experiments/clock/choose.py [--seconds 300] [--lists 12]

Each program of `training` is sampled, and each list of a pool is run on each of its hottest functions; how
its time compares with that of -O3 is kept in build/clock/choice.jsonl, where a later run goes on. The pool is
every pass that may be added to what -O3 runs, at each of three places; what -O3 runs without each of its
passes about loops and vectors; all of it twice; and what two of these are together. The lists are then put in
order by greedy cover: each is the one that makes the geometric mean over functions of the best so far least.
Where none adds anything, a second cover begins, of the lists that are left.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from multiprocessing import Process
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from programs import ROOT, linked, made_inputs
from training import TRAINING

from planish.core import Candidate, Measured, PlanishError, evaluate
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.execution import CLOCKS, EndedError, NotRunnableError, RunAnswer, Runner
from planish.levels.llvm.function_steps import FunctionPasses
from planish.levels.llvm.hot.functions import O3, HotFunctionSpace
from planish.levels.llvm.hot.lists import (
    DISTRIBUTE,
    MORE,
    SIMPLIFY,
    SLP,
    UNROLL,
    USUAL,
    VECTORIZE,
    VERSIONS,
    Parts,
    before,
    pipeline,
    without,
)
from planish.levels.llvm.hot.programs import ProgramBuild, ProgramBuilder
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.program import IRProgram
from planish.levels.llvm.task_setup import prepared
from planish.measure.executors import LocalExecutor
from planish.sandbox.fork_pool import in_child
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

KEPT = ROOT / "choice.jsonl"
_HOTTEST = 2
_SHARE = 0.15
_PAIRS, _CORES = 5, 2
_PLACES = (DISTRIBUTE, UNROLL)
_NOISE = 0.98
"""What takes more than so much of the time counts as the same: it may be noise."""
_TELLING = 1e-6
"""A list that adds less, in the mean of logarithms, adds nothing."""


def pool() -> dict[str, Parts]:
    """Give what may be run on a hot function in place of what -O3 runs, by what is other."""
    found = {f"-{text}": without(USUAL, text) for text in (VECTORIZE, UNROLL, SLP, DISTRIBUTE)}
    for added in MORE:
        found |= {f"+{','.join(added)} before {place}": before(USUAL, place, added) for place in _PLACES}
        found[f"+{','.join(added)} last"] = (*USUAL, *added)
    versions = before(USUAL, DISTRIBUTE, VERSIONS)
    found |= {
        "usual, simplify, usual": (*USUAL, *SIMPLIFY, *USUAL),
        "simplify, usual": (*SIMPLIFY, *USUAL),
        "usual, simplify": (*USUAL, *SIMPLIFY),
        f"-{VECTORIZE} -{UNROLL}": without(without(USUAL, VECTORIZE), UNROLL),
        f"-{VECTORIZE} -{SLP}": without(without(USUAL, VECTORIZE), SLP),
        f"versions -{UNROLL}": without(versions, UNROLL),
        f"versions -{VECTORIZE}": without(versions, VECTORIZE),
        "versions, simplify, versions": (*versions, *SIMPLIFY, *versions),
    }
    for each in (UNROLL, VECTORIZE, SLP):
        less = without(USUAL, each)
        found[f"usual, simplify, usual, all -{each}"] = (*less, *SIMPLIFY, *less)
    return found


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--seconds", type=float, default=300.0, help="to measure; 0: only choose")
    given.add_argument("--lists", type=int, default=12)
    given.add_argument("--processor", default="native")
    asked = given.parse_args()
    if asked.seconds:
        prepare(asked.processor)
        over = time.monotonic() + asked.seconds
        parts = [Process(target=measure_all, args=(over, part)) for part in range(_CORES)]
        for part in parts:
            part.start()
        for part in parts:
            part.join()
    choose(asked.lists)


def prepare(processor: str) -> None:
    """Fetch and compile what there is not yet."""
    made_inputs()
    for package in {program.package: program for program in TRAINING}.values():
        linked(package, processor)


def measure_all(over: float, part: int) -> None:
    """Measure what is not kept yet: each program for an equal share of the time, lists in one order."""
    inputs, programs = {name: ROOT / name for name in ("small",)}, TRAINING[part::_CORES]
    for place, program in enumerate(programs):
        run = program.run.format(**inputs)
        share = (over - time.monotonic()) / (len(programs) - place)
        level = LlvmLevel()
        loaded = level.load(str(ROOT / program.package / f"{program.package}.bc"), {"run": run})
        measure(run, level.specialize(loaded, [level.objectives["time_s"]]), time.monotonic() + share)


def measure(run: str, program: IRProgram, over: float) -> None:
    """Measure lists on a program's hottest functions."""
    level = LlvmLevel()
    task = task_of(level, program, Settings(objectives=("time_s",)))
    with LocalExecutor(level.evaluator(task)) as executor:
        (found,) = evaluate(executor, [level.baseline(task)])
    assert isinstance(found.outcome, Measured)
    parts = found.outcome.parts
    hot = [name for name in HotFunctionSpace(task.program).parts(parts) if is_hot(name, parts)][:_HOTTEST]
    assert task.program.running
    runner = Runner(task.program.running, open_bindings())
    with closing(open_bindings().parse(prepared(task))) as module:
        module.run(O3)
        base = module.object_code()
    builder = ProgramBuilder(prepared(task), open_bindings())
    with runner.executable(base) as before:
        expected = runner.answer(before)
        print(f"{run}: {expected.seconds * 1e3:.0f} ms; {', '.join(hot)}", flush=True)
        for place, name in enumerate(hot):
            share = (over - time.monotonic()) / (len(hot) - place)
            side = Side(runner, before, expected)
            on_function(builder, side, run, name, time.monotonic() + share)


def is_hot(name: str, parts: Mapping[str, float]) -> bool:
    """Tell whether a function is hot enough to choose lists by."""
    return parts[name] >= _SHARE * sum(parts.values())


class Side(NamedTuple):
    """What versions of a program are measured beside: that of -O3, and its answer."""

    runner: Runner
    before: Path
    expected: RunAnswer


def on_function(builder: ProgramBuilder, side: Side, run: str, name: str, over: float) -> None:
    """Measure lists on a function, and keep what they take over -O3's time."""
    known = {row["list"] for row in kept() if (row["program"], row["function"]) == (run, name)}
    lists, seen = pool(), dict[bytes, float]()
    for other in random.Random(0).sample(sorted(lists), len(lists)):
        if other in known or time.monotonic() > over:
            continue
        made = version(builder, name, lists[other])
        if made and made not in seen:
            seen[made] = beside(side.runner, side.before, made, side.expected)
        row = {"program": run, "function": name, "list": other, "ratio": seen[made] if made else math.inf}
        with KEPT.open("a") as file:
            file.write(json.dumps(row) + "\n")


def version(builder: ProgramBuilder, name: str, parts: Parts) -> bytes:
    """Make the object of a program with a list on one function; empty where LLVM refuses it."""
    candidate = Candidate((FunctionPasses(pipeline(parts), (name,)),))
    try:
        made = in_child(partial(builder.build, candidate), ProgramBuild)
    except PlanishError:
        return b""
    return made.code if isinstance(made, ProgramBuild) else b""


def beside(runner: Runner, before: Path, code: bytes, expected: RunAnswer) -> float:
    """Give the ratio of a version's processor time to that of -O3; infinite where its answer is wrong.

    It is the median of pairs, without a sandbox: these are Debian's programs, and there are many to be run.
    """
    with runner.executable(code) as path:
        try:
            if runner.answer(path).differs(expected):
                return math.inf
            return median(
                took(runner, path, expected) / took(runner, before, expected) for _ in range(_PAIRS)
            )
        except (NotRunnableError, EndedError):
            return math.inf


def took(runner: Runner, path: Path, expected: RunAnswer) -> float:
    """Give the seconds of the processor that a run takes."""
    began = CLOCKS.processor()
    runner.repeat(path, expected.code, 1)
    return (CLOCKS.processor() - began) / 1e9


def kept() -> Iterator[dict[str, object]]:
    """Read what was measured."""
    if KEPT.exists():
        yield from map(json.loads, KEPT.read_text().splitlines())


def choose(count: int) -> None:
    """Put the lists in order, and print them with what each adds."""
    rows, lists = list(kept()), list(pool())
    functions = list(dict.fromkeys((row["program"], row["function"]) for row in rows))
    logs = np.zeros((len(functions), len(lists)))
    for row in rows:
        if (ratio := float(str(row["ratio"]))) < _NOISE:
            place = functions.index((row["program"], row["function"])), lists.index(str(row["list"]))
            logs[place] = math.log(ratio)
    print(f"{len(rows):,} measurements of {len(functions)} functions, {len(lists)} lists")
    nothing = best = np.zeros(len(functions))
    chosen = list[int]()
    while len(chosen) < count:
        means = np.minimum(best[:, None], logs).mean(axis=0)
        means[chosen] = math.inf
        place = int(means.argmin())
        if means[place] > best.mean() - _TELLING:
            if best is nothing:
                break
            best = nothing
            continue
        gained, best = math.exp(best.mean() - means[place]), np.minimum(best, logs[:, place])
        chosen.append(place)
        print(f"{len(chosen):2} {gained:.4f} more, {math.exp(-best.mean()):.4f} in all: {lists[place]}")


if __name__ == "__main__":
    main()
