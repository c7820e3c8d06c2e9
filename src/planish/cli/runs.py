"""`planish runs`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given
from planish.cli.options import refuse_before, run_ids
from planish.cli.output import writing
from planish.cli.stored_runs import list_runs

if TYPE_CHECKING:
    from planish.store import Reader, Store

runs = typer.Typer(help="List, delete, export and merge runs.")

Ids = Annotated[
    list[str],
    typer.Argument(metavar="ID...", help="Runs, by their ids or beginnings.", autocompletion=run_ids),
]
SomeIds = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Runs; all by default.", autocompletion=run_ids)
]
NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="A store that is made.")]
Location = Annotated[
    str, typer.Argument(metavar="LOCATION", help="The other store: a file, or postgresql://...")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@runs.callback(invoke_without_command=True)
def front(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="How many runs to list.")] = 20,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """List, delete, export and merge runs; without a command, list the newest."""
    if context.invoked_subcommand is None:
        list_runs(limit, store, form)
    else:
        refuse_before(context)


@runs.command()
def delete(ids: Ids, yes: Yes = False, store: given.StorePlace = None, form: given.Format = "text") -> None:
    """Delete runs with their trials and results."""
    from planish.store import open_store

    with open_store(store) as opened:
        # All are found before the first one goes.
        found = dict.fromkeys(opened.run(run_id).id for run_id in ids)
        wanted = found if _agreed(len(found), yes) else {}
        _report("deleted", [opened.delete_run(run_id) for run_id in wanted], form)


@runs.command()
def export(
    file: NewFile, ids: SomeIds = None, store: given.StorePlace = None, form: given.Format = "text"
) -> None:
    """Write runs into a new store, to be kept or merged elsewhere."""
    from planish.core import PlanishError
    from planish.store import open_store

    if file.exists():
        raise PlanishError(f"{file} exists", "Name a new file; 'planish runs merge' adds runs to a store.")
    with open_store(store, read_only=True) as source:
        wanted = [source.run(run_id).id for run_id in ids] if ids else [run.id for run in source.runs()]
        # Whole or not at all: a part must not be taken for the whole.
        part = file.with_name(f".{file.name}.part")
        with writing(file):
            part.unlink(missing_ok=True)
            try:
                with open_store(part) as made:
                    _copy(source, made, wanted)
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)
    _report("exported", wanted, form)


@runs.command()
def merge(location: Location, store: given.StorePlace = None, form: given.Format = "text") -> None:
    """Copy the runs of another store into this one; what is there already stays."""
    from planish.store import open_store

    with open_store(location, read_only=True) as source, open_store(store) as opened:
        _report("merged", _copy(source, opened, [run.id for run in reversed(source.runs())]), form)


def _copy(source: Reader, target: Store, ids: Sequence[str]) -> list[str]:
    return [run_id for run_id in ids if target.take_run(source, run_id)]


def _agreed(count: int, yes: bool) -> bool:
    from planish.core import PlanishError

    if yes:
        return True
    if not sys.stdin.isatty():
        raise PlanishError("deleting needs a confirmation, and standard input is no terminal", "Add --yes.")
    what = "this run and its trials" if count == 1 else f"these {count} runs and their trials"
    try:
        return typer.confirm(f"Delete {what} for good?", err=True)
    except typer.Abort:  # the end of input is no answer
        return False


def _report(done: str, ids: Sequence[str], form: given.Form) -> None:
    from planish.cli.output import document, say

    if form == "json":
        document({done: ids})
        return
    say(f"{done} {len(ids)} run{'' if len(ids) == 1 else 's'}{': ' if ids else ''}{', '.join(ids)}")
