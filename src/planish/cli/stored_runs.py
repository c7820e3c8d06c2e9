"""Commands on stored runs: `planish show`, `report`, `export`, `validate` and `runs`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from re import fullmatch
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given
from planish.cli.options import Form, refuse_before, refuse_unread, run_ids
from planish.cli.output import writing

if TYPE_CHECKING:
    from planish.store import Reader, Store


def show(
    command: typer.Context,
    run_id: given.SomeRunId = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Number of runs to list.")] = 20,
    file: given.Files = None,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Show a run with its result, or list the newest runs.

    A run is shown with its settings, the time of each stage, the finalists and the baseline, the failures
    by reason, and what the winner does.

        planish show 1a2b3c4d
    """
    from planish.core import gc_paused

    if run_id is None:
        refuse_unread(command, "the list of runs", {"limit", "store", "form"}, "Name a run, or leave it out.")
        list_runs(limit, store, form)
        return
    refuse_unread(command, "a run", {"run_id", "file", "store", "form"})
    with gc_paused():
        from planish.store import open_store

        with open_store(store, read_only=True) as opened:
            _show_run(opened, run_id, file or (), form)


def list_runs(limit: int, store: str | None, form: given.Form) -> None:
    """List the newest runs of a store."""
    from planish.cli.output import document, say, table
    from planish.cli.summary import run_document, task_document
    from planish.core import gc_paused
    from planish.core.wording import improvement, one_line, title, when
    from planish.tuning.result import EINSUM, listed_verdict

    with gc_paused():
        from planish.store import open_store

        with open_store(store, read_only=True) as opened:
            runs = opened.runs(limit=limit)
            tasks = {key: opened.task(key) for key in {run.task_key for run in runs}}
            found = {run.id: listed_verdict(opened, run, tasks[run.task_key]) for run in runs}
    if form == "json":
        listed = [
            {
                **run_document(run),
                "gain": found[run.id].gain,
                "verdict": found[run.id].word or None,
                "task": task_document(tasks[run.task_key]),
            }
            for run in runs
        ]
        document({"runs": listed})
        return
    if not runs:
        say("no runs yet")
        return
    columns = ["run", "status", "started", "trials", "gain", "verdict", "searcher", "level", "program"]
    rows = [
        [
            run.id,
            run.status,
            when(run.started),
            "" if run.searcher == EINSUM else f"{run.trials:,}",
            ""
            if (gain := found[run.id].gain) is None
            else improvement(gain, tasks[run.task_key].objectives[0]),
            found[run.id].word,
            run.searcher,
            tasks[run.task_key].level,
            one_line(title(tasks[run.task_key].program), 80),
        ]
        for run in runs
    ]
    table(columns, rows, right=["trials", "gain"])


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
    from planish.tuning.predictions import model_section, policy_section
    from planish.tuning.result import read_result

    result = read_result(store, run_id, files=files)
    model, policy = model_section(result), policy_section(result)
    if form == "json":
        documents = model_document(model), policy_document(policy)
        document({**result_document(result), **documents[0], **documents[1]})
        return
    show_run(result)
    say()
    show_result(result)
    show_winner(result)
    if model is not None:
        show_model(model)
    if policy:
        show_policy(policy, result.objective)
    show_notes(result.notes)


def show_build(folder: Path, form: Form) -> None:
    """Show what was compiled into a folder.

    Args:
        folder: in or below which the objects are.
        form: "text" or "json".

    Raises:
        PlanishError: nothing there was compiled by `planish cc`, as far as the cache knows.
    """
    from planish.cc.object_cache import open_cache
    from planish.cc.reporting import builds, lines
    from planish.cli.output import document, say
    from planish.core import PlanishError

    cache = open_cache()
    done = builds(cache.folder, folder.resolve())
    if not done:
        what = f"the cache {cache.folder} knows of nothing in {folder} that planish cc compiled"
        raise PlanishError(what, 'Build with CC="planish cc" and -Oz, and name the folder of the objects.')
    if form == "json":
        document({"build": str(folder), "sources": [asdict(one) for one in done]})
        return
    for line in lines(done, folder.resolve()):
        say(line)


