"""`planish size`: what files, sections and functions cost, before and after, and flags to try."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from planish.cli import options as given
from planish.cli.output import document, say


def size(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Objects, programs and libraries (ELF).")
    ],
    before: Annotated[
        list[Path] | None,
        typer.Option(
            "--before", metavar="FILE", help="The file as it was; once for each FILE, in the same order."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Functions and sections to show.")] = 15,
    form: given.Format = "text",
) -> None:
    """Show what each file, section and function costs, and which flags would make it smaller.

    What counts is stored and loaded: code, constants, initialized data and unwind tables. Flags that cost
    nothing come first, since they often save more than a search.

        planish size program --before program.old
    """
    from planish.cc.size_report import file_size, size_lines, suggestions
    from planish.core import ProgramError

    if before and len(before) != len(files):
        raise ProgramError(f"--before names {len(before)} files for {len(files)}", "Name one for each FILE.")
    measured, earlier = ([file_size(path) for path in paths] for paths in (files, before or ()))
    if form == "json":
        named = {"files": [asdict(each) for each in measured], "before": [asdict(each) for each in earlier]}
        document({**named, "suggestions": [asdict(each) for each in suggestions(measured)]})
        return
    for line in size_lines(measured, earlier, top):
        say(line)
