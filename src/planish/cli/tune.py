"""`planish tune`, and with --per-function a list of passes for each function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from planish.cli import options as given
from planish.cli.options import refuse

if TYPE_CHECKING:
    from planish.cli.request import Request
    from planish.core import ExecutorFactory
    from planish.store import Store
    from planish.tuning.recorder import Listener
    from planish.tuning.result import Result
    from planish.tuning.settings import Budget

_WHOLE_S = 20.0
"""Seconds of a search for a list for each function of a module, where the user says nothing else."""
_EVERY_TARGET = "all"
"""Value of --target with which a program is tuned for each kind of host."""
_FUNCTIONS = "functions"
"""The space of lists for single functions."""


@dataclass(frozen=True)
class Output:
    """Options that say where the run and its result go."""

    report: given.ReportFile = None
    export: given.ExportFolder = None
    store: given.StorePlace = None
    form: given.Format = "text"


@given.grouped
def tune(
    command: typer.Context,
    program: given.Source,
    *,
    reading: given.ProgramOptions,
    level: given.LevelName = "",
    objective: given.Objective = "",
    searcher: given.Searcher = "",
    setting: given.Setting = None,
    space: given.Space = "",
    trials: given.Trials = None,
    seconds: given.Seconds = None,
    target_value: given.TargetValue = None,
    seed: given.Seed = 0,
    cores: given.Cores = 1,
    workers: given.Workers = 0,
    executor: given.ExecutorName = "local",
    ray: given.RayAddress = "",
    finalists: given.Finalists = None,
    per_function: given.PerFunction = False,
    remeasure: given.Remeasure = False,
    output: Output,
) -> None:
    """Search for the best way to run a program.

    Each candidate is verified before it is timed. At the end, the best are measured again, interleaved with
    the baseline and in fresh processes, and the verdict with its 95 % interval is printed. The same
    command resumes the run. Ctrl-C ends the search and keeps the best; a second one skips the comparison.

        planish tune "C[m,n] += A[m,k] * B[k,n]" --size m=192,n=192,k=192

        planish tune examples/llvm/inflate.ll --per-function
    """
    from planish.cli.request import Request, budget_of, executors, level_options, names
    from planish.search import split_settings
    from planish.tuning.api import DEFAULT_BUDGET as OF_ONE
    from planish.tuning.settings import Settings

    set_options = split_settings(setting or ())
    settings = Settings(
        level, names(objective), searcher, space, set_options, seed, cores, workers, finalists, remeasure
    )
    timed = settings.objectives[:1] in (("time",), ("time_s",))
    whole = output.export is not None or timed
    usual = _usual_by_function(whole=whole) if per_function else OF_ONE
    budget = budget_of(trials, seconds, target_value, usual)
    everywhere = reading.backend == _EVERY_TARGET
    chosen = replace(reading, backend="") if everywhere else reading
    request = Request(program, level_options(chosen), settings, budget)
    words = command.find_root().obj or ()
    with executors(executor, ray, forks=per_function and whole and not timed) as start:
        if everywhere:
            refuse(command, "--target all", {"per_function", "report", "export"})
            _for_each_target(request, output, start)
        elif not per_function:
            _carry_out(request, output, words, start)
        elif whole:
            _carry_out(_by_function(request, timed=timed), output, words, start, for_size=not timed)
        else:
            _for_each_function(request, output, start)


def _usual_by_function(*, whole: bool) -> Budget:
    """Return the budget of a search by functions where the user gives none: of all, or of each."""
    from planish.tuning.batch import DEFAULT_BUDGET
    from planish.tuning.settings import Budget

    return Budget(seconds=_WHOLE_S) if whole else DEFAULT_BUDGET


def _for_each_function(request: Request, output: Output, start: ExecutorFactory) -> None:
    from planish.cli.batch_table import tune_each
    from planish.core import PlanishError

    if output.report is not None:
        what = f"{output.report} is for one run"
        raise PlanishError(what, "Leave --per-function out, or name a run afterwards.")
    tune_each(request, output.store, output.form, start)


def _for_each_target(request: Request, output: Output, start: ExecutorFactory) -> None:
    """Tune a program for each kind of host, in a run of its own; raises PlanishError where there are none."""
    from planish.cli.output import document, say
    from planish.cli.summary import result_document
    from planish.core.registry import load_program
    from planish.store import open_store
    from planish.tuning.api import tune_for_each_target
    from planish.tuning.progress import run_progress

    with open_store(output.store) as opened:
        with run_progress(opened, request.budget, show=output.form == "text") as listener:
            level, program = load_program(request.program, request.settings.level, request.options)
            how = level, program, request.settings, request.budget
            results = list(tune_for_each_target(*how, store=opened, listener=listener, start=start))
        if output.form == "json":
            document({"runs": [result_document(result) for result in results]})
            return
        for number, result in enumerate(results):
            if number:
                say()
            _show(result, output, (), request.budget)


def _by_function(request: Request, *, timed: bool) -> Request:
    """Return the request to search a module's functions, for their size where nothing else is asked for."""
    from planish.core import PlanishError
    from planish.levels.llvm.level import LlvmLevel

    level, settings = LlvmLevel(), request.settings
    if settings.level not in ("", level.name) or not level.accepts(request.program):
        raise PlanishError(f"'{request.program}' has no functions to tune", "Leave --per-function out.")
    if settings.space not in ("", _FUNCTIONS):
        raise PlanishError(f"--per-function is the space '{_FUNCTIONS}'", "Leave --space out.")
    # A timed search has compared each with the baseline; more finalists would take the time from the best.
    finalists = settings.finalists or (1 if timed else None)
    objectives = settings.objectives or ("text_bytes",)
    chosen = replace(settings, level=level.name, space=_FUNCTIONS, objectives=objectives, finalists=finalists)
    return request._replace(settings=chosen)


