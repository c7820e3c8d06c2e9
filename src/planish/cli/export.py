"""`planish export`."""

from __future__ import annotations

from planish.cli import options as given


def export(
    run_id: given.RunId,
    folder: given.Folder,
    pick: given.Pick = 1,
    file: given.Files = None,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Write a winner for use without planish."""
    from planish.cli.output import document, say, writing
    from planish.cli.summary import report_stand_in
    from planish.store import open_store
    from planish.tuning.result import read_result

    with open_store(store, read_only=True) as opened:
        result = read_result(opened, run_id, pick, file or ())
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        files = [str(file) for file in result.export(folder)]
    report_stand_in(result)
    if form == "json":
        document({"run": result.run_id, "files": files})
    else:
        say("\n".join(files))
