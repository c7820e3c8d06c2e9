"""`planish inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given

if TYPE_CHECKING:
    from planish.cli.inspection import Inspection


def inspect(
    program: Annotated[str, typer.Argument(metavar="FILE", help="An ONNX model.")],
    shape: given.Shape = None,
    option: given.LevelOption = None,
    objective: given.Objective = "",
    cores: given.Cores = 1,
    relevance: Annotated[
        bool, typer.Option(help="Find out which passes change the model, which takes seconds the first time.")
    ] = True,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Show which class of network a model is and why, which passes matter, and the list to begin with."""
    from planish.cli.inspection import inspected
    from planish.cli.request import level_options, names
    from planish.levels.registry import load_program
    from planish.tuning.api import task_of
    from planish.tuning.settings import Settings

    options = level_options(given.ProgramOptions(shape=shape, option=option))
    level, model = load_program(program, "graph", options)
    task = task_of(level, model, Settings("graph", names(objective), cores=cores))
    _show(inspected(level, task, store, relevance=relevance), form)


def _show(found: Inspection, form: given.Form) -> None:
    from planish.cli.output import document, say

    if form == "json":
        document(found.to_json())
        return
    for title, lines in found.sections().items():
        say(title)
        for line in lines:
            say(f"  {line}")
        say()
