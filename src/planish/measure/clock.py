"""The stage clock: a worker marks where it is in shared memory, and the executor reads it there."""

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from planish.core import STAGES, Stage
from planish.measure.exclusion import exclusive

# "worker" comes first: memory that nobody wrote yet reads as that.
PHASES = ("worker", *(stage for stage in STAGES if stage != "worker"), "wait")
_CODE = {phase: code for code, phase in enumerate(PHASES)}
_BITS = 3  # for the phase, in the word that says where the worker is
DIAL_BYTES = 8 * (1 + len(PHASES))


class Dial:
    """Shared memory: one word `start << 3 | phase`, then the nanoseconds spent in each phase.

    Phase and start share a word so that a reader never sees one without the other.

    Args:
        memory: `DIAL_BYTES` bytes, aligned to 8.
    """

    def __init__(self, memory: memoryview) -> None:
        self._words = memory.cast("Q")

    def reset(self) -> None:
        """Forget the last candidate."""
        for index in range(len(self._words)):
            self._words[index] = 0

    def move(self, old: int, since: int, new: int, now: int) -> None:
        """Book the time since `since` to the old phase, and say that the new one is on."""
        self._words[1 + old] += now - since
        # As if the phase had no breaks, so that its limit holds for the whole of it.
        start = now - self._words[1 + new]
        self._words[0] = start << _BITS | new

    def phase(self) -> tuple[str, float]:
        """Give the phase that is on and when it started, in seconds of the monotonic clock."""
        word = self._words[0]
        return PHASES[word & (1 << _BITS) - 1], (word >> _BITS) * 1e-9

    def seconds(self) -> dict[str, float]:
        """Give the seconds booked by phase; phases without any are left out."""
        booked = zip(PHASES, self._words[1:], strict=True)
        return {phase: nanoseconds * 1e-9 for phase, nanoseconds in booked if nanoseconds}


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
        with exclusive(self._lock) if stage == "run" else nullcontext():
            self._turn(_CODE[stage])
            self.failed = None
            try:
                yield
            except BaseException:
                self.failed = self.failed or stage
                raise
            finally:
                self._turn(outer)

    def _turn(self, phase: int) -> None:
        now = time.monotonic_ns()
        self._dial.move(self._phase, self._since, phase, now)
        self._phase, self._since = phase, now
