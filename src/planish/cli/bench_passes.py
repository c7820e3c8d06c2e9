"""`planish bench-passes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given

if TYPE_CHECKING:
    from planish.cli.batch_table import Found
    from planish.tuning.batch import Change

TRIALS = 200


def bench_passes(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Modules (.ll, .bc or .c); they are recorded under these names."
        ),
    ],
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Write the results to this file (JSON).")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="Compare with the results recorded in this file."),
    ] = None,
    option: given.LevelOption = None,
    objective: given.Objective = "",
    searcher: given.Searcher = "",
    setting: given.Setting = None,
    space: given.Space = "",
    trials: given.Trials = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="S", help="Seconds for each file. Default: --trials 200."),
    ] = None,
    seed: given.Seed = 0,
    workers: given.Workers = 0,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Tune many modules of LLVM IR, and compare the results with recorded ones.

    Use it in continuous integration: the exit code is 8 if a result is worse than the recorded one, and 6
    if a file could not be measured; then a file that is named by both --record and --against is not changed.
    With --trials, and a new --store, the results are the same each time. The recorded value is the better
    one of the best candidate and the baseline.

        planish bench-passes src/*.ll --against passes.json --store new.db
    """
    from planish.cli.batch_table import gather, require_all
    from planish.cli.output import writing
    from planish.cli.request import budget_of, level_options, names
    from planish.core import StoppedError
    from planish.search import split_settings
    from planish.store import open_store
    from planish.tuning.batch import (
        Part,
        changes,
        load_files,
        read_record,
        require_no_loss,
        tune_parts,
        write_record,
    )
    from planish.tuning.settings import Settings

    settings = Settings(
        "llvm", names(objective), searcher, space, split_settings(setting or ()), seed, workers=workers
    )
    budget = budget_of(TRIALS if trials is None and seconds is None else trials, seconds, None)
    options = level_options(given.ProgramOptions(option=option))
    before = read_record(against) if against else None
    level, programs, unread = load_files(files, settings.level, options)
    with open_store(store) as opened:
        tuned = tune_parts(level, programs, budget=budget, settings=settings, store=opened)
        measured, stopped = gather(tuned, len(programs), "files", form)
    found = [*measured, *unread]
    if stopped:
        raise StoppedError(
            f"stopped after {len(measured)} of {len(programs)} files", "Run the same command to resume."
        )
    parts = [part for part in found if isinstance(part, Part)]
    compared = changes(parts, before) if before else []
    _show(found, compared if before else None, form)
    if record and against and record.exists() and record.samefile(against):
        # What is compared with is not given up for what is worse, or lacks a file.
        require_all(found)
        require_no_loss(compared)
    if record and parts:
        with writing(record):
            write_record(record, parts, level.target(next(iter(programs.values())), 1).toolchain)
    require_all(found)
    require_no_loss(compared)


def _show(found: Found, compared: Sequence[Change] | None, form: given.Form) -> None:
    """Show the result of each file, and compare it with the record where there is one."""
    from dataclasses import asdict

    from planish.cli.batch_table import parts_document, show_parts
    from planish.cli.output import document, say, table

    if form == "json":
        document({**parts_document(found), "changes": [asdict(change) for change in compared or ()]})
        return
    show_parts(found, "file")
    if compared is None:
        return
    changed = [change for change in compared if change.before != change.now]
    say(f"\n{len(compared)} of {len(found)} recorded, {len(changed)} changed")
    if changed:
        columns = ["file", "recorded", "now", ""]
        rows = [
            [c.name, f"{c.before:,.0f}", f"{c.now:,.0f}", "worse" if c.worse else "better"] for c in changed
        ]
        table(columns, rows, right=["recorded", "now"])
