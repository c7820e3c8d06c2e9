"""`planish validate`."""

from __future__ import annotations

from planish.cli import options as given


def validate(
    run_id: given.RunId,
    pick: given.PickOrBest = None,
    run: given.RunStored = False,
    file: given.Files = None,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Try a stored winner again: does it still hold?

    Does it replay, is its answer right, is its value within the noise of the recorded one? Ends with
    exit code 7 where one of them does not.
    """
    from planish.cli.output import document, one_line, table
    from planish.results.validate import validate as tried

    found = tried(run_id, pick=pick, run=run, files=file or (), store=store)
    if form == "json":
        checks = {check.name: {"verdict": check.verdict, "detail": check.detail} for check in found.checks}
        document({"run": found.run_id, "holds": found.holds, **checks})
    else:
        rows = [[check.name, check.verdict, one_line(check.detail, 300)] for check in found.checks]
        table(["", "verdict", "found"], rows)
    found.require()
