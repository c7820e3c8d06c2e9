"""Candidates a second: how many are built, verified, measured and stored on a 192-cubed matmul.

Target: at least 200 a second. `python benchmarks/throughput.py`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import matmul
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget, Settings


def main() -> None:
    """Tune and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--searcher", default="random")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "bench.db") as store:
        settings = Settings(searcher=options.searcher)
        start = time.perf_counter()
        result = tune_program(
            LoopsLevel(),
            matmul(192, 192, 192),
            budget=Budget(seconds=options.seconds),
            settings=settings,
            store=store,
            compares=False,
        )
        took = time.perf_counter() - start
    trials = result.run.trials
    print(f"{trials} candidates in {took:.1f} s: {trials / took:.0f} a second, the start included")
    total = sum(result.run.seconds.values())
    for stage, seconds in sorted(result.run.seconds.items(), key=lambda item: -item[1]):
        print(f"  {stage:<10}{seconds / trials * 1e3:>8.2f} ms a trial{seconds / total:>8.0%}")
    print(f"  failed: {sum(result.failures.values())}")


if __name__ == "__main__":
    main()
