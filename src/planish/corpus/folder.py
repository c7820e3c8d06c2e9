"""A folder that one process at a time writes."""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from planish.core import PlanishError


@contextmanager
def ours(folder: Path) -> Generator[None]:
    """Hold a folder against other builds, and tell in one line where it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise PlanishError(
                    f"another process is at work in {folder}", "Wait for it to end."
                ) from error
            yield
    except OSError as error:
        what = f"cannot write {folder}: {error.strerror or error}"
        hint = "Make room or name another folder; what is finished is kept, and the same command goes on."
        raise PlanishError(what, hint) from error
