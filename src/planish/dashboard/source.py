"""Stores that are shown: each is read by one connection, and looked at for changes."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from planish.core import StoreError
from planish.core.files import StrPath
from planish.store import Reader, open_store
from planish.store.opening import locate

Stamp = tuple[int, bool]
"""Values that differ after any change of a run; see `planish.store.Reader.stamps`."""

_LOCKED_S = 2.0
"""Another process's lock is waited for so long."""
_LOCKS_S = 1.0
"""Locks of runs are looked at so often: they show which runs were interrupted."""


@dataclass
class Source:
    """A store that is shown.

    All that reads the store may wait, and is called in a thread. A store that cannot be read leaves an error,
    and is opened again when it can be.

    Args:
        key: names it in addresses of pages.
        location: a file or a URL; None for the default store.
        label: what it is called; empty for what the store calls itself.
        error: why the store cannot be read now, in one line; empty where it can be.
        version: grows with each change.
        stamps: of all runs, the newest first.
    """

    key: str
    location: StrPath | None
    label: str = ""
    error: str = ""
    version: int = 0
    stamps: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    _reader: Reader | None = None
    _file: tuple[int, int] | None = None
    _changes: int | None = None
    _locks_at: float = 0.0
    _busy: threading.RLock = field(default_factory=threading.RLock)

    def open(self) -> None:
        """Open the store.

        Raises:
            StoreError: it cannot be read.
        """
        with self._busy:
            location = locate(self.location)
            # A server that is lost is tried again at each poll, and the page says so meanwhile.
            reader = open_store(self.location, read_only=True, timeout=_LOCKED_S, patience=0.0)
            try:
                self.stamps = reader.stamps()
                self._file = _identity(location) if isinstance(location, Path) else None
            except BaseException:
                reader.close()
                raise
            self.label = self.label or reader.label
            self._reader, self._changes = reader, None
            self.error, self.version = "", self.version + 1

    def close(self) -> None:
        """Close the store; harmless when called twice."""
        with self._busy:
            if self._reader is not None:
                with suppress(StoreError):
                    self._reader.close()
                self._reader = None

    @property
    def reader(self) -> Reader:
        """The open store.

        Raises:
            StoreError: it cannot be read now.
        """
        reader = self._reader
        if reader is None:
            raise StoreError(self.error or f"the store {self.label} is closed")
        return reader

    def poll(self) -> bool:
        """See whether the store has changed, in microseconds where it has not; return whether it has."""
        with self._busy:
            before, error = self.version, self.error
            try:
                self._find()
                if self._reader is None:
                    self.open()
                else:
                    self._look(self._reader)
            except StoreError as found:
                self.close()
                self.error = str(found)
                self.version += self.error != error
            return self.version != before

    def _find(self) -> None:
        """Close a file that is not the one that was opened; raise StoreError where there is none."""
        location = locate(self.location)
        if isinstance(location, Path):
            found = _identity(location)
            if found is None:
                raise StoreError(f"the store {self.label} is gone", "Put it back, or show another one.")
            if found != self._file:
                self.close()

    def _look(self, reader: Reader) -> None:
        changes, now = reader.changes(), time.monotonic()
        if changes is not None and changes == self._changes and now < self._locks_at:
            return
        stamps = reader.stamps()
        self._changes, self._locks_at = changes, now + _LOCKS_S
        if stamps != self.stamps:
            self.stamps, self.version = stamps, self.version + 1


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what distinguishes a file from another one of its name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
