"""Request of a user in the terms of the library, and the command lines that repeat or resume it."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from planish.cli.options import ProgramOptions
from planish.core import ExecutorFactory, PlanishError
from planish.core.errors import redact
from planish.search import split_settings
from planish.tuning.api import DEFAULT_BUDGET
from planish.tuning.remeasure import seconds_for_all
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings

if TYPE_CHECKING:
    from planish.sandbox.fork_pool import Forked


def check_output_paths(report: Path | None, export: Path | None) -> None:
    """Raise PlanishError where a report cannot be written to a file, or a winner into a folder.

    Nothing is made. What becomes of them meanwhile, and a disk that is full by then, cannot be known.
    """
    if report is not None:
        if report.is_dir():
            raise PlanishError(f"cannot write the report {report}: it is a folder", "Name a file in it.")
        _require(report, report.parent)
        if report.exists() and not os.access(report, os.W_OK):
            raise _refused(report, "it is not writable")
    if export is not None:
        _require(export, export)


def _require(path: Path, folder: Path) -> None:
    """See whether a file could be made in a folder, which may have to be made too."""
    there = folder.absolute()
    try:
        while not there.exists():
            there = there.parent
        if not there.is_dir():
            raise _refused(path, f"{there} is not a folder")
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise _refused(path, f"{there}: {error.strerror or error}") from error


def _refused(path: Path, why: str) -> PlanishError:
    return PlanishError(f"cannot write {path}: {why}", "Name another path, or free space there.")


class Request(NamedTuple):
    """A program to tune, how to read it, how to search, and for how long."""

    program: str
    options: dict[str, Any]
    settings: Settings
    budget: Budget


def budget_of(
    trials: int | None, seconds: float | None, value: float | None, usual: Budget = DEFAULT_BUDGET
) -> Budget:
    """Make the budget; where neither trials nor seconds are given, the usual one's seconds hold.

    Raises:
        PlanishError: a limit is not positive.
    """
    limited = trials is not None or seconds is not None
    return Budget(trials, seconds if limited else usual.seconds, value)


_OF_COMMANDS = frozenset(
    ("trials", "seconds", "searcher", "objective", "cores", "seed", "store", "space", "workers", "finalists")
)
"""Options of the commands, which a user may take for a level's."""


def level_options(given: ProgramOptions) -> dict[str, Any]:
    """Collect the options that say how to read a program, those given alone: texts by name.

    Raises:
        PlanishError: an option is not of the form NAME=VALUE, or is given twice, or has a name that no
            level's option can have.
    """
    named = {**vars(given), "run": "yes" if given.run else ""}
    further = split_settings(named.pop("option") or ())
    for name in further:
        if name in _OF_COMMANDS:
            raise PlanishError(f"no level has an option '{name}'", f"Did you mean --{name}?")
    texts = {name: text if isinstance(text, str) else ",".join(text) for name, text in named.items() if text}
    return {**texts, **further}


@contextmanager
def executors(name: str, ray: str, *, forks: bool = False) -> Generator[ExecutorFactory]:
    """Provide what starts executors: workers of this machine, or those on the hosts of a Ray cluster.

    Args:
        name: "local" or "ray".
        ray: the address of the cluster; empty for RAY_ADDRESS, or a Ray of this command's own.
        forks: whether workers of this machine are forked from this process, which evaluators survive.

    Raises:
        PlanishError: an address is given without `--executor ray`, or the cluster cannot be used.
    """
    if name == "ray":
        from planish.measure.ray_cluster import RayCluster

        with RayCluster(ray) as cluster:
            yield cluster
        return
    if ray:
        raise PlanishError("--ray is the address of a cluster", "Add --executor ray, or leave it out.")
    from planish.measure.executors import ForkedExecutor, LocalExecutor

    yield ForkedExecutor if forks else LocalExecutor


@contextmanager
def spreads(name: str, ray: str) -> Generator[Forked]:
    """Provide what does work on many items: children of this process, or those of a Ray cluster's hosts.

    Args:
        name, ray: as `executors` takes them.

    Raises:
        PlanishError: as `executors`.
    """
    with executors(name, ray) as start:
        if name == "ray":
            from planish.measure.ray_cluster import RayCluster

            assert isinstance(start, RayCluster)
            yield start.forked
            return
        from planish.sandbox.fork_pool import forked

        yield forked


def names(text: str) -> tuple[str, ...]:
    """Split a list of names at its commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


_SECONDS = "--seconds"
_REMEASURE = "--remeasure"
"""Begins another run each time, so a command with it resumes nothing."""


def command_again(words: Sequence[str], result: Result, budget: Budget) -> str:
    """Return the command line that resumes a run that is undecided, without passwords.

    Where only some repeats of the comparison fitted into its time, it has more seconds.

    Args:
        words: the command line that made the run, as given, without the program's name.
        result: the run.
        budget: what it had.
    """
    seconds = seconds_for_all(result.notes)
    words = _without(words, _REMEASURE)
    if seconds > (budget.seconds or 0.0):
        words = _with_option(words, _SECONDS, seconds)
    return command_line(words)


def command_of_more(words: Sequence[str], processes: int) -> str:
    """Return a command line by which twice as many processes measure, without passwords.

    Args:
        words: the command line as given, without the program's name.
        processes: how many measured.
    """
    return command_line(_with_option(words, "--processes", 2 * processes))


def command_line(words: Sequence[str]) -> str:
    """Write planish's words as they are typed, without passwords."""
    return shlex.join(["planish", *map(redact, words)])


def _without(words: Sequence[str], flag: str) -> list[str]:
    end = words.index("--") if "--" in words else len(words)
    return [*(word for word in words[:end] if word != flag), *words[end:]]


def _with_option(words: Sequence[str], name: str, value: int) -> list[str]:
    end = words.index("--") if "--" in words else len(words)
    kept = [
        word
        for before, word in zip(("", *words), words[:end], strict=False)
        if name not in (before, word) and not word.startswith(f"{name}=")
    ]
    return [*kept, name, str(value), *words[end:]]
