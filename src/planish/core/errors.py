"""Errors that a user can fix, and redaction of passwords in text that people see."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from planish.core.process import stopped_by

LISTED = 30
"""Known names that an error lists at most: it is one line."""


class PlanishError(Exception):
    """Something that the user asked for cannot be done.

    Args:
        message: what is wrong, and where.
        hint: the command or value that fixes it; shown after the message.

    Exit codes are by class, and documented in docs/reference/exit-codes.md.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        # A message may end with another error's hint, which is a sentence already.
        return f"{self.message.removesuffix('.')}. {self.hint}" if self.hint else self.message


class ArgumentError(PlanishError, ValueError):
    """An argument of a function has a wrong type or value; the message names the argument."""


class UnknownNameError(PlanishError):
    """A name that nothing has.

    Args:
        what: begins the message, such as "level 'loops' has no option".
        name: the name.
        known: those that there are.
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.what, self.name, self.known = what, name, tuple(known)
        super().__init__(f"{what} '{name}'", did_you_mean(name, self.known))

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...]]]:
        return type(self), (self.what, self.name, self.known)


class ProgramError(PlanishError):
    """The program is malformed: an unknown axis, a rank mismatch, a size that is not positive."""

    exit_code = 3


class MissingFileError(ProgramError):
    """A stored program refers to a file that is not where it was; `files=` names where it is now."""


class ScheduleError(PlanishError):
    """A step is illegal here; the message names the rule and the axis."""

    exit_code = 3


class StoreError(PlanishError):
    """The store cannot be read or written: locked, read-only, corrupt, of a newer schema, disk full."""

    exit_code = 4


class TargetError(PlanishError):
    """This machine lacks what was asked of it: an instruction set, cores, memory, a library."""

    exit_code = 5


class DeviceLostError(TargetError):
    """A device answers no further call of this process, because of what was executed on it."""


class AllFailedError(PlanishError):
    """Every candidate failed, so there is no result."""

    exit_code = 6


class WrongBaselineError(PlanishError):
    """The baseline answers wrongly.

    Args:
        message: how wrong, and by what.
        hint: what to do.
        instead: the same program with another baseline, which answers rightly; None where none was found.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "", instead: object = None) -> None:
        super().__init__(message, hint)
        self.instead = instead


class MismatchError(PlanishError):
    """A stored result does not reproduce: replay, value or answer differ."""

    exit_code = 7


class LostError(PlanishError):
    """One worker after the other is lost before it has done what nothing can go on without."""


class StoppedError(PlanishError):
    """The user, or the system, ended the run before there was anything to keep.

    Args:
        number: the signal's; by default of the one that asked to stop last. The exit code is 128 more.
    """

    exit_code = 130

    def __init__(self, message: str, hint: str = "", number: int | None = None) -> None:
        super().__init__(message, hint)
        self.exit_code = 128 + (stopped_by() if number is None else number)


def unknown(what: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Make the error for a name that nothing has; `what` is such as "level 'loops' has no option"."""
    return UnknownNameError(what, name, known)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Make the hint for an unknown name: the nearest known one, else all of them, or the first of many."""
    import difflib

    names = sorted(known)
    if close := difflib.get_close_matches(name, names, n=1):
        return f"Did you mean '{close[0]}'?"
    listed = ", ".join(names[:LISTED]) or "none"
    return f"Known: {listed}{' and others' if len(names) > LISTED else ''}."


MASK = "***"
_SHORT = 5

_PATTERNS = (
    # password=..., in a query or a connection string.
    (r"((?:passw(?:or)?d|passfile|pwd)\s*(?:=|%3D))\s*(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"]+)", r"\1***"),
    # ?name=value, where the name may be a mistyped one of these.
    (r"([?&;](?!host=|port=)[\w%]+=)[^\s&'\"]+", r"\1***"),
    # //user:password@host, also where the password holds spaces, or an "@" of its own.
    (r"(//[^\s:@/'\"]*):(?:\S*@|(?!\d{1,5}(?:[/?\s]|$))\S[^@\n]*@(?:\S*@)*)", r"\1:***@"),
    # //user:password/database, where the "@" was forgotten: a port is a number.
    (r"(//[^\s:@/'\"]*):(?!\d{1,5}(?!\w)|\*)[^\s'\"]+", r"\1:***"),
    # user:password@host, where the "//" was forgotten.
    (r"([\w.+%-]+):(?!//|\*)\S*@", r"\1:***@"),
)


def redact(text: str) -> str:
    """Return a text without the passwords in its URLs and connection strings.

    It is for texts of which nothing is known, such as command lines and errors. It rather hides too much.
    """
    for pattern, masked in _compiled():
        text = pattern.sub(masked, text)
    return text


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return a text in which each of these secrets is masked; a short one only where it is a whole word."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        pattern = re.escape(secret)
        text = re.sub(pattern if len(secret) > _SHORT else rf"(?<!\w){pattern}(?!\w)", MASK, text)
    return text


@cache  # compiled at the first error: importing stays cheap
def _compiled() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), masked) for pattern, masked in _PATTERNS)
