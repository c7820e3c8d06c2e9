"""Output for people and for programs, and errors: one line on standard error, and an exit code.

The codes are documented in docs/reference/exit-codes.md.
"""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.exceptions import TyperException

if TYPE_CHECKING:
    from rich.table import Table

GAP = 3
"""Between the columns of a table."""

_PIPE_WIDTH = 1000  # no window is as wide


def say(text: str = "") -> None:
    """Write a text to standard output, without control characters."""
    from planish.core.wording import printable  # here: --help does without it

    typer.echo(printable(text))


def remark(line: str) -> None:
    """Write a line to standard error; a closed standard error is not a reason to end."""
    from planish.core.wording import printable

    with suppress(BrokenPipeError):
        typer.echo(printable(line), err=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> None:
    """Write a table.

    Args:
        columns: the heads.
        rows: of cells, one for each column.
        right: the columns to be aligned at the right.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from planish.core.wording import printable

    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in map(printable, columns):
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*map(printable, row))
    _draw(made)


def width() -> int:
    """Return the columns that standard output has."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH


def facts(pairs: Mapping[str, str]) -> None:
    """Write names and texts, one pair a line."""
    width = max(map(len, pairs), default=0)
    for name, text in pairs.items():
        say(f"{name:<{width}}  {text}")


def _draw(made: Table) -> None:
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(markup=False, highlight=False, emoji=False, width=None if terminal else _PIPE_WIDTH)
    with console.capture() as drawn:  # rich would end the process where the pipe is closed
        console.print(made)
    typer.echo("\n".join(line.rstrip() for line in drawn.get().strip("\n").splitlines()))


def document(value: Mapping[str, Any]) -> None:
    """Write one JSON document to standard output; a number that JSON cannot hold becomes null."""
    from planish.core.hashing import versioned

    say(json.dumps(_finite(versioned(value)), indent=2))


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(name): _finite(item) for name, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value


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
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  (shown to the user)
        if debug:
            with suppress(OSError):
                _show(traceback.format_exc().rstrip("\n"))
        code = _report_error(error)
        _give_up_unwritable_output()
        return code
    return 0


@contextmanager
def writing(path: Path, hint: str = "Name another path, or free space there.") -> Generator[None]:
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
        from planish.core.arguments import as_options

        with suppress(OSError):
            _show(f"planish: warning: {as_options(' '.join(str(message).split()))}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _show(text: str) -> None:
    """Write to standard error; a password in a URL that was misplaced on the command line is masked."""
    from planish.core.errors import redact
    from planish.core.wording import printable

    typer.echo(printable(redact(text)), err=True)


def _report_error(error: BaseException) -> int:
    code, line = _described(error)
    with suppress(OSError):  # it is not read, or the disk is full that it goes to: the code says the same
        _show(f"planish: error: {' '.join(line.split())}")
    return code


def _described(error: BaseException) -> tuple[int, str]:
    from planish.core import PlanishError
    from planish.core.arguments import as_options
    from planish.core.registry import PluginError

    match error:
        case PlanishError():
            where = " --debug shows where it failed." if isinstance(error, PluginError) else ""
            return error.exit_code, f"{as_options(str(error))}{where}"
        case TyperException():
            return error.exit_code, f"{_ended(_usage(error))} {_help_hint(error)}"
        case KeyboardInterrupt():
            return _signalled(), "interrupted. What was measured before is stored."
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            where = error.filename or "the output, or a temporary file,"
            return UNEXPECTED, f"the disk is full: {where} cannot be written. Make room there."
        case OSError():
            return UNEXPECTED, f"the system reports: {error}. Add --debug to see where."
        case _:
            what = f"{type(error).__name__}: {error}"
            return UNEXPECTED, f"{what}. This is an error in planish; report it with the output of --debug."


def _signalled() -> int:
    """Return the exit code of the signal that came, as shells have it."""
    from planish.core import stopped_by

    return 128 + stopped_by()


def _usage(error: TyperException) -> str:
    """Return the error in the words of a command; an option of another tool is named as it is here."""
    from planish.cli.options import option_for

    context: typer.Context | None = getattr(error, "ctx", None)
    if not (context and error.message.startswith("No such option")):
        return error.format_message()
    meant = option_for(getattr(error, "option_name", ""), context.command)
    return f"{error.message}. Did you mean '{meant}'?" if meant else error.format_message()


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def _help_hint(error: TyperException) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    return f"See '{context.command_path if context else 'planish'} --help'."


def _give_up_unwritable_output() -> None:
    """Drop output that cannot be written: Python would end with an exit code of its own."""
    lost = False
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            lost = True
    if lost:
        _forget_output()


def _forget_output() -> None:
    """Discard what is left to write, since the reader is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
