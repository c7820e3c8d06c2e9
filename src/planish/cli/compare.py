"""`planish compare`: searchers, or stored winners, side by side."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planish.cli import options as given
from planish.cli.output import document, say, table
from planish.core.wording import (
    amount,
    improvement,
    interval,
    label,
    multiple,
    one_line,
    saving,
    title,
    verdict_word,
)

if TYPE_CHECKING:
    from planish.core import Objective
    from planish.tuning.compare import ConvergenceCurves, RemeasuredWinner, SearchConfig
    from planish.tuning.settings import Settings

_MARKS = (1, 2, 5)
_RUN = re.compile(r"[0-9a-fA-F]{1,8}")


@given.grouped
def compare(
    command: typer.Context,
    what: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM|RUN...", help="Programs to search, or ids of runs to measure again."),
    ],
    *,
    reading: given.ProgramOptions,
    level: given.LevelName = "",
    objective: given.Objective = "",
    searcher: given.Searchers = None,
    space: given.Spaces = None,
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", help="Budget of each run, in candidates.")
    ] = 100,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="Number of runs of each searcher.")
    ] = 3,
    seed: given.Seed = 0,
    cores: given.Cores = 1,
    workers: given.Workers = 0,
    processes: given.Processes = 20,
    executor: given.ExecutorName = "local",
    ray: given.RayAddress = "",
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Compare searchers on programs, or the winners of stored runs.

    For programs, every searcher searches each program in each space, once for each seed. A table shows the
    best value after 1, 2, 5, 10, ... trials, as the median of the seeds; then the winners are measured
    interleaved in one run. A candidate that several searches propose is measured once. For runs, only their
    winners are measured (if the baseline won, the best other candidate). If a verdict is undecided, the
    command that measures in twice as many processes is printed.

        planish compare "C[m,n] += A[m,k] * B[k,n]" --size m=64,n=64,k=64 --searcher random --searcher genetic

        planish compare 1a2b3c4d 5e6f7a8b
    """
    from planish.cli.request import executors, level_options, names
    from planish.store import open_store
    from planish.tuning.compare import compare_results, compare_searches
    from planish.tuning.progress import run_progress
    from planish.tuning.settings import Budget, Settings

    if all(map(_RUN.fullmatch, what)):
        read = {"what", "processes", "executor", "ray", "store", "form"}
        given.refuse_unread(command, "a comparison of runs", read)
        with executors(executor, ray) as start:
            found = compare_results(what, store=store, processes=processes, start=start)
        show_comparison(found, processes, store, form)
        return
    settings = Settings(level, names(objective), seed=seed, cores=cores, workers=workers)
    options = level_options(reading)
    configs = search_configs(what, searcher or [""], space or [""], settings, options)
    with executors(executor, ray) as start, open_store(store) as opened:
        with run_progress(opened, Budget(trials=trials), show=form == "text") as listener:
            curves = compare_searches(
                configs, trials=trials, seeds=seeds, store=opened, listener=listener, start=start
            )
        runs = [curve.winner for curve in curves]
        winners = compare_results(runs, store=opened, processes=processes, start=start)
    show_comparison(winners, processes, store, form, curves)


def search_configs(
    programs: Sequence[str],
    searchers: Sequence[str],
    spaces: Sequence[str],
    settings: Settings,
    options: Mapping[str, str],
) -> list[SearchConfig]:
    """Pair every program with every searcher and every space.

    Args:
        programs: files or texts.
        searchers: names, each with options where wanted: `beam-dfs:width=8,depth=5`; empty for the default.
        spaces: names; empty for the default.
        settings: what all share.
        options: how to read the programs.

    Raises:
        PlanishError: a searcher's options are malformed.
    """
    from planish.search import split_settings
    from planish.tuning.compare import SearchConfig

    found: list[SearchConfig] = []
    for program, searcher, space in product(programs, searchers, spaces):
        name, _, after = searcher.partition(":")
        set_options = split_settings(filter(None, after.split(",")))
        title = " over ".join(filter(None, (searcher, space))) or "default"
        own = replace(settings, searcher=name, space=space, searcher_options=set_options)
        found.append(SearchConfig(title, program, own, options))
    return found


def _again(winners: Sequence[RemeasuredWinner], processes: int, store: str | None, form: given.Form) -> str:
    """Return the command that measures in more processes; empty where all verdicts are decided."""
    from planish.cli.request import command_of_more

    if not any(each.sampled.verdict == "undecided" for each in winners):
        return ""
    where = ["--store", store] if store else []
    words = ["compare", *(each.result.run.id for each in winners), *where]
    return command_of_more([*words, *(["--format", form] if form != "text" else [])], processes)


