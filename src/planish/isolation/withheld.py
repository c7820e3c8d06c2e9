"""How long the system kept the processor from a worker: it was stopped, or others had the processor."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_LOOK_S = 0.1  # how often it is looked at
_STARVES = 10
_PROC = Path("/proc")


@dataclass(frozen=True)
class _Sample:
    """A process and its descendants at one time.

    Args:
        time: in seconds of the monotonic clock.
        states: thread id to its state, one letter.
        ran: thread id to the seconds for which it had a processor, since its start.
        waited: thread id to the seconds for which it could have run and had none; the kernel adds them when
            it has one again.
    """

    time: float = field(default_factory=time.monotonic)
    states: Mapping[int, str] = field(default_factory=dict[int, str])
    ran: Mapping[int, float] = field(default_factory=dict[int, float])
    waited: Mapping[int, float] = field(default_factory=dict[int, float])


class Withheld:
    """Counts the seconds for which a process and its descendants were kept from running; on Linux alone.

    Of the time between two looks it is what one of them was stopped or waited for a processor, as far as
    they had no processor meanwhile. What sleeps waits for nothing of ours, so a process that hangs is not
    excused by it.

    Args:
        pid: of the process.

    Attributes:
        stopped: seconds that it was stopped.
        starved: seconds that others had the processor.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.restart()

    def restart(self) -> None:
        """Count from 0."""
        self.stopped = self.starved = 0.0
        self._last: _Sample | None = None
        self._next = time.monotonic() + _LOOK_S

    @property
    def seconds(self) -> float:
        """All that was withheld."""
        return self.stopped + self.starved

    def exceeds(self, limit: float) -> str:
        """Say what was withheld for too long, "stopped" or "starved"; empty where nothing was.

        Args:
            limit: seconds that it may be stopped. It may starve for longer: with a tenth of a processor it
                goes on.
        """
        if self.stopped > limit:
            return "stopped"
        return "starved" if self.starved > _STARVES * limit else ""

    def look(self) -> None:
        """Count up to now; it is called often, and looks now and then."""
        if time.monotonic() < self._next:
            return
        sample = _sample(self._pid)
        self._next = sample.time + _LOOK_S
        if self._last is not None:
            self._count(self._last, sample)
        self._last = sample

    def _count(self, last: _Sample, now: _Sample) -> None:
        passed = now.time - last.time
        ran = sum(seconds - last.ran.get(thread, 0.0) for thread, seconds in now.ran.items())
        # Several threads may have run for longer than the clock: then nothing was withheld.
        idle = max(0.0, passed - ran)
        if not {"T", "t"}.isdisjoint(now.states.values()):
            self.stopped += idle
        elif any(state == last.states.get(thread) == "R" for thread, state in now.states.items()):
            self.starved += idle  # it waits still, or has waited in between
        else:
            waits = (seconds - last.waited.get(thread, 0.0) for thread, seconds in now.waited.items())
            # The longest wait of one thread, and not the sum: they waited at the same time.
            self.starved += min(idle, max(waits, default=0.0))


def _sample(pid: int) -> _Sample:
    states, ran, waited = dict[int, str](), dict[int, float](), dict[int, float]()
    for thread in _threads(pid):
        number = int(thread.name)
        with suppress(OSError, ValueError):  # it ended meanwhile, or this system does not tell
            # "pid (name) state ...", and the name may hold anything
            states[number] = (thread / "stat").read_text().rpartition(")")[2].split()[0]
            # See "schedstat" in the kernel's sched-stats.rst: nanoseconds run, nanoseconds waited.
            had, lacked, _ = (thread / "schedstat").read_text().split()
            ran[number], waited[number] = int(had) * 1e-9, int(lacked) * 1e-9
    return _Sample(states=states, ran=ran, waited=waited)


def _threads(pid: int) -> Iterator[Path]:
    """List the threads of a process and of its descendants, as folders of /proc."""
    with suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            yield thread
            for child in _children(thread):
                yield from _threads(child)


def _children(thread: Path) -> list[int]:
    try:
        return [int(word) for word in (thread / "children").read_text().split()]
    except OSError:  # it ended meanwhile, or this kernel does not tell
        return []
