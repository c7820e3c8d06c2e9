"""`planish tune`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from planish.cli import options as given

if TYPE_CHECKING:
    from planish.cli.request import Request
    from planish.tuning.result import Result
    from planish.tuning.settings import Budget


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
    finalists: given.Finalists = None,
    per_function: given.PerFunction = False,
    remeasure: given.Remeasure = False,
    output: Output,
) -> None:
    """Search for the best way to run a program.

    At the end the best few are measured again beside the baseline. The same command on the same store
    goes on where the last one ended. Ctrl-C ends the search and keeps the best.
    """
    from planish.cli.per_function import OF_WHOLE_S, by_function, leads_by_time
    from planish.cli.request import Request, budget_of, level_options, names
    from planish.search import split_settings
    from planish.tuning.api import DEFAULT_BUDGET as OF_ONE
    from planish.tuning.batch import DEFAULT_BUDGET as OF_EACH
    from planish.tuning.settings import Budget, Settings

    set_options = split_settings(setting or ())
    settings = Settings(
        level, names(objective), searcher, space, set_options, seed, cores, workers, finalists, remeasure
    )
    timed = leads_by_time(settings.objectives)
    whole = output.export is not None or timed
    usual = (Budget(seconds=OF_WHOLE_S) if whole else OF_EACH) if per_function else OF_ONE
    budget = budget_of(trials, seconds, target_value, usual)
    request = Request(program, level_options(reading), settings, budget)
    words = command.find_root().obj or ()
    if per_function and whole:
        _carry_out(by_function(request), output, words, for_size=not timed)
    elif per_function:
        _for_each_function(request, output)
    else:
        _carry_out(request, output, words)


def _for_each_function(request: Request, output: Output) -> None:
    from planish.cli.batch_table import tune_each
    from planish.core import PlanishError

    if output.report is not None:
        what = f"{output.report} is for one run"
        raise PlanishError(what, "Leave --per-function out, or name a run afterwards.")
    tune_each(request, output.store, output.form)


def _carry_out(request: Request, output: Output, words: Sequence[str], *, for_size: bool = False) -> None:
    """Tune a program in one run; `for_size`: the functions of a module, read as `clang -Oz` does."""
    from planish.cli.per_function import tune_for_size
    from planish.cli.request import check_output_paths
    from planish.store import open_store
    from planish.tuning.api import tune_source
    from planish.tuning.progress import run_progress

    check_output_paths(output.report, output.export)
    program, options, settings, budget = request
    with open_store(output.store) as opened:
        with run_progress(opened, budget, show=output.form == "text") as listener:
            if for_size:
                result = tune_for_size(request, opened, listener)
            else:
                result = tune_source(
                    program, options, budget=budget, settings=settings, store=opened, listener=listener
                )
        _tell(result, output, words, budget)


def _tell(result: Result, output: Output, words: Sequence[str], budget: Budget) -> None:
    """Write the result; then the files that were asked for, so that it is seen even where those fail."""
    from planish.cli.again import command_again
    from planish.cli.output import document, say
    from planish.cli.summary import result_document, show_notes, show_result, show_winner

    again = command_again(words, result, budget)
    if output.form == "text":
        show_result(result, again)
        show_winner(result, result.level.summary_sections)
        show_notes(result.notes)
    files = _files(result, output)
    if output.form == "json":
        document({**result_document(result), "again": again, "files": [*map(str, files)]})
        return
    for file in files:
        say(f"wrote {file}")
    if result.stopped:
        say("\nStopped. Run the same command to resume.")
    run = result.run.id
    say(f"\nplanish show {run}, planish report {run}, planish export {run} DIR")


def _files(result: Result, output: Output) -> list[Path]:
    """Write the report and the winner, where they are wanted, or are what the level is used for."""
    from planish.cli.output import writing
    from planish.cli.summary import report_stand_in
    from planish.report import write_report

    files = [] if output.report is None else [write_report(result, output.report)]
    if output.export is not None:
        with writing(output.export):
            winner = result.export(output.export)
    else:
        with writing(Path.cwd(), f"The result is stored: 'planish export {result.run.id} DIR' writes it."):
            winner = result.level.write_artifacts(result.task, result.exported, Path())
    if winner:
        report_stand_in(result)
    return [*files, *winner]
