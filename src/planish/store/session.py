"""One connection to the store, and transactions on it."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import RLock

from sqlalchemy import Connection

from planish.core import StoreError
from planish.store.failures import explained
from planish.store.interrupts import uninterrupted
from planish.store.locks import RunLocks


class Session:
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

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """See one state of the store throughout.

        Raises:
            StoreError: it cannot be read.
        """
        with self._transaction("BEGIN") as connection:
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
        with uninterrupted(), self._busy, explained(self.label):
            self._connection.info["begin"] = begin
            with self._connection.begin():
                yield self._connection
