"""Waiting until a library's threads, which look for more work for a while, are asleep."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

STEP_S = 1e-3
_TASKS = Path("/proc/self/task")
_LOOK_S = 0.02
"""A running thread's processor time is counted a few times in so long: every 4 ms or so."""
_BUSY = 0.3
"""Of a look; threads that look for work use all of it."""


def rest(longest_s: float) -> bool:
    """Wait until no other thread of this process runs, and tell whether one did.

    OpenBLAS's threads look for work during up to 0.1 s after a multiplication, and take the cores from
    whatever uses several after it: that then seems to take 10 times as long, or more.

    Args:
        longest_s: seconds to wait at most.
    """
    start, ran = time.perf_counter(), False
    time.sleep(STEP_S)
    while _others_run():
        ran = True
        if time.perf_counter() - start > longest_s:
            break
        time.sleep(STEP_S)
    return ran


def _others_run() -> bool:
    """Whether a thread other than the calling one runs, or would if it had a core."""
    if sys.platform == "linux":
        own = str(threading.get_native_id())
        return any(_is_running(task) for task in _TASKS.iterdir() if task.name != own)
    before, began = time.process_time(), time.perf_counter()
    time.sleep(_LOOK_S)
    return (time.process_time() - before) / (time.perf_counter() - began) > _BUSY


def _is_running(task: Path) -> bool:
    with suppress(OSError):  # it has ended meanwhile
        stat = (task / "stat").read_text(encoding="ascii", errors="replace")
        return stat.rpartition(")")[2].split()[0] == "R"  # the thread's name may have spaces and brackets
    return False
