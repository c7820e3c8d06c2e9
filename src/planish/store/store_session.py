"""One connection to the store, and transactions on it."""

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import RLock
from typing import TypeVar

from sqlalchemy import Connection

from planish.core import StoreError
from planish.store.delayed_signals import uninterrupted
from planish.store.failures import LostConnectionError, explained
from planish.store.locks import RunLocks

PATIENCE_S = 120.0
"""Seconds that a lost connection is waited for: a server that is started again takes less."""
SHOWN_S = 1.0
"""A wait is shown once it is so long."""
_PAUSE_S = 0.05
_PAUSE_MOST_S = 2.0

_T = TypeVar("_T")
_log = logging.getLogger("planish")


def persist(attempt: Callable[[bool], _T]) -> _T:
    """Try until the server answers again, for `PATIENCE_S` at most; the pauses grow, and the wait is shown.

    Args:
        attempt: what is tried; it is told whether it was tried before.

    Raises:
        StoreError: the connection stays lost, or what the attempt raises.
    """
    pause, lost, again, shown = _PAUSE_S, 0.0, False, False
    while True:
        try:
            found = attempt(again)
        except LostConnectionError:
            lost = lost or time.monotonic()
            left = lost + PATIENCE_S - time.monotonic()
            if pause > left:
                raise
            if not shown and time.monotonic() - lost >= SHOWN_S:
                _log.warning("The store does not answer; waiting, at most %.0f s", left)
                shown = True
        else:
            if shown:
                _log.warning("The store answers again; it goes on")
            return found
        time.sleep(pause)
        pause, again = min(2 * pause, _PAUSE_MOST_S), True


class StoreSession:
    """A connection that threads may share: one transaction at a time.

    Args:
        connection: opened, with nothing begun.
        locks: the locks of runs.
        label: the store, as it is named to people.
        read_only: refuse to write.
    """

    def __init__(self, connection: Connection, locks: RunLocks, label: str, read_only: bool) -> None:
        self.locks = locks
        self.label = label
        self._connection = connection
        self._read_only = read_only
        self._busy = RLock()

    def read(self, action: Callable[[Connection], _T]) -> _T:
        """Read in one transaction; a connection that is lost is made again.

        Raises:
            StoreError: the store cannot be read.
        """

        def attempt(again: bool) -> _T:
            del again
            with self.reading() as connection:
                return action(connection)

        return persist(attempt)

    def write(self, action: Callable[[Connection, bool], _T]) -> _T:
        """Write in one transaction; a connection that is lost is made again.

        Args:
            action: writes; it is told whether it was tried before, for then it may have been stored already.

        Raises:
            StoreError: the store cannot be written.
        """

        def attempt(again: bool) -> _T:
            with self.writing() as connection:
                return action(connection, again)

        return persist(attempt)

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """See one state of the store throughout.

        Raises:
            StoreError: it cannot be read.
        """
        with self._transaction("BEGIN") as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield connection

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """Write all or nothing; it is stored when the block has ended.

        Raises:
            StoreError: it cannot be written.
        """
        if self._read_only:
            raise StoreError(f"the store {self.label} was opened for reading only", "Open it for writing.")
        # SQLite waits for another writer only here: a lock wanted later would be refused at once.
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def close(self) -> None:
        """Give all locks back and end the connection; harmless when called twice."""
        with self._busy:
            self.locks.close()
            self._connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Generator[Connection]:
        with uninterrupted(), self._busy, explained(self.label, connected=True):
            self._connection.info["begin"] = begin
            with self._connection.begin():
                yield self._connection
