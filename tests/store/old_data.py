"""What the databases of old schemas in tests/data hold; they were written by this program.

A new schema gets its file by `PYTHONPATH=tests python -m store.old_data`. The old files hold what is
below too, so it must not change.
"""

import shutil
from pathlib import Path

from planish.core import Candidate, Failed, Measured, Objective, Target, Task, Trial
from planish.store import ResultRow, open_store
from planish.store.schema import SCHEMA
from planish.testing.stored import Sheet, Tile

DATA = Path(__file__).parents[1] / "data"

TASK = Task(
    Sheet("plate \N{HAMMER}"),
    Target("anvil", frozenset({"hammer", "tongs"}), 2, {"smith": "3.1"}),
    (Objective("time_s", "s"), Objective("gain", "", "up")),
    "1",
)
FIRST = Candidate((Tile("m", (4, 8)), Tile("n", (16,), 0.25, last=True, note='"quoted"')))
TRIALS = [
    Trial(Candidate(), Measured({"time_s": 0.25, "gain": 1.0}), 0, 7, {"run": 0.5}, "anvil-1", 1.75e9),
    Trial(FIRST, Measured({"time_s": 0.125}, {"time_s": (0.125, 0.25)}), 1, 7, {}, "anvil-1", 1.75e9 + 1),
    Trial(Candidate((Tile("k"),)), Failed("verify", "wrong answer", "at [0, 1]"), 2, 7, {}, "anvil-2", 0.0),
    Trial(FIRST, Measured({"time_s": 0.125}), 3, 7, {}, "anvil-1", 1.75e9 + 2, cached=True),
]
FINALISTS = [
    ResultRow(FIRST, 2.0, {"interval": [1.75, 2.25], "verdict": "faster"}),
    ResultRow(Candidate(), 1.0, {}),
]


def write(place: str | Path) -> None:
    """Make a store of the newest schema; the second run in it was killed."""
    with open_store(place) as store:
        first, second = (
            store.begin_run(TASK, searcher="genetic", space="template", seed=seed, options={"width": 3})
            for seed in (7, 8)
        )
        store.add_trials(first, TRIALS)
        store.save_result(first, FINALISTS)
        store.finish_run(first, seconds={"search": 0.5})
        store.add_trials(second, TRIALS[:1])


if __name__ == "__main__":
    made = DATA / "new.db"
    write(made)
    shutil.move(made, DATA / f"store-{SCHEMA}.db")