def show_comparison(
    winners: Sequence[RemeasuredWinner],
    processes: int,
    store: str | None,
    form: given.Form,
    curves: Sequence[ConvergenceCurves] = (),
) -> None:
    """Show winners that were measured again, and the searches that found them.

    Args:
        winners: one of each run.
        processes: how many measured at most.
        store: where the runs are, as on the command line.
        form: "text" or "json".
        curves: of the searches; none where stored runs are compared.
    """
    again = _again(winners, processes, store, form)
    if form == "json":
        shown = {"searches": [*map(_curves_document, curves)], "winners": [*map(_winner_document, winners)]}
        document({**shown, "again": again})
        return
    for program in dict.fromkeys(curve.config.program for curve in curves):
        _show_curves(program, [curve for curve in curves if curve.config.program == program])
    names = {curve.winner: curve.config.name for curve in curves}
    _show_winners(winners, names)
    if again:
        runs = ", ".join(map(_seen, filter(lambda each: each.sampled.verdict == "undecided", winners)))
        say(f"\nUndecided: {runs}. Run this command, which measures in more processes:\n    {again}")


def _seen(each: RemeasuredWinner) -> str:
    """Report what was seen of a winner whose verdict is undecided."""
    if each.gain is None:
        return f"run {each.result.run.id} was not measured: {one_line(each.sampled.why)}"
    seen = f"about {multiple(each.gain.value)}, {interval(each.gain)}"
    return f"run {each.result.run.id} has {seen} of its baseline, which is too wide to decide"


def _show_curves(program: str, curves: Sequence[ConvergenceCurves]) -> None:
    objective, seeds = curves[0].objective, len(curves[0].runs)
    say(f"{one_line(title(program))}: best {label(objective)} by number of trials, median of {seeds} seeds")
    names = [curve.config.name for curve in curves]
    most = max(len(row) for curve in curves for row in curve.best)
    rows = [
        [f"{trials:,}", *(_amount(curve.median(trials), objective.unit) for curve in curves)]
        for trials in marks(most)
    ]
    table(["trials", *names], rows, right=["trials", *names])
    say()


def marks(most: int) -> list[int]:
    """List 1, 2, 5, 10, 20, 50, ... up to a number, and that number."""
    decades = range(len(str(most)))
    return sorted(
        {mark * 10**decade for decade in decades for mark in _MARKS if mark * 10**decade < most} | {most}
    )


def _amount(value: float, unit: str) -> str:
    return "none" if math.isnan(value) else amount(value, unit)


def _show_winners(winners: Sequence[RemeasuredWinner], names: Mapping[str, str]) -> None:
    objective = winners[0].result.objective
    say("winners, measured again in one run, each against the baseline of its program")
    rows = [
        [
            each.result.run.id,
            names.get(each.result.run.id) or each.result.run.searcher,
            one_line(title(each.result.task.program.text), 60),
            _amount(each.sampled.median, objective.unit),
            _amount(each.baseline.median, objective.unit),
            *_gain(each, objective),
            verdict_word(each.sampled.verdict, objective),
        ]
        for each in winners
    ]
    value = label(objective)
    gain = [saving(objective)] if objective.exact else [saving(objective), "95 % interval"]
    columns = ["run", "searcher", "program", value, "baseline", *gain, "verdict"]
    table(columns, rows, right=[value, "baseline", gain[0]])


def _gain(each: RemeasuredWinner, objective: Objective) -> list[str]:
    """Write the gain, and its interval where the objective has noise."""
    gain = each.gain
    if gain is None:
        return [""] if objective.exact else ["", ""]
    ends = [] if objective.exact else [interval(gain)]
    return [improvement(gain.value, objective), *ends]


def _curves_document(curves: ConvergenceCurves) -> dict[str, Any]:
    config = curves.config
    return {
        "name": config.name,
        "program": config.program,
        "objective": curves.objective.name,
        "runs": curves.runs,
        "winner": curves.winner,
        "best": curves.best,
        "median": [curves.median(trials) for trials in range(1, max(map(len, curves.best)) + 1)],
    }


def _winner_document(each: RemeasuredWinner) -> dict[str, Any]:
    from planish.cli.summary import run_document

    gain = each.gain
    return {
        "run": run_document(each.result.run),
        "program": each.result.task.program.text,
        "median": each.sampled.median,
        "baseline": each.baseline.median,
        "gain": gain and gain.value,
        "interval": gain and [gain.low, gain.high],
        "verdict": verdict_word(each.sampled.verdict, each.result.objective),
        "failures": [f"{f.stage}: {f.reason}" for f in each.sampled.failures],
    }
