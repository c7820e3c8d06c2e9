"""Records to rows of the tables, and back."""

import gc
import json
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

from planish.core import (
    Objective,
    Step,
    StoreError,
    Target,
    Task,
    Trial,
    candidate_from_json,
    canonical_json,
    content_hash,
    outcome_from_json,
    outcome_to_json,
)
from planish.store.records import Finalist, Run, StoredTask
from planish.store.schema import results, trials

# A value that is not finite is stored as it was measured, so this is not the canonical form.
to_json = json.JSONEncoder(separators=(",", ":")).encode

TRIAL_COLUMNS = tuple(
    trials.c[name] for name in ("candidate", "outcome", "index", "seed", "seconds", "host", "time", "cached")
)
FINALIST_COLUMNS = (results.c.candidate, results.c.ratio, results.c.data, results.c.run_id)

Steps = Mapping[str, type[Step]]
Record = tuple[Any, ...]


def subject(task: Task) -> str:
    """Name what is optimised and where, whatever for."""
    return content_hash(canonical_json([task.level, task.level_version, task.program.text, task.target.text]))


def task_row(task: Task) -> dict[str, Any]:
    """Give a task's row."""
    return {
        "key": task.key,
        "level": task.level,
        "level_version": task.level_version,
        "program": task.program.text,
        "target": task.target.text,
        "objectives": to_json([[o.name, o.unit, o.direction, o.exact] for o in task.objectives]),
        "objective": task.objectives[0].name,
        "subject": subject(task),
        "created": time.time(),
    }


def task_from_row(row: Mapping[Any, Any]) -> StoredTask:
    """Read a task back."""
    with _readable("task"):
        target: dict[str, Any] = json.loads(row["target"])
        features: dict[str, Any] = {"features": frozenset(target["features"])}
        return StoredTask(
            key=row["key"],
            level=row["level"],
            level_version=row["level_version"],
            program=row["program"],
            target=Target(**(target | features)),
            objectives=tuple(Objective(*fields) for fields in json.loads(row["objectives"])),
            created=row["created"],
        )


def trial_row(trial: Trial, run_id: str, task_key: str) -> dict[str, Any]:
    """Give a trial's row."""
    return {
        "task_key": task_key,
        "run_id": run_id,
        "index": trial.index,
        "candidate_hash": trial.candidate.hash,
        "candidate": trial.candidate.text,
        "outcome": to_json(outcome_to_json(trial.outcome)),
        "seconds": to_json(dict(trial.seconds)),
        "seed": trial.seed,
        "host": trial.host,
        "time": trial.time,
        "cached": trial.cached,
    }


def trials_from_rows(rows: Iterable[Record], steps: Steps) -> list[Trial]:
    """Read trials back from rows of `TRIAL_COLUMNS`.

    Raises:
        StoreError: a row was changed by something else than planish.
        ProgramError: the level no longer has a step.
    """
    found: list[Trial] = []
    read = json.loads
    with _readable("trial"), _uncollected():
        for candidate, outcome, index, seed, seconds, host, ended, cached in rows:
            sequence = candidate_from_json(read(candidate), steps)
            known = outcome_from_json(read(outcome))
            found.append(Trial(sequence, known, index, seed, read(seconds), host, ended, cached))
    return found


def finalists_from_rows(rows: Iterable[Record], steps: Steps) -> list[Finalist]:
    """Read finalists back from rows of `FINALIST_COLUMNS`; raises as `trials_from_rows` does."""
    with _readable("result"):
        return [
            Finalist(candidate_from_json(json.loads(candidate), steps), ratio, json.loads(data), run_id)
            for candidate, ratio, data, run_id in rows
        ]


def run_from_row(row: Mapping[Any, Any], written: bool) -> Run:
    """Read a run back.

    Args:
        row: of the table, and the number of `trials`.
        written: whether a process is writing to it.
    """
    with _readable("run"):
        fields: dict[str, Any] = dict(row)
        fields |= {name: json.loads(row[name]) for name in ("options", "versions", "seconds")}
        fields["taught"] = None if row["taught"] is None else json.loads(row["taught"])
        if row["status"] == "running" and not written:
            fields["status"] = "interrupted"
        return Run(**fields)


@contextmanager
def _uncollected() -> Generator[None]:
    """Hold the garbage collector back: loading makes many objects and no garbage, and takes half as long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _readable(what: str) -> Generator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        hint = "Something else than planish changed it: go back to a copy of the store."
        raise StoreError(f"a {what} in the store cannot be read: {error}", hint) from error
