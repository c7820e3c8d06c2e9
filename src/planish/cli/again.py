"""Command lines that repeat or resume what is undecided."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from planish.core.errors import redact
from planish.measure import Plan
from planish.tuning.result import Result
from planish.tuning.settings import Budget
from planish.tuning.verdict import verdict_of

_SECONDS = "--seconds"
_REMEASURE = "--remeasure"
"""Begins another run each time, so a command with it resumes nothing."""


def command_again(words: Sequence[str], result: Result, budget: Budget) -> str:
    """Return the command line that resumes a run, without passwords; empty where it is decided.

    Where only some repeats of the comparison fitted into its time, it has more seconds.

    Args:
        words: the command line that made the run, as given, without the program's name.
        result: the run.
        budget: what it had.
    """
    if not words or verdict_of(result).kind != "undecided":
        return ""
    seconds = _seconds_for_all(result)
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


def _seconds_for_all(result: Result) -> int:
    """Return a budget in which all repeats of the comparison fit; 0 where all fitted, or none was made."""
    plan = Plan(seconds=result.run.seconds.get("compare", 0.0))
    repeats = len(result.comparison.baseline.lead.samples) if result.comparison else 0
    return plan.seconds_for_all(repeats) if 0 < repeats < plan.processes * plan.rounds else 0


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
