"""`planish report`."""

from __future__ import annotations

from pathlib import Path

import typer

from planish.cli import options as given
from planish.cli.options import refuse_unread


def report(
    command: typer.Context,
    run_id: given.RunOrBuild = None,
    output: given.OutputFile = None,
    file: given.Files = None,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Write a run as one HTML file, or show what `planish cc` saved in a build.

    Without ID, it is the run that was last worked on. The path is printed. Of a folder, what `planish cc`
    compiled into it is shown: what was saved, by file and function, and what took time.
    """
    if run_id is not None and Path(run_id).is_dir():
        from planish.cli.builds import show_build

        refuse_unread(command, "the report of a build", {"run_id", "form"})
        show_build(Path(run_id), form)
        return
    from planish.cli.output import document, say
    from planish.core import StoreError
    from planish.levels.registry import level_named, name_files
    from planish.report import write_report
    from planish.store import open_store

    with open_store(store, read_only=True) as opened:
        run = opened.last_run() if run_id is None else opened.run(run_id)
        if run is None:
            raise StoreError("there is no run to report yet", "Tune something first.")
        level = level_named(opened.task(run.task_key).level)
        name_files(level, file or ())
        path = write_report(opened, run.id, level, output or Path(f"planish-{run.id}.html"))
    if form == "json":
        document({"run": run.id, "report": str(path)})
    else:
        say(str(path))
