"""`planish compare`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from planish.cli import options as given

_RUN = re.compile(r"[0-9a-fA-F]{1,8}")


@given.grouped
def compare(
    command: typer.Context,
    what: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM|ID", help="Programs to search, or runs to try again."),
    ],
    *,
    reading: given.ProgramOptions,
    level: given.LevelName = "",
    objective: given.Objective = "",
    searcher: given.Searchers = None,
    space: given.Spaces = None,
    trials: Annotated[int, typer.Option("--trials", help="The budget of each run, in candidates.")] = 100,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many runs each searcher has.")] = 3,
    seed: given.Seed = 0,
    cores: given.Cores = 1,
    workers: given.Workers = 0,
    processes: given.Processes = 20,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Compare searchers, or stored winners, side by side.

    Given programs, every searcher searches each of them, once for each seed; a searcher may have
    options: --searcher beam-dfs:width=8,depth=5. Given the ids of runs, their winners are measured in
    turns in one run, beside the baseline. Where that leaves a verdict undecided, the command that
    measures in more processes is printed.
    """
    from planish.cli.compare_output import compare_programs, compare_runs, search_configs
    from planish.cli.options import refuse_unread
    from planish.cli.request import level_options, names
    from planish.tuning.settings import Settings

    if all(map(_RUN.fullmatch, what)):
        refuse_unread(command, "a comparison of runs", {"what", "processes", "store", "form"})
        compare_runs(what, processes, store, form)
        return
    settings = Settings(level, names(objective), seed=seed, cores=cores, workers=workers)
    options = level_options(reading)
    configs = search_configs(what, searcher or [""], space or [""], settings, options)
    compare_programs(configs, trials, seeds, processes, store, form)
