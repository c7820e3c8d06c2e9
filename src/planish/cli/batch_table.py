"""Many programs, each tuned by itself, in one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from planish.cli.options import Form
from planish.cli.output import document, say, table
from planish.cli.request import Request
from planish.cli.summary import candidate_document
from planish.core import AllFailedError, ExecutorFactory, StoppedError, stoppable
from planish.core.wording import amount, label, one_line
from planish.store import open_store
from planish.tuning.batch import Part, Unmeasured, load_parts, totals, tune_parts
from planish.tuning.progress import ProgressDisplay, Status

_LIST = 90

Found = Sequence[Part | Unmeasured]


def tune_each(request: Request, store: str | None, form: Form, start: ExecutorFactory) -> None:
    """Tune each part of a program by executors of a factory, and show all of them."""
    level, parts = load_parts(request.program, request.settings.level, request.options)
    with open_store(store) as opened:
        tuned = tune_parts(
            level, parts, budget=request.budget, settings=request.settings, store=opened, start=start
        )
        found, stopped = gather(tuned, len(parts), "functions", form)
    if form == "json":
        document({**parts_document(found), "stopped": stopped})
    else:
        show_parts(found, "function")
        if stopped:
            say("\nStopped. Run the same command to resume.")
    if found and all(isinstance(part, Unmeasured) for part in found):
        require_all(found)


def gather(tuned: Iterator[Part | Unmeasured], count: int, items: str, form: Form) -> tuple[Found, bool]:
    """Take the parts as they come, and show the progress; Ctrl-C ends it.

    Args:
        tuned: the parts.
        count: how many there will be.
        items: what they are: "functions".
        form: no progress is shown beside JSON.

    Returns:
        Those that came, and whether the user ended it.

    Raises:
        StoppedError: the user ended it before the first.
    """
    found: list[Part | Unmeasured] = []
    status = Status(items, count)
    try:
        with stoppable(), ProgressDisplay(show=form == "text") as display:
            display.begin(status)
            for part in tuned:
                found.append(part)
                status.done, status.item = len(found), part.name
                display.update()
    except (StoppedError, KeyboardInterrupt) as error:
        if not found:
            hint = "Run the same command to resume."
            raise StoppedError("stopped before anything was measured", hint) from error
        return found, True
    return found, False


def require_all(found: Found) -> None:
    """Raise AllFailedError where a part could not be measured."""
    lost = [part for part in found if isinstance(part, Unmeasured)]
    if lost:
        what = f"{len(lost)} of {len(found)} could not be measured: {lost[0].name}: {lost[0].reason}"
        raise AllFailedError(what, "See what is wrong with it: planish tune FILE.")


def show_parts(found: Found, what: str) -> None:
    """Write a table of all parts, and what they come to in all.

    Args:
        found: the parts.
        what: a part is: "function".
    """
    parts = [part for part in found if isinstance(part, Part)]
    if parts:
        values = ["unoptimized", "baseline", "best", "saved"]
        table([what, *values, "run", "passes"], [_row(part) for part in parts], right=values)
        say()
        _show_totals(parts)
    for lost in found:
        if isinstance(lost, Unmeasured):
            say(f"{lost.name}: not measured: {one_line(lost.reason)}")


def _row(part: Part) -> list[str]:
    unit = part.objective.unit
    values = (amount(value, unit) for value in (part.start, part.baseline, part.best))
    steps = ", ".join(map(str, part.candidate.steps)) or "(unchanged)"
    return [part.name, *values, _percent(part.saved, part.baseline), part.run_id, one_line(steps, _LIST)]


def _show_totals(parts: Sequence[Part]) -> None:
    what = label(parts[0].objective)
    columns = ["improved", "regressed", f"{what} saved", f"{what} lost", "overall"]
    rows: list[list[str]] = []
    for backup in (False, True):
        found = totals(parts, backup=backup)
        name = "with the baseline as backup" if backup else "the search alone"
        counts = (found.improved, found.regressed, found.saved, found.lost)
        rows.append([name, *(f"{count:,.0f}" for count in counts), _percent(found.overall, 1)])
    table([f"{len(parts)} in all", *columns], rows, right=columns)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f} %" if whole else ""


def parts_document(found: Found) -> dict[str, Any]:
    """Return all parts, and what they come to, as JSON."""
    parts = [part for part in found if isinstance(part, Part)]
    sums = {
        name: {**asdict(added), "overall": added.overall}
        for name, backup in (("alone", False), ("with backup", True))
        for added in [totals(parts, backup=backup)]
    }
    return {
        "objective": parts[0].objective.name if parts else None,
        "parts": [_part_document(part) for part in parts],
        "not measured": {lost.name: lost.reason for lost in found if isinstance(lost, Unmeasured)},
        "totals": sums,
    }


def _part_document(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "run": part.run_id,
        "unoptimized": part.start,
        "baseline": part.baseline,
        "best": part.best,
        "kept": part.kept,
        "trials": part.trials,
        **candidate_document(part.candidate),
    }
