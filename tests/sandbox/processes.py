"""Inspection of the processes of this machine."""

import time
from pathlib import Path


def living(group: int) -> list[int]:
    """List the processes of a group that are not dead; a zombie is."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # "pid (name) state parent group ...", and the name may hold anything
            state, _, owner = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(owner) == group and state not in "ZX":
            found.append(int(folder.name))
    return found


def dies_out(group: int, seconds: float = 60.0) -> bool:
    """Wait until no process of a group lives."""
    end = time.monotonic() + seconds
    while living(group):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def read_log(path: Path) -> list[tuple[int, str]]:
    """Read the log of `LoggingEvaluator`: process id and candidate."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(pid), rest) for pid, _, rest in (line.partition(" ") for line in lines)]
