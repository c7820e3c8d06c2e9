"""The errors that a user can mend: one line that says what is wrong, where, and what to do."""

import difflib
from collections.abc import Iterable

from planish.core.stopping import stopped_by

LISTED = 30
"""Known names that an error lists at most: it is one line."""


class PlanishError(Exception):
    """Something that the user asked for cannot be done.

    Args:
        message: what is wrong, and where.
        hint: the command or value that mends it; shown after the message.

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


class ProgramError(PlanishError):
    """The program is malformed: an unknown axis, a rank mismatch, a size that is not positive."""

    exit_code = 3


class ScheduleError(PlanishError):
    """A step is illegal here; the message names the rule and the axis."""

    exit_code = 3


class StoreError(PlanishError):
    """The store cannot be read or written: locked, read-only, corrupt, of a newer schema, disk full."""

    exit_code = 4


class TargetError(PlanishError):
    """This machine lacks what was asked of it: an instruction set, cores, memory, a library."""

    exit_code = 5


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


class StoppedError(PlanishError):
    """The user, or the system, ended the run before there was anything to keep.

    Args:
        number: the signal's; by default of the one that asked to stop last. The exit code is 128 more.
    """

    exit_code = 130

    def __init__(self, message: str, hint: str = "", number: int | None = None) -> None:
        super().__init__(message, hint)
        self.exit_code = 128 + (stopped_by() if number is None else number)


def unknown(what: str, name: str, known: Iterable[str]) -> PlanishError:
    """Make the error for a name that nothing has; `what` is such as "level 'loops' has no option"."""
    return PlanishError(f"{what} '{name}'", did_you_mean(name, known))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Make the hint for an unknown name: the nearest known one, else all of them, or the first of many."""
    names = sorted(known)
    if close := difflib.get_close_matches(name, names, n=1):
        return f"Did you mean '{close[0]}'?"
    listed = ", ".join(names[:LISTED]) or "none"
    return f"Known: {listed}{' and others' if len(names) > LISTED else ''}."
