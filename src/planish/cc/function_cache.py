"""What was found for functions, by their content and the toolchain, whatever file they stand in."""

from __future__ import annotations

import fcntl
import glob
import json
import os

from planish.cc.object_cache import ObjectCache, digest
from planish.cc.whole_file import share

_LARGEST = 1 << 20
"""Bytes of one of the 256 files of each user."""
_CHECK = 16


class FunctionMemory:
    """Lines of text in 256 files; each user appends to files of their own, and reads everybody's.

    A line has a checksum: what a full disk or a dying machine cut short is passed over.

    Args:
        cache: whose folder it uses; trouble is noted there.
    """

    def __init__(self, cache: ObjectCache) -> None:
        self._cache = cache
        self._known: dict[str, dict[str, str]] = {}

    def get(self, key: str) -> str | None:
        """Give the value of a key; None where there is none."""
        return self._shard(_shard(key)).get(key)

    def put(self, key: str, value: str) -> None:
        """Keep a value in place of the key's old one."""
        shard = _shard(key)
        self._shard(shard)[key] = value
        text = json.dumps([key, value])
        try:
            # It begins a line of its own, also behind one that was cut short.
            self._append(shard, f"\n{_check(text)} {text}\n".encode())
        except OSError as error:
            self._cache.note(f"cannot be written: {error}")

    def _shard(self, shard: str) -> dict[str, str]:
        if shard not in self._known:
            self._known[shard] = known = {}
            for path in sorted(glob.glob(f"{glob.escape(self._cache.folder)}/functions/{shard}-*")):
                known.update(_read(path))
        return self._known[shard]

    def _append(self, shard: str, line: bytes) -> None:
        path = f"{self._cache.folder}/functions/{shard}-{os.geteuid()}"
        self._cache.make_folder(os.path.dirname(path))
        with open(path, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not file.tell():
                share(file.fileno(), os.path.dirname(path))
            if file.tell() > _LARGEST:
                os.unlink(path)  # old lists go; the next one begins a new file
            file.write(line)


def _shard(key: str) -> str:
    return digest(key.encode())[:2]


def _check(text: str) -> str:
    return digest(text.encode())[:_CHECK]


def _read(path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                check, _, text = line.rstrip("\n").partition(" ")
                if check == _check(text):
                    key, value = json.loads(text)
                    found[key] = value
    except OSError:
        pass  # another user's who keeps it closed: their functions are searched again
    return found
