"""What a long run costs to resume, to show and to keep in memory, by its number of trials.

Run `python benchmarks/store_resume.py [--searcher NAME] [TRIALS ...]` (10,000 unless told). Candidates are
those of the level `loops`, and its searcher unless told; nothing is measured, a table answers. `show` is a
process of its own, with its start. Targets for 10,000 trials: load and show under 0.5 s, resume under 1 s;
memory that grows by a constant for each trial.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from planish.core import Candidate, EvaluatorSpec, Measured, Outcome, StageClock, Trial
from planish.core.registry import load_program
from planish.measure.executors import InlineExecutor
from planish.store import Store, open_store
from planish.tuning.api import tune_program
from planish.tuning.recorder import Listener, Progress, Silent
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings

PROGRAM = "C[m,n] += A[m,k] * B[k,n]"
SIZES = {"size": "m=192,n=192,k=192"}
NEW = 16
REPEATS = 3
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""An installed package is compiled to bytecode."""


class ByHash:
    """Answers by the candidate's hash."""

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Give a made-up time."""
        del clock
        value = 1e-3 + int(candidate.hash[:6], 16) * 1e-9
        return Measured({"time_s": value}, {"time_s": (value,) * 5})


class Table(InlineExecutor):
    """Answers at once, and starts no worker."""

    def __init__(self) -> None:
        super().__init__(ByHash())

    def serve(self, spec: EvaluatorSpec) -> None:
        """Answer for any task."""


class Memory(Silent):
    """Notes what is held in memory when half of the trials are done, and when all are."""

    def __init__(self, trials: int) -> None:
        self._trials, self._held = trials, dict[int, int]()

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Look, if it is time."""
        del trial
        if progress.trials in (self._trials // 2, self._trials):
            gc.collect()
            self._held[progress.trials], _ = tracemalloc.get_traced_memory()

    @property
    def bytes_a_trial(self) -> float:
        """Over the second half."""
        first, last = self._held.values()
        return (last - first) / (self._trials - self._trials // 2)


def tuned(store: Store, trials: int, searcher: str, listener: Listener | None = None) -> Result:
    """Tune, or go on."""
    level, program = load_program(PROGRAM, "loops", SIZES)
    settings = Settings(workers=1, searcher=searcher)
    budget = Budget(trials=trials)
    return tune_program(
        level,
        program,
        budget=budget,
        settings=settings,
        store=store,
        executor=Table(),
        compares=False,
        listener=listener,
    )


def seconds(action: Callable[[], object]) -> float:
    """Time a call; the least of a few."""
    times: list[float] = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return min(times)


def measure(place: Path, trials: int, searcher: str) -> list[tuple[str, float]]:
    """Make a run of so many trials, and give what was timed, in seconds."""
    with open_store(place) as store:
        run_id = tuned(store, trials, searcher).run.id
        level, _ = load_program(PROGRAM, "loops", SIZES)
        loading = seconds(lambda: store.run_trials(run_id, level.steps))
        nothing_new = seconds(lambda: tuned(store, trials, searcher))
        begun = time.perf_counter()
        tuned(store, trials + NEW, searcher)
        something_new = time.perf_counter() - begun
    run = "from planish.cli.script import main; main()"
    show = [sys.executable, "-c", run, "show", run_id, "--store", str(place)]
    showing = seconds(lambda: subprocess.run(show, check=True, env=COMPILED, stdout=subprocess.DEVNULL))
    listing = seconds(
        lambda: subprocess.run([*show[:4], *show[5:]], check=True, env=COMPILED, stdout=subprocess.DEVNULL)
    )
    return [
        ("load the run", loading),
        ("resume with nothing left to do", nothing_new),
        (f"resume with {NEW} new trials", something_new),
        ("planish show ID", showing),
        ("planish show", listing),
    ]


def bytes_a_trial(place: Path, trials: int, searcher: str) -> float:
    """Make a run of so many trials, and give the bytes that each adds to what is held."""
    memory = Memory(trials)
    tracemalloc.start()
    try:
        with open_store(place) as store:
            tuned(store, trials, searcher, memory)
    finally:
        tracemalloc.stop()
    return memory.bytes_a_trial


def main() -> None:
    """Print a table for each number of trials."""
    given = argparse.ArgumentParser()
    given.add_argument("trials", type=int, nargs="*", default=[10_000])
    given.add_argument("--searcher", default="", help="in place of the level's usual one")
    asked = given.parse_args()
    for trials in asked.trials:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{trials:,} trials: seconds")
            for name, taken in measure(Path(folder) / "planish.db", trials, asked.searcher):
                print(f"  {name:36}{taken:8.3f}")
            held = bytes_a_trial(Path(folder) / "memory.db", trials, asked.searcher)
            print(f"  {'bytes that a trial adds to memory':36}{held:8.0f}")
        print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB\n")


if __name__ == "__main__":
    main()