def report(
    command: typer.Context,
    runs: given.RunsOrBuild = None,
    output: given.OutputFile = None,
    file: given.Files = None,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Write a run, or a comparison of several, as one HTML file; or show what `planish cc` saved in a build.

    The file works offline and has at most 1.5 MB; its path is printed. Runs that are compared must be of one
    level, with the same first objective. For a folder, the command prints what `planish cc` saved there by
    file and function, what took time, and what was left to clang and why.

        planish report 1a2b3c4d -o matmul.html

        planish report build/
    """
    if runs and len(runs) == 1 and Path(runs[0]).is_dir():
        refuse_unread(command, "the report of a build", {"runs", "form"})
        show_build(Path(runs[0]), form)
        return
    for each in runs or ():
        _require_id(each)
    from planish.cli.output import document, say
    from planish.core import StoreError
    from planish.report import write_report
    from planish.store import open_store
    from planish.tuning.result import read_result

    with open_store(store, read_only=True) as opened:
        last = None if runs else opened.last_run()
        ids = runs or ([last.id] if last else [])
        if not ids:
            raise StoreError("there is no run to report yet", "Tune something first.")
        found = [read_result(opened, each, files=file or ()) for each in ids]
        name = f"planish-{found[0].run.id}.html" if len(found) == 1 else "planish-comparison.html"
        path = write_report(found, output or Path(name))
    if form == "json":
        named = {"run": found[0].run.id} if len(found) == 1 else {"runs": [each.run.id for each in found]}
        document({**named, "report": str(path)})
    else:
        say(str(path))


def _require_id(text: str) -> None:
    """Raise StoreError where a text is a path or a word, and no id of a run."""
    from planish.core import StoreError

    if not fullmatch(r"[0-9a-fA-F]{1,8}", text):
        path = Path(text)
        what = f"'{text}' is neither the id of a run nor an existing folder"
        if path.exists():
            what = f"'{text}' is a file, and neither the id of a run nor the folder of a build"
        raise StoreError(what, "`planish runs` lists the ids.")


def export(
    run_id: given.RunId,
    folder: given.Folder,
    pick: given.Pick = 1,
    target: given.TargetName = "",
    name: given.KernelName = "",
    file: given.Files = None,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Write the winner of a run for use without planish, and print the files.

    A kernel becomes assembly and a C header; LLVM IR an object, the optimized module and its pass list; an
    ONNX model the optimized model with its passes and a script that runs it; a StableHLO module the edited
    module and its patch. With --target, a kernel's assembly is for another processor: the schedule is the one
    that was fast here, its answers are verified here, and its speed there is not known.

        planish export 1a2b3c4d out/

        planish export 1a2b3c4d out/ --name matmul

        planish export 1a2b3c4d out/ --target aarch64
    """
    from planish.cli.output import document, say, writing
    from planish.cli.summary import report_stand_in
    from planish.store import open_store
    from planish.tuning.result import read_result

    with open_store(store, read_only=True) as opened:
        result = read_result(opened, run_id, pick, file or ())
        level, exported = result.level, result.exported  # before a folder is made
        task = replace(result.task, target=level.cross_target(target)) if target else result.task
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            written = (
                level.export_as(task, exported, folder, name)
                if name
                else level.export(task, exported, folder)
            )
            files = [*map(str, written)]
        report_stand_in(result)
    if form == "json":
        document({"run": result.run.id, "files": files})
    else:
        say("\n".join(files))


def validate(
    command: typer.Context,
    run_id: given.RunId,
    pick: given.PickOrBest = None,
    run: given.RunStored = False,
    processes: given.Processes = 5,
    executor: given.ExecutorName = "local",
    ray: given.RayAddress = "",
    file: given.Files = None,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Check that the winner of a run still holds, on this machine or a host of a Ray cluster.

    Three checks are reported: replay (the stored steps apply to the stored program), answer (it builds,
    and its output is right), and value (its gain, measured again, is within the noise of the recorded
    one). The exit code is 7 if one fails. If the value is undecided, the command that measures in twice as
    many processes is printed.

        planish validate 1a2b3c4d
    """
    from planish.cli.output import document, say, table
    from planish.cli.request import command_of_more, executors
    from planish.core.wording import one_line
    from planish.tuning.validate import validate as tried

    with executors(executor, ray) as start:
        found = tried(
            run_id, pick=pick, run=run, files=file or (), store=store, processes=processes, start=start
        )
    is_undecided = found.value.verdict == "undecided"
    again = command_of_more(command.find_root().obj or (), processes) if is_undecided else ""
    if form == "json":
        checks = {check.name: {"verdict": check.verdict, "detail": check.detail} for check in found.checks}
        document({"run": found.run_id, "holds": found.holds, **checks, "again": again})
    else:
        rows = [[check.name, check.verdict, one_line(check.detail, 300)] for check in found.checks]
        table(["", "verdict", "found"], rows)
        if again:
            say(f"\nUndecided: the interval is too wide to decide. Run this command:\n    {again}")
    found.require()


runs = typer.Typer()

Ids = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="Ids of runs, or the beginnings of them.", autocompletion=run_ids),
]
SomeIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN]...", help="Ids of runs. Default: all runs.", autocompletion=run_ids),
]
NewFile = Annotated[Path, typer.Argument(metavar="FILE", help="Store to create; it must not exist.")]
Location = Annotated[
    str, typer.Argument(metavar="LOCATION", help="Other store: a file, or a postgresql:// URL.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


@runs.callback(invoke_without_command=True)
def runs_front(
    context: typer.Context,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Number of runs to list.")] = 20,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """List, delete, export and merge runs; without a command, list the newest.

    Options follow the command that they are for.
    """
    if context.invoked_subcommand is None:
        list_runs(limit, store, form)
    else:
        refuse_before(context)


@runs.command("delete")
def delete_runs(
    ids: Ids, yes: Yes = False, store: given.StorePlace = None, form: given.Format = "text"
) -> None:
    """Delete runs with their trials and results.

    The command asks for confirmation first.

        planish runs delete 1a2b3c4d
    """
    from planish.store import open_store

    with open_store(store) as opened:
        # All are found before the first one goes.
        found = dict.fromkeys(opened.run(run_id).id for run_id in ids)
        wanted = found if _agreed(len(found), yes) else {}
        _report("deleted", [opened.delete_run(run_id) for run_id in wanted], form)


@runs.command("export")
def export_runs(
    file: NewFile, ids: SomeIds = None, store: given.StorePlace = None, form: given.Format = "text"
) -> None:
    """Copy runs to a new store, to archive them or to merge them elsewhere.

    The store is written completely or not at all.

        planish runs export good.db 1a2b3c4d 5e6f7a8b
    """
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


@runs.command("merge")
def merge_runs(location: Location, store: given.StorePlace = None, form: given.Format = "text") -> None:
    """Copy the runs of another store into this one.

    Runs that are already there stay; if one of the two copies has more trials, that one is kept. Merged runs
    can be shown, exported and resumed, and their trials are known to later runs.

        planish runs merge good.db --store postgresql://team@host/planish
    """
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
        raise PlanishError(
            "deleting needs a confirmation, and standard input is not a terminal", "Add --yes."
        )
    what = "this run and its trials" if count == 1 else f"these {count} runs and their trials"
    try:
        return typer.confirm(f"Delete {what} permanently?", err=True)
    except typer.Abort:  # the end of input is not an answer
        return False


def _report(done: str, ids: Sequence[str], form: given.Form) -> None:
    from planish.cli.output import document, say

    if form == "json":
        document({done: ids})
        return
    say(f"{done} {len(ids)} run{'' if len(ids) == 1 else 's'}{': ' if ids else ''}{', '.join(ids)}")
