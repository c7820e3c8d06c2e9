"""What an executor shows of its workers' wait for the machine."""

import logging
from collections.abc import Collection
from pathlib import Path

from planish.measure.exclusion import PATIENCE_S, SHOWN_S, disturbed, waiting
from planish.measure.machine_lock import holder_of

_log = logging.getLogger("planish")


class Waits:
    """Logs, once, which other process keeps the machine from the workers; they may wait for each other.

    Args:
        lock: the file by which timed runs exclude each other.
    """

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self._shown = False

    def look(self, waited_s: float, own: Collection[int]) -> tuple[str, ...]:
        """Look at a worker that waits.

        Args:
            waited_s: for so many seconds.
            own: the numbers of the executor's processes.

        Returns:
            What is to be noted with the result: nothing, or that times may be disturbed.
        """
        if waited_s < SHOWN_S or (self._shown and waited_s < PATIENCE_S - SHOWN_S):
            return ()
        keeper = holder_of(self._lock)
        # Workers of one executor wait for each other as a matter of course.
        if keeper is None or keeper.pid in own:
            return ()
        if not self._shown:
            self._shown = True
            _log.warning(waiting(keeper))
        return (disturbed(keeper),) if waited_s >= PATIENCE_S - SHOWN_S else ()
