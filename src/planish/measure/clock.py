"""The stage clock: it books time by stage, and keeps the machine for what is timed."""

import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from planish.core import Stage
from planish.isolation.dial import PHASES, Dial
from planish.measure.exclusion import exclusive
from planish.measure.machine_lock import opened_lock

_CODE = {phase: code for code, phase in enumerate(PHASES)}


class Clock:
    """The clock that evaluators are given.

    Entering the stage "run" waits until no other timed run is under way on the machine, and keeps
    the machine until the stage is left. The wait is booked apart, as "wait"; no limit applies to
    it. Time outside every stage is booked as "worker".

    Args:
        dial: where the time is kept.
        lock: the file by which timed runs exclude each other.
    """

    def __init__(self, dial: Dial, lock: Path) -> None:
        self._dial = dial
        self._lock = lock
        self.restart()

    def restart(self) -> None:
        """Begin with a new candidate."""
        self.failed: Stage | None = None
        self._dial.reset()
        self._phase, self._since = _CODE["worker"], time.monotonic_ns()
        self._dial.move(self._phase, self._since, self._phase, self._since)

    def folders(self) -> Sequence[Path]:
        """Make the lock, and name the folders that are read for it: both before the worker is confined."""
        # Here, since a confined worker could not make it.
        os.close(opened_lock(self._lock))
        return (self._lock.parent,)

    def stop(self) -> Mapping[str, float]:
        """Give the seconds by phase up to now."""
        self._turn(_CODE["worker"])
        return self._dial.seconds()

    @contextmanager
    def __call__(self, stage: Stage) -> Generator[None, None, None]:
        """Mark the block as this stage; stages nest, and time counts for the innermost."""
        outer = self._phase
        if stage == "run":
            self._turn(_CODE["wait"])
        # Booked as "wait" until it is entered: whoever waits for the machine must not look slow, nor be timed
        # out.
        with exclusive(self._lock) if stage == "run" else nullcontext():
            self._turn(_CODE[stage])
            self.failed = None  # an earlier stage failed, and was recovered from
            try:
                yield
            except BaseException:
                self.failed = self.failed or stage  # of nested stages the innermost
                raise
            finally:
                # To what was there before, not to "worker": stages nest, and the outer one goes on.
                self._turn(outer)

    def _turn(self, phase: int) -> None:
        now = time.monotonic_ns()
        self._dial.move(self._phase, self._since, phase, now)
        self._phase, self._since = phase, now
