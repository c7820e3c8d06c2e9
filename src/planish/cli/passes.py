"""`planish passes`."""

from __future__ import annotations

from typing import Annotated

import typer

from planish.cli import options as given


def passes(
    program: Annotated[str, typer.Argument(metavar="FILE", help="A module: .ll, .bc or .c.")],
    pipeline: Annotated[
        str,
        typer.Argument(metavar="LIST", help="Passes, as opt -passes= takes them; managers may be left out."),
    ],
    option: given.LevelOption = None,
    objective: given.Objective = "",
    form: given.Format = "text",
) -> None:
    """Show what a pass list of your own does to a module: sizes against -Oz, what each pass contributes."""
    from planish.cli.output import document
    from planish.cli.request import level_options, names
    from planish.cli.summary import show_sections
    from planish.levels.llvm.passes.pipeline import candidate_of, parse_pipeline
    from planish.levels.registry import load_program
    from planish.measure.executors import LocalExecutor
    from planish.tuning.api import task_of
    from planish.tuning.settings import Settings

    candidate = candidate_of(parse_pipeline(pipeline))
    level, module = load_program(program, "llvm", level_options(given.ProgramOptions(option=option)))
    task = task_of(level, module, Settings("llvm", names(objective)))
    analyze = level.analyzer(task)
    assert analyze is not None
    with LocalExecutor(level.evaluator(task)) as executor:
        sections = level.describe(task, candidate, analyze(candidate, executor))
    if form == "json":
        document(dict(sections))
    else:
        show_sections(sections)
