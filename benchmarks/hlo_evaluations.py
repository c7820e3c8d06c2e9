"""Evaluations of StableHLO patches a second: compile, train, score and time, in workers, as a search does.

Candidates are random patches of three edits for 2fcNet, on the search's part of its data (PLANISH_DATA, else
a stand-in). Workers are started before the clock is. Target: at least 2 a second with one worker.
`python benchmarks/hlo_evaluations.py`
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from planish.core import Candidate, CanSample, Failed, Measured, Task, evaluate, rng, usable_cores
from planish.levels.hlo.level import HloLevel
from planish.measure.executors import LocalExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

MODULE = Path(__file__).parents[1] / "examples" / "hlo" / "2fcnet.mlir"


def main() -> None:
    """Evaluate with one worker, and with as many as there are cores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=40)
    parser.add_argument("--backend", default="xla")
    options = parser.parse_args()
    level = HloLevel()
    program = level.load(str(MODULE), {"backend": options.backend})
    task = task_of(level, program, Settings(objectives=("time", "error")))
    space = level.space(task, "patches")
    assert isinstance(space, CanSample)
    candidates = [space.sample(rng(0, index)) for index in range(options.candidates)]
    print(f"{'workers':<10}{'a second':>9}{'failed':>8}   seconds of each, by stage")
    for workers in sorted({1, usable_cores()}):
        measure(level, task, candidates, workers)


def measure(level: HloLevel, task: Task, candidates: Sequence[Candidate], workers: int) -> None:
    """Evaluate candidates, and print a row."""
    stages: Counter[str] = Counter()
    failed = 0
    with LocalExecutor(level.evaluator(task), workers=workers) as executor:
        ready = [answer.outcome for answer in evaluate(executor, [Candidate()] * workers)]
        assert all(isinstance(outcome, Measured) for outcome in ready)
        start = time.monotonic()
        for answer in evaluate(executor, candidates):
            failed += isinstance(answer.outcome, Failed)
            stages.update({stage: spent / len(candidates) for stage, spent in answer.seconds.items()})
        rate = len(candidates) / (time.monotonic() - start)
    spent = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in stages.most_common())
    print(f"{workers:<10}{rate:>9.2f}{failed:>8}   {spent}")


if __name__ == "__main__":
    main()
