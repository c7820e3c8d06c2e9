"""Chooses the lists that are tried first on hot functions, by programs that no table of results has.

    python experiments/clock/choose.py [--seconds 300] [--lists 12]

Each program of `training` is sampled, and each list of a pool is run on each of its hottest functions; how
its time compares with that of -O3 is kept in build/clock/choice.jsonl, where a later run goes on. The pool is
every pass that may be added to what -O3 runs, at each of three places; what -O3 runs without each of its
passes about loops and vectors; all of it twice; and what two of these are together. The lists are then put in
order by greedy cover: each is the one that makes the geometric mean over functions of the best so far least.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator

import numpy as np
from programs import ROOT, linked, made_inputs
from training import TRAINING

from planish.llvm.hot.bench import Bench, answer_of, judged
from planish.llvm.hot.hot_search import O3, HotSearch
from planish.llvm.hot.making import HotBegun, make
from planish.llvm.hot.o3_lists import (
    DISTRIBUTE,
    MORE,
    SIMPLIFY,
    SLP,
    UNROLL,
    USUAL,
    VECTORISE,
    VERSIONS,
    Parts,
    before,
    without,
)
from planish.llvm.level import LlvmLevel
from planish.llvm.modules.module_result import ModuleRecipe
from planish.llvm.program import IRProgram

KEPT = ROOT / "choice.jsonl"
_HOTTEST = 2
_SHARE = 0.15
_TIMED_S = 0.25
_PLACES = (DISTRIBUTE, UNROLL)
_NOISE = 0.98
"""What takes more than so much of the time counts as the same: it may be noise."""


def pool() -> dict[str, Parts]:
    """Give what may be run on a hot function in place of what -O3 runs, by what is other."""
    found = {f"-{text}": without(USUAL, text) for text in (VECTORISE, UNROLL, SLP, DISTRIBUTE)}
    for added in MORE:
        found |= {f"+{','.join(added)} before {place}": before(USUAL, place, added) for place in _PLACES}
        found[f"+{','.join(added)} last"] = (*USUAL, *added)
    versions = before(USUAL, DISTRIBUTE, VERSIONS)
    found |= {
        "usual, simplify, usual": (*USUAL, *SIMPLIFY, *USUAL),
        "simplify, usual": (*SIMPLIFY, *USUAL),
        "usual, simplify": (*USUAL, *SIMPLIFY),
        f"-{VECTORISE} -{UNROLL}": without(without(USUAL, VECTORISE), UNROLL),
        f"-{VECTORISE} -{SLP}": without(without(USUAL, VECTORISE), SLP),
        f"versions -{UNROLL}": without(versions, UNROLL),
        f"versions -{VECTORISE}": without(versions, VECTORISE),
        "versions, simplify, versions": (*versions, *SIMPLIFY, *versions),
    }
    for each in (UNROLL, VECTORISE, SLP):
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
        measure_all(time.monotonic() + asked.seconds, asked.processor)
    choose(asked.lists)


def measure_all(over: float, processor: str) -> None:
    """Measure what is not kept yet: each program for an equal share of the time, lists in one order."""
    inputs = made_inputs()
    for place, program in enumerate(TRAINING):
        run = program.run.format(**inputs)
        module = linked(program, processor)
        share = (over - time.monotonic()) / (len(TRAINING) - place)
        level = LlvmLevel()
        loaded = level.load(str(module), {"run": run})
        measure(run, level.suited(loaded, [level.objectives["time_s"]]), time.monotonic() + share)


def measure(run: str, program: IRProgram, over: float) -> None:
    """Measure lists on a program's hottest functions."""
    assert program.running
    base = make(program.ir, ModuleRecipe(O3, (), ""))
    bench = Bench(program.running, base.code, answer_of(program.running, base.code, base.code))
    counts = bench.sampled()
    search = HotSearch(HotBegun.of(program.ir), bench, 0.0, over, None, None)
    hot = [name for name in search.hot(counts) if counts[name] >= _SHARE * counts.total()][:_HOTTEST]
    print(f"{run}: {bench.expected.seconds * 1e3:.0f} ms; {', '.join(hot)}", flush=True)
    for place, name in enumerate(hot):
        share = (over - time.monotonic()) / (len(hot) - place)
        on_function(search, run, name, time.monotonic() + share)


def on_function(search: HotSearch, run: str, name: str, over: float) -> None:
    """Measure lists on a function, and keep what they take over -O3's time."""
    known = {row["list"] for row in kept() if (row["program"], row["function"]) == (run, name)}
    lists, seen = pool(), dict[bytes, float]()
    with KEPT.open("a") as file:
        for other in random.Random(0).sample(sorted(lists), len(lists)):
            if other in known or time.monotonic() > over:
                continue
            made, ratio = search.version(name, lists[other]), math.inf
            if made and made.code in seen:
                ratio = seen[made.code]
            elif made and (times := search.bench.beside(made.code, _TIMED_S)):
                ratio = seen[made.code] = judged([times]).value
            row = {"program": run, "function": name, "list": other, "ratio": ratio}
            file.write(json.dumps(row) + "\n")


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
    best = np.zeros(len(functions))
    print(f"{len(rows):,} measurements of {len(functions)} functions, {len(lists)} lists")
    for number in range(count):
        means = np.minimum(best[:, None], logs).mean(axis=0)
        place = int(means.argmin())
        gained = math.exp(best.mean() - means[place])
        best = np.minimum(best, logs[:, place])
        print(f"{number + 1:2} {gained:.4f} more, {math.exp(-best.mean()):.4f} in all: {lists[place]}")


if __name__ == "__main__":
    main()
