"""Measure the candidates of recorded spaces: `recordings/`, a file for each program and target.

    python experiments/autotvm/record.py [--rows 600] [--seconds 4] [C7 C8:1:opencl:portable ...]

A program that has fewer rows gets more, so that it may be done bit by bit: a third is drawn by the knobs'
weights, a third found by the genetic searcher, and a third by the guided one, each in so many seconds at
most. What seems best is measured twice more, by other workers, and counts by the middle of the three times.
Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Sequence

from plans import CHOOSING, DEVICE_SOURCES, DEVICE_TARGETS, DOUBLES, FRESH, NARROW_MORE
from recorded import Row, path_of, rows_at, save
from representations import represented
from searching import LEVEL, PRODUCTS, Setting, machine

from planish.core import Candidate
from planish.levels.loops.workloads import RESNET18
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

SETTINGS = (
    *[Setting(name) for name in (*RESNET18, *PRODUCTS)],
    *[Setting(name, 2) for name in ("C7", "C8", "C9")],
    *[Setting(name, 1, "x86-avx2") for name in ("C1", "C2", "C3", "C4", "C5", "C6")],
    *CHOOSING,
    *FRESH,
    *DOUBLES,
    *NARROW_MORE,
    *DEVICE_TARGETS,
    *DEVICE_SOURCES,
)
SEARCHERS = ("random", "genetic", "model-guided")
SEED = 1000
AGAIN, TIMES = 48, 2
"""So many of the best are measured again, so often."""


def more_rows(setting: Setting, known: Sequence[Row], most: int, seconds: float) -> Sequence[Row]:
    """Measure more of a program's candidates, beside those that are known, the default schedule first."""
    task = task_of(LEVEL, setting.program, Settings(cores=setting.cores))
    space = represented(task.program, task.target)
    costs: dict[Candidate, list[float | None]] = {space.candidate(row.choices): [row.cost] for row in known}
    drawn = {space.candidate(row.choices) for row in known if row.drawn}
    again = list[Candidate]() if known else [space.start()]
    with machine(setting) as here:
        costs |= {each: here.measure([each]) for each in again}
        for searcher in SEARCHERS:
            for candidate, cost in here.search(searcher, {}, SEED + len(known), most, seconds)[1]:
                again += [candidate] if candidate not in costs else []
                costs.setdefault(candidate, [cost])
                if searcher == SEARCHERS[0]:
                    drawn.add(candidate)
    again = sorted(again, key=lambda each: costs[each][0] or math.inf)[:AGAIN]
    for _ in range(TIMES):
        with machine(setting) as here:
            for candidate, cost in zip(again, here.measure(again), strict=True):
                costs[candidate].append(cost)
    return [Row(space.choices(each), _middle(costs[each]), each in drawn) for each in costs]


def _middle(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return statistics.median(known) if known else None


def _setting(text: str) -> Setting:
    name, cores, backend, dtype = f"{text}:::".replace("opencl:", "opencl ").split(":")[:4]
    backend = backend.replace(" ", ":")
    return Setting(name, int(cores or 1), backend, dtype or "float32")


def main() -> None:
    """Read the command line."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("settings", nargs="*", type=_setting, help="NAME[:CORES[:BACKEND[:DTYPE]]]; none: all")
    given.add_argument("--rows", type=int, default=600, help="what has as many gets no more")
    given.add_argument("--seconds", type=float, default=4.0, help="for each third, at once")
    asked = given.parse_args()
    for setting in asked.settings or SETTINGS:
        known = rows_at(path_of(setting))
        if len(known) >= asked.rows:
            continue
        begun = time.monotonic()
        rows = more_rows(setting, known, -(-(asked.rows - len(known)) // len(SEARCHERS)), asked.seconds)
        save(rows, path_of(setting))
        print(setting.text, len(rows), f"rows; {time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
