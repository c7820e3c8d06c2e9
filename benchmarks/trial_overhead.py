"""What a trial pays for isolation: batches through executors, with an evaluator that does nothing.

Prints, for each way to evaluate, the median over batches of milliseconds a trial, and how much that
is above a direct call. Run it on a quiet machine: `python benchmarks/trial_overhead.py`.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from null_evaluator import NullEvaluator, candidates
from planish.core import Executor
from planish.measure import InlineExecutor, LocalExecutor

TRIALS = 4096
GOAL_MS = 0.15


def milliseconds(executor: Executor, batch: int) -> float:
    """Give the median over batches of milliseconds a trial."""
    list(executor.submit(candidates(batch)))  # the workers start
    return statistics.median(_once(executor, batch) for _ in range(TRIALS // batch))


def _once(executor: Executor, batch: int) -> float:
    fresh = candidates(batch)
    start = time.perf_counter()
    answers = list(executor.submit(fresh))
    return (time.perf_counter() - start) / len(answers) * 1e3


def rows(lock: Path) -> Sequence[tuple[str, int, float]]:
    """Measure every way: its name, the batch, milliseconds a trial."""
    found = [("direct call", 64, milliseconds(InlineExecutor(NullEvaluator(), lock=lock), 64))]
    for workers in (1, 2):
        with LocalExecutor(NullEvaluator, workers=workers, lock=lock) as executor:
            name = f"LocalExecutor, workers={workers}"
            found += [(name, batch, milliseconds(executor, batch)) for batch in (1, 16, 64)]
    return found


def main() -> None:
    """Print the table."""
    print(f"{'way':<26}{'batch':>6}{'ms/trial':>10}{'overhead':>10}  (goal for batches: {GOAL_MS} ms)")
    with tempfile.TemporaryDirectory() as folder:
        (_, _, direct), *_ = table = rows(Path(folder) / "lock")
    for name, batch, cost in table:
        print(f"{name:<26}{batch:>6}{cost:>10.4f}{cost - direct:>10.4f}")


if __name__ == "__main__":
    main()
