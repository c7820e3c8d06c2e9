"""`planish cc` and `planish c++`, as the list of commands has them; `planish.cli.main` runs them sooner."""

from __future__ import annotations

from typing import Annotated

import typer

_Words = Annotated[list[str] | None, typer.Argument(metavar="...", help="As clang takes them.")]


def cc(words: _Words = None) -> None:
    """Compile C as clang does, and smaller: CC="planish cc"; see docs/how-to/cc.md."""
    _compile(words, plus=False)


def cxx(words: _Words = None) -> None:
    """Compile C++ as clang does, and smaller: CXX="planish c++"."""
    _compile(words, plus=True)


def _compile(words: list[str] | None, *, plus: bool) -> None:
    from planish.cc.command import main

    raise typer.Exit(main(words or [], plus=plus))
