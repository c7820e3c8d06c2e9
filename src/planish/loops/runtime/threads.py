"""Teams of threads that share parallel loops; kept for the life of the process, made on first use."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from contextlib import suppress

from planish.loops.runtime.native import FIELDS, LANE, LANE_WORDS, TEAM_WORDS, native
from planish.loops.runtime.short_slices import request_short_slices

_CACHE_LINE = 64


class Team:
    """A leader, which is the calling thread, and workers; each has a lane, the leader's is 0.

    Workers wait in machine code, without the GIL. Jobs need none of them: what no worker has begun, the
    leader does. So there may be fewer than lanes, where the system allows no more threads.

    Args:
        lanes: threads in all, at least 2.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self._native = native()
        words = TEAM_WORDS + lanes * LANE_WORDS
        # One line more, to begin at a cache line: fields that different threads write are in lines of their
        # own.
        self._memory = (ctypes.c_int64 * (words + _CACHE_LINE // 8))()
        self._start = -(-ctypes.addressof(self._memory) // _CACHE_LINE) * _CACHE_LINE
        self._team = ctypes.c_void_p(self._start)
        self._word(FIELDS["lanes"]).value = lanes
        self._word(FIELDS["processor"]).value = -1
        self._word(TEAM_WORDS + LANE["lock"]).value = _held_lock()
        self._threads = list[threading.Thread]()
        with suppress(RuntimeError):  # no further thread can be started
            for lane in range(1, lanes):
                self._threads.append(self._started(lane))

    def run(self, job: ctypes.c_void_p, times: int) -> None:
        """Run a job; see `planish.loops.runtime.native` for the record.

        Where another thread runs a job with this team, the calling thread does all by itself. The machine
        code of a job, and its arrays, must live until this returns, and no longer.

        Args:
            job: address of the record; it must be made for this number of lanes.
            times: how often.
        """
        self._native.lead(self._team, job, times)

    def stop(self) -> None:
        """End the workers; what is run afterwards, the calling thread does by itself."""
        self._native.end(self._team)
        for thread in self._threads:
            thread.join()

    def _word(self, index: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self._start + 8 * index)

    def _started(self, lane: int) -> threading.Thread:
        line = TEAM_WORDS + lane * LANE_WORDS
        self._word(line + LANE["lock"]).value = _held_lock()
        thread = threading.Thread(target=self._work, args=(lane,), name=f"planish-{lane}", daemon=True)
        thread.start()
        self._word(line + LANE["thread"]).value = thread.native_id or 0
        return thread

    def _work(self, lane: int) -> None:
        request_short_slices()
        self._native.work(self._team, lane)


def _held_lock() -> int:
    """Make a lock that is held; of CPython's own, which machine code can use without the GIL."""
    python = ctypes.pythonapi
    allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThread_allocate_lock", python))
    acquire = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(
        ("PyThread_acquire_lock", python)
    )
    lock = allocate()
    if not lock:
        raise RuntimeError("no lock can be made")
    acquire(lock, 1)
    return lock


_teams: dict[int, Team] = {}
_making = threading.Lock()


def team(lanes: int) -> Team:
    """Give the process's team of so many threads."""
    found = _teams.get(lanes)
    if found is None:
        with _making:
            # Looked up again under the lock: another thread may have made it while this one waited.
            found = _teams.get(lanes) or _teams.setdefault(lanes, Team(lanes))
    return found


def _stop_all() -> None:
    # They are kept: what other functions run at the end of the process is done without workers.
    for found in _teams.values():
        found.stop()


def _forget_after_fork() -> None:
    """A child has none of its parent's threads: it makes teams of its own."""
    global _making
    _teams.clear()
    _making = threading.Lock()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
