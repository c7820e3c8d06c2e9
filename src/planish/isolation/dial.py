"""Where a worker is: it marks that in shared memory, and the executor reads it there."""

from planish.core import STAGES

# "worker" comes first: memory that nobody wrote yet reads as that.
PHASES = ("worker", *(stage for stage in STAGES if stage != "worker"), "wait")
_BITS = 3  # for the phase, in the word that says where the worker is
DIAL_BYTES = 8 * (1 + len(PHASES))
_ZEROS = memoryview(bytes(DIAL_BYTES)).cast("Q")


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
        self._words[:] = _ZEROS

    def move(self, old: int, since: int, new: int, now: int) -> None:
        """Book the time since `since` to the old phase, and say that the new one is on."""
        self._words[1 + old] += now - since
        # As if the phase had no breaks, so that its limit holds for the whole of it.
        start = now - self._words[1 + new]
        # Last: whoever reads the phase finds the time before it booked.
        self._words[0] = start << _BITS | new

    def phase(self) -> tuple[str, float]:
        """Give the phase that is on and when it started, in seconds of the monotonic clock."""
        word = self._words[0]
        return PHASES[word & (1 << _BITS) - 1], (word >> _BITS) * 1e-9

    def seconds(self) -> dict[str, float]:
        """Give the seconds booked by phase; phases without any are left out."""
        booked = zip(PHASES, self._words.tolist()[1:], strict=True)
        return {phase: nanoseconds * 1e-9 for phase, nanoseconds in booked if nanoseconds}