def _carry_out(
    request: Request, output: Output, words: Sequence[str], start: ExecutorFactory, *, for_size: bool = False
) -> None:
    """Tune a program in one run.

    Args:
        request: what is tuned.
        output: where the result goes.
        words: of the command.
        start: starts executors.
        for_size: whether it is the functions of a module, read as `clang -Oz` does.
    """
    from planish.cli.request import check_output_paths
    from planish.store import open_store
    from planish.tuning.api import tune_source
    from planish.tuning.progress import run_progress

    check_output_paths(output.report, output.export)
    program, options, settings, budget = request
    with open_store(output.store) as opened:
        with run_progress(opened, budget, show=output.form == "text") as listener:
            if for_size:
                result = _tune_for_size(request, opened, listener, start)
            else:
                result = tune_source(
                    program,
                    options,
                    budget=budget,
                    settings=settings,
                    store=opened,
                    listener=listener,
                    start=start,
                )
        _show(result, output, words, budget)


def _tune_for_size(request: Request, store: Store, listener: Listener, start: ExecutorFactory) -> Result:
    """Make a module smaller by what is inlined and a list for each function.

    A C file is compiled as clang -Oz does it, up to LLVM's passes.
    """
    from planish.levels.llvm.level import LlvmLevel
    from planish.levels.llvm.source import read_for_size
    from planish.tuning.api import tune_program

    program, options, settings, budget = request
    return tune_program(
        LlvmLevel(),
        read_for_size(program, options),
        budget=budget,
        settings=settings,
        store=store,
        listener=listener,
        start=start,
    )


def _show(result: Result, output: Output, words: Sequence[str], budget: Budget) -> None:
    """Write the result; then the files that were asked for, so that it is seen even where those fail."""
    from planish.cli.output import document, say
    from planish.cli.request import command_again
    from planish.cli.summary import result_document, show_notes, show_result, show_winner
    from planish.models.learner import GUIDED
    from planish.tuning.verdict import verdict_of

    undecided = verdict_of(result).kind == "undecided"
    again = command_again(words, result, budget) if words and undecided else ""
    if output.form == "text":
        show_result(result, again)
        show_winner(result, result.level.summary_sections)
        # `planish show` and reports name the models; at each tuning that would be one note too many.
        show_notes([note for note in result.notes if not note.startswith(GUIDED)])
    files = _files(result, output)
    if output.form == "json":
        document({**result_document(result), "again": again, "files": [*map(str, files)]})
        return
    for file in files:
        say(f"wrote {file}")
    if not files and result.exported == result.baseline_candidate:
        say("No file was written: the result is the unchanged program.")
    if result.stopped:
        say("\nStopped. Run the same command to resume.")
    run = result.run.id
    say(f"\nplanish show {run}, planish report {run}, planish export {run} DIR")


def _files(result: Result, output: Output) -> list[Path]:
    """Write the report and the winner, where they are wanted, or are what the level is used for."""
    from planish.cli.output import writing
    from planish.cli.summary import report_stand_in

    files = list[Path]()
    if output.report is not None:
        from planish.report import write_report

        files.append(write_report(result, output.report))
    if output.export is not None:
        with writing(output.export):
            winner = result.export(output.export)
    elif result.exported == result.baseline_candidate:  # a copy of what the user has is not a result
        winner = ()
    else:
        with writing(Path.cwd(), f"The result is stored: 'planish export {result.run.id} DIR' writes it."):
            winner = result.level.write_artifacts(result.task, result.exported, Path())
    if winner:
        report_stand_in(result)
    return [*files, *winner]
