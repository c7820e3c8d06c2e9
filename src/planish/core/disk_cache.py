"""Disk cache: files by key in one folder, which several processes share."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planish.core.files import cache_folder, read_regular, replacing

CAPACITY = 256 << 20


@dataclass(frozen=True)
class DiskCache:
    """A cache of files, each of which is there whole or not at all.

    Processes may read and write it at the same time; a copy that is sent to another process is of the same
    folder. What cannot be read counts as not there, and where nothing can be written, as on a full disk,
    nothing is kept. An entry is not brought to the disk at once: a caller that keeps a folder beyond a power
    cut checks what it reads.

    Args:
        folder: it is there; processes in a sandbox may have to be allowed to write to it.
        capacity: bytes of all entries.
        evicts: whether the oldest entries are removed where room is lacking; else what does not fit is not
            kept, so that a file that `find` returned stays.
    """

    folder: Path
    capacity: int = CAPACITY
    evicts: bool = True

    @staticmethod
    def of_user(name: str) -> DiskCache:
        """Return a persistent cache in the user's cache folder.

        Args:
            name: of the folder.

        Raises:
            PlanishError: as `cache_folder`.
        """
        return DiskCache(cache_folder(name))

    def get(self, key: str) -> bytes | None:
        """Return the content of an entry; None where it is not there."""
        file = self.find(key)
        with suppress(OSError):
            return None if file is None else read_regular(file)
        return None

    def find(self, key: str) -> Path | None:
        """Return the file of an entry; None where it is not there."""
        file = self.folder / key
        with suppress(OSError):
            # No link: processes in a sandbox write to the folder, and could name any file.
            return file if stat.S_ISREG(file.lstat().st_mode) else None
        return None

    def put(self, key: str, content: bytes) -> Path | None:
        """Keep an entry.

        Args:
            key: a file name.
            content: replaces what is there.

        Returns:
            Its file; None where there is no room, or it cannot be written.
        """
        with suppress(OSError):
            if self._make_room(len(content)):
                with replacing(self.folder / key, durable=False) as part:
                    part.write_bytes(content)
                return self.folder / key
        return None

    def get_json(self, key: str) -> Any:
        """Return an entry that `put_json` stored; None where it is missing or damaged."""
        with suppress(ValueError):
            return json.loads(self.get(key) or b"")
        return None

    def put_json(self, key: str, data: object) -> None:
        """Store a value as JSON."""
        self.put(key, json.dumps(data).encode())

    def _make_room(self, size: int) -> bool:
        """Make room for a number of bytes by removing old entries; return whether there is enough."""
        # Looked up each time, for other processes add to the folder.
        with os.scandir(self.folder) as entries:
            found = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        lacking = sum(each.st_size for each, _ in found) + size - self.capacity
        for each, path in sorted(found, key=lambda entry: entry[0].st_mtime):
            if lacking <= 0 or not self.evicts:
                break
            with suppress(FileNotFoundError):  # another process removed it
                Path(path).unlink()
            lacking -= each.st_size
        return lacking <= 0
