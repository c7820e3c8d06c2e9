"""Recordings: the outcomes of a space's candidates, as a file of compressed JSON lines."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from planish.core.errors import StoreError
from planish.core.files import StrPath, replacing
from planish.core.hashing import canonical_json
from planish.core.task import Objective
from planish.core.trial import STAGES, Failed, Measured, Outcome, outcome_from_json, outcome_to_json

FORMAT = "planish recording"
VERSION = 1


@dataclass(frozen=True)
class Recording:
    """Recorded outcomes of the candidates of a space.

    Args:
        task: the canonical text of the task.
        space: the name of the level's space.
        objective: what the table is to be compared by.
        outcomes: candidate hash to outcome.
        seconds: candidate hash to seconds by stage; a candidate may be missing.
    """

    task: str
    space: str
    objective: Objective
    outcomes: Mapping[str, Outcome]
    seconds: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])

    def best(self) -> float:
        """Return the least cost of the table.

        Raises:
            StoreError: no candidate was measured.
        """
        measured = [o.values for o in self.outcomes.values() if isinstance(o, Measured)]
        costs = [self.objective.cost(v[self.objective.name]) for v in measured if self.objective.name in v]
        if not costs:
            raise StoreError(f"the recording has no candidate with a value of '{self.objective.name}'")
        return min(costs)


def save_recording(recording: Recording, path: StrPath) -> None:
    """Write a recording as compressed JSON lines: a header, then a row for each candidate.

    Args:
        recording: what to write; equal recordings give equal files.
        path: the file, by custom named `*.jsonl.gz`; replaced only when all is written.

    Raises:
        StoreError: the file cannot be written.
        ValueError: a value is not finite, which JSON cannot express.
    """
    objective = recording.objective
    header = {
        "format": FORMAT,
        "version": VERSION,
        "task": recording.task,
        "space": recording.space,
        "objective": [objective.name, objective.unit, objective.direction],
        "rows": len(recording.outcomes),
    }
    rows = [
        {"candidate": name, "outcome": outcome_to_json(outcome), "seconds": recording.seconds.get(name, {})}
        for name, outcome in recording.outcomes.items()
    ]
    text = "".join(f"{canonical_json(line)}\n" for line in [header, *rows])
    try:
        with replacing(Path(path)) as part:
            # No time of writing: equal recordings make equal files.
            part.write_bytes(gzip.compress(text.encode(), mtime=0))
    except OSError as error:
        raise StoreError(f"cannot write the recording {path}: {error.strerror}") from error


def load_recording(path: StrPath) -> Recording:
    """Read a recording back.

    Raises:
        StoreError: the file cannot be read, is not a recording, is of a newer version, is cut
            short, or has a malformed or repeated row; the message names the line.
    """
    path = Path(path)
    lines = _read_lines(path)
    with _readable(f"{path}, line 1: no header of a recording"):
        header = _parse(lines[0])
        kind, version = header["format"], header["version"]
    if kind != FORMAT:
        raise StoreError(f"{path} holds a '{kind}', not a '{FORMAT}'", "Name a recording.")
    if version != VERSION:
        raise StoreError(
            f"{path} is a recording of version {version}, and this planish reads version {VERSION}",
            "Use the planish that wrote it, or record it again.",
        )
    with _readable(f"{path}, line 1: no header of a recording"):
        task, space, objective = str(header["task"]), str(header["space"]), Objective(*header["objective"])
        promised = int(header["rows"])
    outcomes, seconds = dict[str, Outcome](), dict[str, Mapping[str, float]]()
    for number, line in enumerate(lines[1:], start=2):
        with _readable(f"{path}, line {number}: malformed row"):
            row = _parse(line)
            outcomes[str(row["candidate"])] = _outcome(row["outcome"])
            if spent := _numbers(row["seconds"]):
                seconds[str(row["candidate"])] = spent
    if not len(lines) - 1 == len(outcomes) == promised:
        found = f"{len(lines) - 1} rows of {len(outcomes)} candidates"
        raise StoreError(f"{path} has {found} where its header promises {promised}", "Record it again.")
    return Recording(task, space, objective, outcomes, seconds)


def _read_lines(path: Path) -> list[str]:
    try:
        return gzip.decompress(path.read_bytes()).decode().splitlines()
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise StoreError(f"{path} is not a whole gzip file: {error}", "Record it again.") from error
    except OSError as error:
        raise StoreError(f"cannot read the recording {path}: {error.strerror}") from error


@contextmanager
def _readable(what: str) -> Generator[None]:
    """Raise a StoreError that says what cannot be read, where the block meets what it does not expect."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise StoreError(f"{what}: {error!r}", "Record it again.") from error


def _outcome(data: Mapping[str, Any]) -> Outcome:
    match outcome_from_json(data):
        case Measured(values, samples, parts):
            return Measured(_numbers(values), samples, _numbers(parts))
        case Failed(stage) as failed if stage in STAGES:
            return failed
        case failed:
            raise ValueError(f"unknown stage in {failed}")


def _numbers(data: Mapping[str, Any]) -> dict[str, float]:
    if not all(isinstance(value, (int, float)) for value in data.values()):
        raise TypeError(f"not all numbers: {data}")
    return dict(data)


def _parse(line: str) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a finite number")

    return json.loads(line, parse_constant=refuse)
