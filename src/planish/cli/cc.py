"""`planish cc` and `planish c++`, as the list of commands has them; `planish.cli.script` runs them sooner."""

from __future__ import annotations

from typing import Annotated

import typer

_Words = Annotated[list[str] | None, typer.Argument(metavar="...", help="Words of clang's command line.")]


def cc(words: _Words = None) -> None:
    """Compile C as clang does, and make code smaller if -Oz or -Os asks for it.

    All options and exit codes are clang's, except four. --planish-report prints what was saved on
    standard error. --planish-strict turns a failure of planish into exit code 2; without it, clang's object
    is kept with a warning. `--planish-lock FILE` writes the chosen pass lists to a file, from which a later
    build repeats them. `--planish-objective flash` counts all that is loaded and not code first, and
    `--planish-objective time` makes the program that PLANISH_RUN runs faster, with -O2 and -O3. With -flto,
    the search is for the whole program, when it is linked.

        make CC="planish cc" CFLAGS=-Oz
    """
    _compile(words, plus=False)


def cxx(words: _Words = None) -> None:
    """Compile C++ as clang++ does, and make code smaller if -Oz or -Os asks for it.

    The options are those of `planish cc`.

        cmake -B build -DCMAKE_C_COMPILER=planish-cc -DCMAKE_CXX_COMPILER=planish-c++
    """
    _compile(words, plus=True)


def _compile(words: list[str] | None, *, plus: bool) -> None:
    from planish.cc.command import main

    raise typer.Exit(main(words or [], plus=plus))
