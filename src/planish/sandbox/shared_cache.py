"""Disk caches that a process shares with its workers, and that end with it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from planish.core.disk_cache import CAPACITY, DiskCache
from planish.sandbox.scratch import shared_folder


@dataclass(frozen=True)
class SharedCache(DiskCache):
    """Cache that a process shares with its workers; `shared_cache` makes it.

    A copy in another process of this machine is of the same folder; one that is unpickled within
    `from_elsewhere` is of a new folder here, and empty.
    """

    def __reduce__(self) -> tuple[Callable[..., SharedCache], tuple[Path, int, bool]]:
        return _unpickled_cache, (self.folder, self.capacity, self.evicts)


_from_elsewhere = ContextVar("_from_elsewhere", default=False)


@contextmanager
def from_elsewhere() -> Generator[None]:
    """Make folders here for shared caches that are unpickled within the block: another machine sent them."""
    token = _from_elsewhere.set(True)
    try:
        yield
    finally:
        _from_elsewhere.reset(token)


def _unpickled_cache(folder: Path, capacity: int, evicts: bool) -> SharedCache:
    if _from_elsewhere.get():
        return shared_cache(capacity, evicts=evicts)
    return SharedCache(folder, capacity, evicts)


def shared_cache(capacity: int = CAPACITY, *, evicts: bool = True) -> SharedCache:
    """Make a cache that this process shares with its workers, in a folder beneath `shared_folder`.

    The folder ends with the cache, or with this process; copies of the cache in workers do not end it.

    Args:
        capacity, evicts: as `DiskCache` takes them.
    """
    cache = SharedCache(Path(tempfile.mkdtemp(dir=shared_folder())), capacity, evicts)
    weakref.finalize(cache, shutil.rmtree, cache.folder, ignore_errors=True)
    return cache
