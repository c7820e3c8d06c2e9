"""`planish passes`."""

from __future__ import annotations

from typing import Annotated

import typer

from planish.cli import options as given


def passes(
    program: Annotated[
        str, typer.Argument(metavar="FILE", help="Module: .ll, .bc, or .c if a compiler is installed.")
    ],
    pipeline: Annotated[
        str,
        typer.Argument(metavar="LIST", help="Passes, as opt -passes= accepts them; managers are optional."),
    ],
    option: given.LevelOption = None,
    objective: given.Objective = "",
    form: given.Format = "text",
) -> None:
    """Show the effect of a pass list on a module, and of each of its passes.

    The size of the module is shown without optimization, for the baseline, and after the list.

        planish passes examples/llvm/inflate.ll 'sroa<modify-cfg>,gvn,default<Oz>'
    """
    from planish.cli.output import document
    from planish.cli.request import level_options, names
    from planish.cli.summary import show_sections
    from planish.core.registry import load_program
    from planish.levels.llvm.passes.pipeline import candidate_of, parse_pipeline
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
