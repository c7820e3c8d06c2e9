"""Results of many programs on record, and whether new ones are worse: for continuous integration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planish.core import Level, PlanishError, Program
from planish.core.replacing import replace_text
from planish.levels import load_program
from planish.tuning.batch import Part, Unmeasured

FORM = 1
"""The version of the file's form."""


class RegressionError(PlanishError):
    """A result is worse than the recorded one."""

    exit_code = 8


@dataclass(frozen=True)
class Record:
    """What was reached before.

    Args:
        objective: the name of what was improved.
        values: program to value, with the baseline as a backup.
    """

    objective: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Change:
    """A program's result beside the recorded one.

    Args:
        name: the program's.
        before: the recorded value.
        now: the new one.
        worse: whether it is worse.
    """

    name: str
    before: float
    now: float
    worse: bool


def load_files(
    files: Sequence[str], level: str, options: Mapping[str, str]
) -> tuple[Level, Mapping[str, Program], Sequence[Unmeasured]]:
    """Read programs of one level; each is named by its path as given.

    Returns:
        Their level, the programs, and the files that cannot be read, each with the reason.

    Raises:
        PlanishError: not one can be read, or they are of different levels.
    """
    loaded: dict[str, tuple[Level, Program]] = {}
    errors: dict[str, PlanishError] = {}
    for file in files:
        try:
            loaded[file] = load_program(file, level, options)
        except PlanishError as error:
            errors[file] = error
    if not loaded:
        raise next(iter(errors.values()), PlanishError("no files", "Name a file at least."))
    levels = {found.name: found for found, _ in loaded.values()}
    if len(levels) != 1:
        raise PlanishError(f"files of {len(levels)} levels: {', '.join(levels)}", "Name files of one level.")
    (found,) = levels.values()
    unread = [Unmeasured(file, str(error)) for file, error in errors.items()]
    return found, {file: program for file, (_, program) in loaded.items()}, unread


def write_record(path: Path, parts: Sequence[Part], about: Mapping[str, str]) -> None:
    """Write what was reached, for `read_record`.

    Args:
        path: the file.
        parts: one at least, all of one objective.
        about: what the results depend on, for people: versions and the like.

    Raises:
        OSError: it cannot be written.
    """
    results = {
        part.name: {
            "value": part.kept,
            "baseline": part.baseline,
            "passes": [str(step) for step in part.candidate.steps],
        }
        for part in parts
    }
    record = {"form": FORM, "objective": parts[0].objective.name, "about": dict(about), "results": results}
    replace_text(path, json.dumps(record, indent=2) + "\n")


def read_record(path: Path) -> Record:
    """Read what was reached before.

    Raises:
        PlanishError: it cannot be read, or is no such record.
    """
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        if data["form"] != FORM:
            raise PlanishError(f"'{path}' is a record of form {data['form']}, not {FORM}", "Record it anew.")
        values = {name: float(result["value"]) for name, result in data["results"].items()}
        return Record(data["objective"], values)
    except OSError as error:
        raise PlanishError(f"cannot read '{path}': {error.strerror}", "Make it with --record.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlanishError(f"'{path}' is no record: {error!r}", "Make one with --record.") from error


def changes(parts: Sequence[Part], record: Record) -> list[Change]:
    """Put results beside the recorded ones; those that are not on record are left out.

    Raises:
        PlanishError: the record is of another objective.
    """
    found: list[Change] = []
    for part in parts:
        if part.objective.name != record.objective:
            what = f"the record is of {record.objective}, these results are of {part.objective.name}"
            raise PlanishError(what, f"Ask for --objective {record.objective}.")
        if part.name in record.values:
            before, cost = record.values[part.name], part.objective.cost
            found.append(Change(part.name, before, part.kept, cost(part.kept) > cost(before)))
    return found


def require_no_loss(found: Sequence[Change]) -> None:
    """Raise RegressionError where a result is worse than the recorded one."""
    worse = [change for change in found if change.worse]
    if worse:
        first = f"{worse[0].name}: {worse[0].now:g}, recorded {worse[0].before:g}"
        others = f", and {len(worse) - 1} more" if worse[1:] else ""
        raise RegressionError(
            f"worse than recorded: {first}{others}", "Mend it, or record anew with --record."
        )
