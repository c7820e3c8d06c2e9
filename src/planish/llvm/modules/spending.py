"""Time and evaluations, and work in children for as long as they last."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from planish.isolation import Done, ForkLimits, ForkPool, Watchdog

LIMITS = ForkLimits(seconds=600.0, deaths=1)
_WAIT_S = 0.05

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass
class Spending:
    """Time and evaluations.

    Args:
        began: when the search did.
        seconds: that it may take.
        evaluations: that it may make; None: any number.
        cores: that are used.
        reserve: seconds that are kept back for the end.
        done: evaluations so far.
    """

    began: float
    seconds: float
    evaluations: int | None
    cores: int
    reserve: float = 0.0
    done: int = 0

    @property
    def passed(self) -> float:
        """How many seconds ago it began."""
        return time.monotonic() - self.began

    def left(self, share: float = 1.0) -> float:
        """Give the seconds that a share of the time has left; none where evaluations are used up."""
        if self.evaluations is not None and self.done >= self.evaluations:
            return 0.0
        return (self.seconds - self.reserve) * share - self.passed

    def spend(
        self,
        work: Callable[[Item, Watchdog], Answer],
        item: Callable[[], Item | None],
        hear: Callable[[Done[Item, Answer]], None],
        share: float = 1.0,
    ) -> None:
        """Have children work until a share of the time is over.

        Args:
            work: what is done with an item; what ends a child costs the item.
            item: gives the next item; None where there is none now.
            hear: is given each item that is over, and counts what it was in `done`.
            share: of the time.
        """
        with closing(ForkPool(work, self.cores, limits=LIMITS)) as pool:
            under_way = 0
            while (left := self.left(share)) > 0:
                while under_way < self.cores and (given := item()) is not None:
                    pool.add([given])
                    under_way += 1
                if not under_way:
                    return
                for over in pool.over(min(left, _WAIT_S)):
                    under_way -= 1
                    hear(over)
