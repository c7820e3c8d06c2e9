"""Budget of a search in time and evaluations, and work in children while it lasts."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from planish.sandbox import Done, ForkLimits, ForkPool, Watchdog

LIMITS = ForkLimits(seconds=600.0, deaths=1)
_WAIT_S = 0.05
_PATIENCE = 4.0
"""Seconds by the clock that one of the processor may take."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def processor_s() -> float:
    """Return what this process has used of the processor, with its children that are over."""
    used = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@dataclass
class EvaluationBudget:
    """Time and evaluations, from now on.

    Args:
        seconds: that it may take.
        evaluations: that it may make; None: any number.
        cores: that are used.
        of_processor: whether seconds are of the processor, so that other programs that run beside take none
            of them. A wait of several times as many ends it all the same.
        reserve: seconds that are kept back for the end.
        done: evaluations so far.
    """

    seconds: float
    evaluations: int | None
    cores: int
    of_processor: bool = False
    reserve: float = 0.0
    done: int = 0
    _began: float = field(default_factory=time.monotonic)
    _processor: float = field(default_factory=processor_s)
    _under_way: Callable[[], float] = float

    @property
    def passed(self) -> float:
        """Return how many seconds it has taken."""
        waited = time.monotonic() - self._began
        return max(self._used, waited / _PATIENCE) if self.of_processor else waited

    @property
    def had(self) -> float:
        """Return the seconds that it had, once it is over; load leaves fewer than `seconds`."""
        used, waited = self._used, (time.monotonic() - self._began) / _PATIENCE
        evaluated = self.evaluations is not None and self.done >= self.evaluations
        cut_short = self.of_processor and not evaluated and self.left() <= 0 and used < waited
        return min(used, self.seconds) if cut_short else self.seconds

    @property
    def _used(self) -> float:
        # Children that still run are in no sum of the system's yet.
        return processor_s() - self._processor + self._under_way()

    def left(self, share: float = 1.0) -> float:
        """Return the seconds that a share of the time has left; none where evaluations are used up."""
        if self.evaluations is not None and self.done >= self.evaluations:
            return 0.0
        return (self.seconds - self.reserve) * share - self.passed

    def spend(
        self,
        work: Callable[[Item, Watchdog], Answer],
        answer: Any,
        item: Callable[[], Item | None],
        hear: Callable[[Done[Item, Answer]], None],
        share: float = 1.0,
    ) -> None:
        """Have children work as long as there is time.

        Args:
            work: what is done with an item; what ends a child costs the item.
            answer: the type of its answer, as `ForkPool` takes it.
            item: gives the next item; None where there is none now.
            hear: is given each item that is over, and counts what it was in `done`.
            share: of the time, in which items begin; those that are under way then may end.
        """
        with (
            closing(ForkPool(work, answer, self.cores, limits=LIMITS)) as pool,
            self._watching(pool.processor_s),
        ):
            under_way = 0
            while (left := self.left()) > 0:
                while under_way < self.cores and self.left(share) > 0 and (given := item()) is not None:
                    pool.add([given])
                    under_way += 1
                if not under_way:
                    return
                for over in pool.over(min(left, _WAIT_S)):
                    under_way -= 1
                    hear(over)

    @contextmanager
    def _watching(self, under_way: Callable[[], float]) -> Generator[None]:
        """Count what children use that still run."""
        self._under_way = under_way
        try:
            yield
        finally:
            self._under_way = float
