"""`planish show`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given
from planish.cli.options import refuse_unread

if TYPE_CHECKING:
    from planish.store import Reader


def show(
    command: typer.Context,
    run_id: given.SomeRunId = None,
    limit: Annotated[int, typer.Option(min=1, help="How many runs to list.")] = 20,
    file: given.Files = None,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Show a run with its result; without ID, list the runs."""
    from planish.core import uncollected

    if run_id is None:
        refuse_unread(command, "the list of runs", {"limit", "store", "form"}, "Name a run, or leave it out.")
        list_runs(limit, store, form)
        return
    refuse_unread(command, "a run", {"run_id", "file", "store", "form"})
    with uncollected():
        from planish.store import open_store

        with open_store(store, read_only=True) as opened:
            _show_run(opened, run_id, file or (), form)


def list_runs(limit: int, store: str | None, form: given.Form) -> None:
    """List the newest runs of a store."""
    from planish.cli.output import document, one_line, say, table
    from planish.cli.summary import run_document, task_document
    from planish.core import uncollected
    from planish.report.wording import title, when

    with uncollected():
        from planish.store import open_store

        with open_store(store, read_only=True) as opened:
            runs = opened.runs(limit=limit)
            tasks = {key: opened.task(key) for key in {run.task_key for run in runs}}
    if form == "json":
        listed = [{**run_document(run), "task": task_document(tasks[run.task_key])} for run in runs]
        document({"runs": listed})
        return
    if not runs:
        say("no runs yet")
        return
    columns = ["run", "status", "begun", "trials", "searcher", "level", "program"]
    rows = [
        [
            run.id,
            run.status,
            when(run.started),
            f"{run.trials:,}",
            run.searcher,
            tasks[run.task_key].level,
            one_line(title(tasks[run.task_key].program), 80),
        ]
        for run in runs
    ]
    table(columns, rows, right=["trials"])


def _show_run(store: Reader, run_id: str, files: Sequence[Path], form: given.Form) -> None:
    from planish.cli.output import document, say
    from planish.cli.summary import (
        model_document,
        policy_document,
        result_document,
        show_model,
        show_notes,
        show_policy,
        show_result,
        show_run,
        show_winner,
    )
    from planish.levels.registry import level_named, name_files
    from planish.report.data import read_report_data
    from planish.report.predictions import model_section, policy_section

    run = store.run(run_id)
    level = level_named(store.task(run.task_key).level)
    name_files(level, files)
    data = read_report_data(store, run.id, level)
    model, proposals = model_section(data), policy_section(data)
    if form == "json":
        documents = model_document(model), policy_document(proposals)
        document({**result_document(data), **documents[0], **documents[1]})
        return
    show_run(data)
    say()
    show_result(data)
    show_winner(data)
    if model is not None:
        show_model(model)
    if proposals:
        show_policy(proposals, data.objective)
    show_notes(data.notes)
