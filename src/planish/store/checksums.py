"""Each row has a checksum: what a disk or a hand has changed is noticed when the row is read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planish.core import StoreError

TASK = (
    *("key", "level", "level_version", "program", "target", "objectives", "objective", "subject"),
    "created",
)
RUN = (
    *("id", "task_key", "searcher", "space", "seed", "options", "versions", "host", "started", "ended"),
    *("status", "seconds", "taught", "stored", "trials_sum", "results_sum"),
)
TRIAL = (
    *("task_key", "run_id", "index", "candidate_hash", "candidate", "outcome", "seconds", "seed", "host"),
    *("time", "cached"),
)
RESULT = ("run_id", "rank", "task_key", "candidate", "ratio", "data")
COVERED: Mapping[str, Sequence[str]] = {"tasks": TASK, "runs": RUN, "trials": TRIAL, "results": RESULT}

_SEPARATOR = "\x1f"


def checksum(values: Iterable[object]) -> int:
    """Give the CRC-32 of a row's values, in the order of `COVERED`: 32 bits or fewer in a row cannot hide."""
    # With a separator: else what moves from the end of a value to the beginning of the next would not show.
    return zlib.crc32(_SEPARATOR.join(map(str, values)).encode("utf-8", "surrogatepass"))


def sealed(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Give a row with its checksum."""
    return {**row, "checksum": checksum(row[name] for name in COVERED[table])}


def total(checksums: Iterable[int]) -> int:
    """Give one number for a set of rows: their checksums' sum. A row that is lost changes it."""
    return sum(checksums)


def damaged_trial(label: str, row: int, run_id: str) -> StoreError:
    """Make the error of a trial that is not as it was written."""
    hint = (
        f"Repeat the run's command, which measures it again, or delete the run: planish runs delete {run_id}."
    )
    return StoreError(f"the store {label} is damaged: row {row} of table trials", hint)


def damaged(label: str, what: str, run_id: str = "") -> StoreError:
    """Make the error of a store that is not as planish left it.

    Args:
        label: the store, as it is named to people.
        what: which row of which table, and what is the matter with it.
        run_id: the run that it belongs to; empty where it is of several.
    """
    rest = f"or give that run up: planish runs delete {run_id}" if run_id else "or name another with --store"
    return StoreError(f"the store {label} is damaged: {what}", f"Go back to a copy of the store, {rest}.")
