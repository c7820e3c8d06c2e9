"""`planish validate`."""

from __future__ import annotations

import typer

from planish.cli import options as given


def validate(
    command: typer.Context,
    run_id: given.RunId,
    pick: given.PickOrBest = None,
    run: given.RunStored = False,
    processes: given.Processes = 5,
    file: given.Files = None,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Try a stored winner again: does it still hold?

    Does it replay, is its answer right, is its value within the noise of the recorded one? Ends with
    exit code 7 where one of them does not. A value whose interval is too wide to decide is undecided.
    """
    from planish.cli.again import command_of_more
    from planish.cli.output import document, one_line, say, table
    from planish.tuning.validate import validate as tried

    found = tried(run_id, pick=pick, run=run, files=file or (), store=store, processes=processes)
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
