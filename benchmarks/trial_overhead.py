"""What a trial pays for isolation, storing and bookkeeping, with an evaluator that does nothing.

Prints, for each way to evaluate, the median over batches of milliseconds a trial, and how much that is
above a direct call. In the last rows every trial is stored by itself when its answer comes, as in a run.
Run it on a quiet machine: `python benchmarks/trial_overhead.py`.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from null_evaluator import NullEvaluator, candidates
from planish.core import Executor, Trial, evaluate
from planish.measure.executors import InlineExecutor, LocalExecutor
from planish.store import Store, open_store
from planish.testing.stores import make_task

TRIALS = 4096
GOAL_MS = 0.3


def milliseconds(executor: Executor, batch: int) -> float:
    """Give the median over batches of milliseconds a trial."""
    list(evaluate(executor, candidates(batch)))  # the workers start
    return statistics.median(_once(executor, batch) for _ in range(TRIALS // batch))


def _once(executor: Executor, batch: int) -> float:
    fresh = candidates(batch)
    start = time.perf_counter()
    answers = list(evaluate(executor, fresh))
    return (time.perf_counter() - start) / len(answers) * 1e3


def stored_milliseconds(executor: Executor, batch: int, store: Store) -> float:
    """Give the same for trials that are stored one by one."""
    run = store.begin_run(make_task(), searcher="none", space="none", seed=0)
    numbers = count()

    def once() -> float:
        fresh = candidates(batch)
        start = time.perf_counter()
        for found in evaluate(executor, fresh):
            outcome, seconds = found.outcome, found.seconds
            trial = Trial(found.candidate, outcome, next(numbers), 0, seconds, "here", time.time())
            store.add_trials(run, [trial])
        return (time.perf_counter() - start) / batch * 1e3

    return statistics.median(once() for _ in range(TRIALS // batch))


def rows(lock: Path) -> Sequence[tuple[str, int, float]]:
    """Measure every way: its name, the batch, milliseconds a trial."""
    found = [("direct call", 64, milliseconds(InlineExecutor(NullEvaluator(), lock=lock), 64))]
    for workers in (1, 2):
        with LocalExecutor(NullEvaluator, workers=workers, lock=lock) as executor:
            name = f"LocalExecutor, workers={workers}"
            found += [(name, batch, milliseconds(executor, batch)) for batch in (1, 16, 64)]
    with open_store(lock.with_name("overhead.db")) as store:
        for workers in (1, 2):
            with LocalExecutor(NullEvaluator, workers=workers, lock=lock) as executor:
                for batch in (8, 64):
                    cost = stored_milliseconds(executor, batch, store)
                    found.append((f"and stored, workers={workers}", batch, cost))
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
