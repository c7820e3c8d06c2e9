"""Reports: HTML files of runs that need nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import PlanishError
from planish.core.arguments import check_path, check_type
from planish.core.files import StrPath, replace_text

if TYPE_CHECKING:
    from planish.tuning.result import Result

__all__ = ["write_report"]


def write_report(results: Result | Sequence[Result], path: StrPath) -> Path:
    """Write the report of a run, or a comparison of several, as one HTML file of at most 1.5 MB.

    The file works offline. A run without a result, or still under way, has a report, too.

    Args:
        results: a run, or several of the same level and leading objective; their store is open, and may be
            read-only.
        path: the file; what is there is replaced, missing folders are made.

    Returns:
        The path.

    Raises:
        ArgumentError: an argument has a wrong type.
        StoreError: the store cannot be read.
        ProgramError: the level does not have a step of a trial.
        PlanishError: the runs cannot be compared, or the file cannot be written.
    """
    from planish.report.comparison import runs_page
    from planish.report.page import run_page
    from planish.tuning.result import Result

    check_path("path", path)
    runs = list(results) if isinstance(results, Sequence) else [results]
    for each in runs:
        check_type("results", each, Result, "a Result or a list of them")
    path = Path(path)
    page = run_page(runs[0]) if len(runs) == 1 else runs_page(runs)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What failed programs say may hold halves of characters.
        replace_text(path, page, errors="backslashreplace")
    except OSError as error:
        what = f"the report cannot be written to {path}: {error.strerror}"
        raise PlanishError(what, "Name another file.") from error
    return path
