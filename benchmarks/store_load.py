"""What the store costs: opening, adding trials one by one and in groups, loading them, and asking for them.

Run `python benchmarks/store_load.py` for SQLite, and with `--postgres postgresql://USER@HOST/DATABASE` for
both; that database must be empty. Trials have candidates of six steps. Goals are for SQLite.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from planish.core import Trial
from planish.store import Store, open_store
from planish.testing.stores import STEPS, begin, make_candidate, make_task, make_trial

TRIALS = 10_000
SINGLES = 2_000
GROUP = 16
REPEATS = 7

Row = tuple[str, list[float], str]


def seconds(action: Callable[[], object]) -> float:
    """Time one call."""
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def adding(store: Store, trials: Sequence[Trial], group: int) -> list[float]:
    """Add trials to a new run, so many at once; gives milliseconds per trial of each call."""
    run_id = begin(store)
    groups = [trials[i : i + group] for i in range(0, len(trials), group)]
    return [seconds(lambda g=g: store.add_trials(run_id, g)) * 1e3 / len(g) for g in groups]


def measure(place: str | Path) -> list[Row]:
    """Measure one database; gives what was timed, in milliseconds, and the goal."""
    trials = [make_trial(i, steps=6) for i in range(TRIALS)]
    key = make_task().key
    first = seconds(lambda: open_store(place).close()) * 1e3
    again = [seconds(lambda: open_store(place).close()) * 1e3 for _ in range(REPEATS)]
    with open_store(place) as store:
        grouped = adding(store, trials, GROUP)
        loading = [seconds(lambda: store.trials(key, STEPS)) * 1e3 for _ in range(REPEATS)]
        assert store.trials(key, STEPS) == trials
        single = adding(store, trials[:SINGLES], 1)
        asked = [make_candidate(i, 6) for i in range(TRIALS - GROUP // 2, TRIALS + GROUP // 2)]
        known = [seconds(lambda: store.known(key, asked)) * 1e3 / GROUP for _ in range(REPEATS * 10)]
        listing = [seconds(store.runs) * 1e3 for _ in range(REPEATS)]
    return [
        ("make the store", [first], ""),
        ("open it", again, "30"),
        ("add a trial, singly", single, "0.1"),
        (f"add a trial, {GROUP} at once", grouped, ""),
        (f"load {TRIALS:,} trials", loading, "500"),
        (f"ask for a candidate, {GROUP} at once", known, ""),
        ("list the runs", listing, ""),
    ]


def show(title: str, rows: Sequence[Row]) -> None:
    """Print a table."""
    print(f"{title}: milliseconds\n{'':36}{'least':>10}{'median':>10}{'mean':>10}{'goal':>10}")
    for name, times, goal in rows:
        middle, mean = statistics.median(times), statistics.mean(times)
        print(f"{name:36}{min(times):10.3f}{middle:10.3f}{mean:10.3f}{goal:>10}")
    print()


def main() -> None:
    """Measure SQLite, and PostgreSQL where it is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", metavar="URL", help="an empty PostgreSQL database")
    postgres: str | None = parser.parse_args().postgres
    with tempfile.TemporaryDirectory() as folder:
        show("SQLite", measure(Path(folder) / "planish.db"))
    if postgres:
        show("PostgreSQL", measure(postgres))


if __name__ == "__main__":
    main()
