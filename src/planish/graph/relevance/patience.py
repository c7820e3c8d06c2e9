"""The time that finding out what is relevant may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from planish.graph.relevance.examiner import Examiner

T = TypeVar("T")

_BUSY = 2.5
"""On a machine that is busy with other work, so many times as long by the clock."""


class PatienceClock:
    """Tells whether there is time left: by the processor, so that a busy machine leaves nothing out.

    Args:
        examiner: whose time it is.
        patience_s: seconds of a processor.
    """

    def __init__(self, examiner: Examiner, patience_s: float) -> None:
        self._examiner, self._patience = examiner, patience_s
        self._before, self._start = examiner.spent, time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds of a processor, so far."""
        return self._examiner.spent - self._before

    def __call__(self, share: float, things: Sequence[T], work: Callable[[T], None]) -> int:
        """Work through things while there is time; gives how many were.

        Args:
            share: of the time, after which it is over.
            things: what to work through.
            work: on one of them.
        """
        for done, thing in enumerate(things):
            # Both: a process that hangs uses no processor, and would never be over.
            spent = max(self.spent, (time.monotonic() - self._start) / _BUSY)
            if spent > share * self._patience:
                return done
            work(thing)
        return len(things)
