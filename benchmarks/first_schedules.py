"""How good the first schedules of a search are: without a measurement, after 16 of them, and after seconds.

    python benchmarks/first_schedules.py [--seconds 10] [--only WORD ...] [--state FILE]

The programs are the operators of `benchmarks/operators.py`, none of which the shipped cost model has
learnt from. Each is tuned as by default, on one core. Then three of its schedules are timed alternately, by
the clock of the processor: the first one that the search proposed, which it chose without a measurement; the
best of the first 16, as they were measured then; and the best of all. The table has the speed of the first
two over that of the third. A program that is over is a line of the state, so the same command continues where
it was stopped.

The thesis compares LoopTune's policy, which measures nothing, with searches in the same way (§3.8).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from operator_cases import Case, cases
from planish.core import Candidate, Measured, Trial
from planish.levels.loops.backends import kernel_of, library_of, tree_of
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget, Settings
from side_by_side import geomean, interleaved, use_one_core

SAMPLES = 16
FIRST, SAMPLED, SEARCHED = "first", f"best of {SAMPLES}", "search"
Row = dict[str, Any]


def chosen(case: Case, seconds: float) -> dict[str, Candidate]:
    """Tune a program; return its first schedule, the best of the first few, and the best of all."""
    level = LoopsLevel()
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "store.db") as store:
        budget = Budget(seconds=seconds)
        found = tune_program(level, case.program, budget=budget, settings=Settings("loops"), store=store)
        trials = [t for t in store.run_trials(found.run.id, level.steps) if not library_of(t.candidate)]
    objective = LoopsLevel.objectives["gflops"]

    def rate(trial: Trial) -> float:
        return trial.outcome.values[objective.name] if isinstance(trial.outcome, Measured) else 0.0

    return {
        FIRST: trials[0].candidate,
        SAMPLED: max(trials[:SAMPLES], key=rate).candidate,
        SEARCHED: max(trials, key=rate).candidate,
    }


def compared(case: Case, seconds: float) -> Row:
    """Tune a program, and time what was chosen."""
    candidates = chosen(case, seconds)
    target = LoopsLevel().target(case.program, 1)
    inputs = make_inputs(case.program)
    outputs = {name: aligned(case.program.type[name]) for name in case.program.outputs}
    calls = {
        each.hash: kernel_of(case.program, each, target, tree_of(case.program, each)).bind(inputs, outputs)
        for each in candidates.values()
    }
    times = interleaved(calls, 1.0, clock=time.process_time) if len(calls) > 1 else dict.fromkeys(calls, 1.0)
    return {"name": case.name, "times": {name: times[each.hash] for name, each in candidates.items()}}


def rows(seconds: float, only: Sequence[str], state: Path | None) -> Iterator[Row]:
    """Yield the rows of programs, those of an earlier run as they are there."""
    lines = state.read_text(encoding="utf-8").splitlines() if state and state.exists() else []
    known = {row["name"]: row for row in map(json.loads, lines)}
    for case in cases():
        if only and not any(word in case.name for word in only):
            continue
        if case.name not in known:
            known[case.name] = compared(case, seconds)
            if state:
                with state.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(known[case.name]) + "\n")
        yield known[case.name]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of each search")
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of programs")
    parser.add_argument("--state", type=Path, help="file of what is measured")
    options = parser.parse_args()
    use_one_core()
    shares = list[tuple[float, float]]()
    print(f"| program | {FIRST} | {SAMPLED} |\n|---|--:|--:|")
    for row in rows(options.seconds, options.only, options.state):
        times = row["times"]
        shares.append((times[SEARCHED] / times[FIRST], times[SEARCHED] / times[SAMPLED]))
        print(f"| {row['name']} | {shares[-1][0]:.2f} | {shares[-1][1]:.2f} |", flush=True)
    means = " | ".join(f"{geomean(column):.3f}" for column in zip(*shares, strict=True))
    print(f"| geometric mean of {len(shares)} | {means} |")


if __name__ == "__main__":
    main()
