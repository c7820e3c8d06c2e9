"""Writing for people and for programs."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

GAP = 3
"""Between the columns of a table."""

_PIPE_WIDTH = 1000  # where nobody's window is too narrow


_CONTROL = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """Replace control characters, by which a worker, a program or a stored run would steer the terminal."""
    return text.translate(_CONTROL)


def say(text: str = "") -> None:
    """Write a text to standard output, without control characters."""
    typer.echo(printable(text))


def remark(line: str) -> None:
    """Write a line to standard error; that nobody watches is no reason to end."""
    with suppress(BrokenPipeError):
        typer.echo(printable(line), err=True)


def one_line(text: str, most: int = 100) -> str:
    """Put a text that a program printed on one line, without what would steer the terminal."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> None:
    """Write a table.

    Args:
        columns: the heads.
        rows: of cells, one for each column.
        right: the columns to be aligned at the right.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in map(printable, columns):
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*map(printable, row))
    _draw(made)


def width() -> int:
    """Give the columns that standard output has."""
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
    with console.capture() as drawn:  # rich would end the process where nobody reads
        console.print(made)
    typer.echo("\n".join(line.rstrip() for line in drawn.get().strip("\n").splitlines()))


def document(value: Mapping[str, Any]) -> None:
    """Write one JSON document to standard output; a number that JSON cannot hold becomes null."""
    say(json.dumps(_finite(value), indent=2))


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
