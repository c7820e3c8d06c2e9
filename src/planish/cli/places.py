"""Can it be written where the user wants it? Told before anything is searched for."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from planish.core import PlanishError


def require_places(report: Path | None, export: Path | None) -> None:
    """Raise PlanishError where a report cannot be written to a file, or a winner into a folder.

    Nothing is made. What becomes of them meanwhile, and a disk that is full by then, cannot be known.
    """
    if report is not None:
        if report.is_dir():
            raise PlanishError(f"cannot write the report {report}: it is a folder", "Name a file in it.")
        _require(report, report.parent)
        if report.exists() and not os.access(report, os.W_OK):
            raise _refused(report, "it may not be changed")
    if export is not None:
        _require(export, export)


def _require(path: Path, folder: Path) -> None:
    """See whether a file could be made in a folder, which may have to be made too."""
    there = folder.absolute()
    try:
        while not there.exists():
            there = there.parent
        if not there.is_dir():
            raise _refused(path, f"{there} is no folder")
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise _refused(path, f"{there}: {error.strerror or error}") from error


def _refused(path: Path, why: str) -> PlanishError:
    return PlanishError(f"cannot write {path}: {why}", "Name another place, or make room there.")
