"""Teams of threads that wait for parallel loops; kept for the life of the process, made on first use."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from contextlib import nullcontext
from queue import SimpleQueue

from planish.loops.runtime.affinity import beside_caller
from planish.loops.runtime.native import FIELDS, TEAM_WORDS, native, yield_address


class Team:
    """A leader, which is the calling thread, and workers; each has a lane, the leader's is 0.

    Workers sleep at first. Once woken they wait in native code without the GIL; after a while without work
    they sleep again. The machine code of what they run, and its arrays, must live until `run` returns.

    Args:
        lanes: threads in all, at least 2.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self._native = native()
        # Eight words more, to begin at a cache line: fields that different threads write are in lines of
        # their own.
        self._words = (ctypes.c_int64 * (TEAM_WORDS + 8))()
        self._start = -(-ctypes.addressof(self._words) // 64) * 64
        self._team = ctypes.c_void_p(self._start)
        self._word("yield").value = yield_address()
        self._word("sleepers").value = lanes - 1
        self._turn = threading.Lock()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, args=(lane,), name=f"planish-{lane}", daemon=True)
            for lane in range(1, lanes)
        ]
        for thread in self._threads:
            thread.start()
        self._numbers = [thread.native_id or 0 for thread in self._threads]

    def run(self, job: ctypes.c_void_p, times: int) -> None:
        """Run a job, each parallel entry by all lanes; see `planish.loops.runtime.native` for the record.

        Args:
            job: address of the record; it must be made for this number of lanes.
            times: how often.
        """
        with self._turn:
            try:
                # Before waking anybody: who is about to sleep sees the mark, and stays.
                asleep = self._native.begin(self._team)
                with beside_caller(self._numbers) if asleep else nullcontext():
                    for _ in range(asleep):
                        self._wake.put(None)
                    self._native.lead(self._team, job, times)
            except BaseException:
                self._word("active").value = 0  # else its workers would never sleep again
                raise

    def stop(self) -> None:
        """End the workers; the team is of no use afterwards."""
        with self._turn:
            # No job is the sign to end; the generation rises after it, as workers look at that first.
            self._word("job").value = 0
            self._word("generation").value += 1
            for _ in self._threads:
                self._wake.put(None)
        for thread in self._threads:
            thread.join()

    def _word(self, field: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self._start + 8 * FIELDS[field])

    def _work(self, lane: int) -> None:
        seen = 0
        while seen >= 0:
            self._wake.get()
            seen = self._native.work(self._team, lane, seen)


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
    for found in _teams.values():
        found.stop()
    _teams.clear()


def _forget_after_fork() -> None:
    """A child has none of its parent's threads: it makes teams of its own."""
    global _making
    _teams.clear()
    _making = threading.Lock()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
