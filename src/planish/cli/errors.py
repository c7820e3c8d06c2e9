"""What a user sees of an error: one line on standard error, and an exit code.

The codes are documented in docs/reference/exit-codes.md.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import typer
from typer.exceptions import TyperException

UNEXPECTED = 1
READER_GONE = 141  # 128 + SIGPIPE


def guarded(action: Callable[[], None], *, debug: bool) -> int:
    """Run a command.

    Args:
        action: the command.
        debug: whether an error shows its traceback.

    Returns:
        The exit code.
    """
    try:
        with _warning_plainly():
            action()
    except typer.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        _forget_output()
        return READER_GONE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (told to the user)
        if debug:
            with suppress(OSError):
                _show(traceback.format_exc().rstrip("\n"))
        code = _told(error)
        _give_up_unwritable_output()
        return code
    return 0


@contextmanager
def writing(path: Path, hint: str = "Name another place, or make room there.") -> Generator[None]:
    """Raise PlanishError, with a hint, where a file or folder cannot be written."""
    try:
        yield
    except OSError as error:
        from planish.core import PlanishError

        what = f"cannot write {path}: {error.strerror or error}"
        raise PlanishError(what, hint) from error


@contextmanager
def _warning_plainly() -> Generator[None]:
    """Write warnings as one line, without the line of code that gave them."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        with suppress(OSError):
            _show(f"planish: warning: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _show(text: str) -> None:
    """Write to standard error; a password in a URL that was misplaced on the command line is masked."""
    from planish.cli.output import printable
    from planish.core.errors import redact  # here: `planish.core` would double the time that --help takes

    typer.echo(printable(redact(text)), err=True)


def _told(error: BaseException) -> int:
    code, line = _described(error)
    with suppress(OSError):  # nobody reads it, or the disk is full that it goes to: the code tells the same
        _show(f"planish: error: {' '.join(line.split())}")
    return code


def _described(error: BaseException) -> tuple[int, str]:
    from planish.core import PlanishError

    match error:
        case PlanishError():
            return error.exit_code, str(error)
        case TyperException():
            return error.exit_code, f"{_ended(error.format_message())} {_help_hint(error)}"
        case KeyboardInterrupt():
            return _signalled(), "interrupted. What was measured before is stored."
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            where = error.filename or "the output, or a temporary file,"
            return UNEXPECTED, f"the disk is full: {where} cannot be written. Make room there."
        case OSError():
            return UNEXPECTED, f"the system refuses: {error}. See where with --debug."
        case _:
            what = f"{type(error).__name__}: {error}"
            return UNEXPECTED, f"{what}. This is an error in planish: see where with --debug, and report it."


def _signalled() -> int:
    """Give the exit code of the signal that came, as shells have it."""
    from planish.core import stopped_by

    return 128 + stopped_by()


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def _help_hint(error: TyperException) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    return f"See '{context.command_path if context else 'planish'} --help'."


def _give_up_unwritable_output() -> None:
    """Where output that is left cannot be written either, Python would end with a code of its own."""
    lost = False
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            lost = True
    if lost:
        _forget_output()


def _forget_output() -> None:
    """Nobody reads any more, so nothing may be written when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
