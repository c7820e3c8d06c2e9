"""`planish tune --per-function --export`: one module, each function by a list of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planish.cli.batch_table import now_and_then
from planish.cli.options import Form
from planish.cli.output import document, one_line, say, table
from planish.cli.request import Request
from planish.core import PlanishError, stoppable

if TYPE_CHECKING:
    from planish.levels.llvm.modules import ModuleProgress, SizeResult, SizeRow

OF_WHOLE_S = 20.0
"""Seconds of a search on a whole module, where the user says nothing else."""
_SHOWN = 20
_LIST = 70
FUNCTIONS = "functions"
"""The space of lists for single functions."""
_AFTERWARDS = 1.5
"""How many times as long as -Oz it takes to compare measures and to write, within the seconds asked for."""


def leads_by_time(objectives: tuple[str, ...]) -> bool:
    """Return whether time is what leads."""
    return objectives[:1] in (("time",), ("time_s",))


def by_function(request: Request) -> Request:
    """Return the request to search a program's hot functions, a list of its own for each.

    Raises:
        PlanishError: the program has no functions, or another space is asked for.
    """
    from planish.levels.llvm.level import LlvmLevel

    level, settings = LlvmLevel(), request.settings
    if settings.level not in ("", level.name) or not level.accepts(request.program):
        raise PlanishError(f"'{request.program}' has no functions to tune", "Leave --per-function out.")
    if settings.space not in ("", FUNCTIONS):
        raise PlanishError(f"--per-function is the space '{FUNCTIONS}'", "Leave --space out.")
    return request._replace(settings=replace(settings, level=level.name, space=FUNCTIONS))


def improve_and_export(request: Request, folder: Path, form: Form) -> None:
    """Make a module smaller, write it, and show which functions became smaller."""
    from planish.cli.output import writing
    from planish.cli.request import require_places
    from planish.levels.llvm.modules import compare_measures, export_improved, improve_module, read_for_size

    require_places(None, folder)
    objective, *others = request.settings.objectives or ("text_bytes",)
    if others:
        raise PlanishError("functions of a module are tuned by one objective", "Name the one that leads.")
    code = read_for_size(request.program, request.settings.level, request.options)
    with stoppable():
        improved = improve_module(
            code,
            objective,
            request.budget.seconds or OF_WHOLE_S,
            request.budget.trials,
            cores=request.settings.workers or request.settings.cores,
            progress=now_and_then(_line) if form == "text" else None,
            afterwards=_AFTERWARDS,
        )
    rows = compare_measures(improved)
    with writing(folder):
        files = export_improved(code, improved, folder)
    if form == "json":
        document(_document(improved, rows, files))
    else:
        _show(improved, objective, rows)
        for file in files:
            say(f"wrote {file}")


def _line(progress: ModuleProgress) -> str:
    return f"{progress.seconds:5.1f} s  {progress.evaluations:,} lists  {progress.total:,}"


def _show(improved: SizeResult, objective: str, rows: Sequence[SizeRow]) -> None:
    what = "bytes of .text" if objective == "text_bytes" else "instructions"
    shown = improved.functions[:_SHOWN]
    if shown:
        values = ["-Oz", "now", "saved"]
        table(
            ["function", *values, "passes"],
            [
                [
                    each.name,
                    f"{each.before:,}",
                    f"{each.after:,}",
                    f"{each.before - each.after:,}",
                    _list(each.passes),
                ]
                for each in shown
            ],
            right=values,
        )
    if more := len(improved.functions) - len(shown):
        say(f"... and {more:,} more, in the manifest")
    saved = 1 - improved.total / improved.baseline if improved.baseline else 0
    say(f"\n{improved.baseline:,} {what} by -Oz, now {improved.total:,}: {100 * saved:.2f} % less")
    say(f"{improved.evaluations:,} lists were run on functions in {improved.seconds:.1f} s")
    if apart := [row.name for row in rows if row.disagrees]:
        listed = one_line(", ".join(apart), _LIST)
        say(f"In {len(apart):,} function{'s' * (len(apart) != 1)} instructions and bytes disagree: {listed}")


def _list(passes: Sequence[str]) -> str:
    return one_line(", ".join(passes), _LIST) or "(as its callers are)"


def _document(improved: SizeResult, rows: Sequence[SizeRow], files: Sequence[Path]) -> dict[str, object]:
    return {
        "baseline": improved.baseline,
        "total": improved.total,
        "evaluations": improved.evaluations,
        "seconds": improved.seconds,
        "functions": [asdict(gain) for gain in improved.functions],
        "measures": [{**asdict(row), "disagrees": row.disagrees} for row in rows],
        "files": [str(file) for file in files],
    }
