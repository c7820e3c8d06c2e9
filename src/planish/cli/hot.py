"""`planish tune --per-function --objective time`: a whole program, made faster where it spends its time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planish.cli.batch_table import now_and_then
from planish.cli.options import Form
from planish.cli.output import document, one_line, remark, say, table
from planish.cli.request import Request
from planish.core import PlanishError, stoppable

if TYPE_CHECKING:
    from planish.levels.llvm.hot import HotProgress, RuntimeResult
    from planish.levels.llvm.program import IRProgram

OF_WHOLE_S = 20.0
"""Seconds of a search on a whole module, where the user says nothing else."""
_LEAST = 0.01
_LIST = 70
_ELSEWHERE = "(libraries, the system)"


def leads_by_time(objectives: tuple[str, ...]) -> bool:
    """Return whether time is what leads."""
    return objectives[:1] in (("time",), ("time_s",))


def speed_up_and_show(request: Request, folder: Path | None, form: Form, words: Sequence[str]) -> None:
    """Make a program faster, show where its time goes, and write it where that is asked for.

    Args:
        request: what is asked for.
        folder: where to write it; None: nowhere.
        form: text or JSON.
        words: the command line as given, without the program's name.
    """
    from planish.cc.object_cache import open_cache
    from planish.cc.optimize import FunctionMemory
    from planish.cli.again import command_line
    from planish.cli.output import writing
    from planish.cli.request import require_places
    from planish.levels.llvm.hot import export_program, manifest, optimize_runtime

    require_places(None, folder)
    program, cache = _program(request), open_cache()
    budget = request.budget
    with stoppable():
        faster = optimize_runtime(
            program,
            budget.seconds or OF_WHOLE_S,
            budget.trials,
            progress=now_and_then(_line) if form == "text" else None,
            seed=request.settings.seed,
            remember=FunctionMemory(cache),
        )
    if cache.error:
        remark(f"warning: {cache.error}")
    files = list[Path]()
    if folder is not None:
        with writing(folder):
            files += export_program(program, faster, folder)
    again = command_line(words) if faster.verdict == "undecided" and words else ""
    if form == "json":
        document({**manifest(faster), "again": again, "files": [str(file) for file in files]})
        return
    _show(program, faster)
    if again:
        say(f"Run this command, which tries what was found first and compares again:\n    {again}")
    for file in files:
        say(f"wrote {file}")


def _program(request: Request) -> IRProgram:
    from planish.levels.llvm.level import LlvmLevel

    level = LlvmLevel()
    if len(request.settings.objectives) > 1:
        raise PlanishError("functions of a program are tuned by one objective", "Name time alone.")
    if request.settings.level not in ("", level.name) or not level.accepts(request.program):
        raise PlanishError(f"'{request.program}' has no functions to tune", "Leave --per-function out.")
    return level.specialize(level.load(request.program, request.options), [level.objectives["time_s"]])


def _line(progress: HotProgress) -> str:
    return f"{progress.seconds:5.1f} s  {progress.tried:,} lists  {1 / progress.ratio:.3f}x of -O3"


def _show(program: IRProgram, faster: RuntimeResult) -> None:
    say(program.title)
    rows = [
        [
            each.name or _ELSEWHERE,
            f"{each.share:.0%}",
            str(each.tried or ""),
            _list(each.passes),
        ]
        for each in faster.functions
        if each.share >= _LEAST
    ]
    table(["function", "time", "lists", "passes, where not as -O3"], rows, right=["time", "lists"])
    say(f"({faster.samples:,} samples with -O3; {faster.tried:,} lists in {faster.seconds:.1f} s)\n")
    baseline = f"{faster.baseline_s * 1e3:,.3f} ms by -O3"
    if faster.ratio is None:
        say(f"{baseline}; nothing faster was found, and -O3 is the result")
        return
    value, low, high = (1 / each for each in (faster.ratio.value, faster.ratio.high, faster.ratio.low))
    kept = "" if faster.verdict == "better" else ", and -O3 is the result"
    said = f"{value:.3f} times as fast ({low:.3f} to {high:.3f}): {faster.verdict_word}"
    say(f"{baseline}; {said}{kept}")
    say("(answers compared with the unoptimised program's; measured in turns, in fresh processes)")


def _list(passes: str) -> str:
    return one_line(passes.removeprefix("function<eager-inv>"), _LIST)
