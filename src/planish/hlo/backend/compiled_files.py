"""What was compiled, as files that the processes of one run share."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from planish.isolation.scratch import share, write_whole

_NAME = sha256().digest_size
ROOM = 256 << 20
"""Bytes of compiled modules: some 300 of MobileNet's size."""


class CompiledFiles:
    """A folder of compiled modules; it ends with the process, or the object, that made it.

    A copy that was sent to another process only looks at the folder, and adds to it. To read a module takes a
    twentieth of the time that compiling it takes, and at the end of a run each finalist is timed in several
    fresh processes.

    Args:
        room: bytes that it holds at most; the oldest files go.

    Attributes:
        folder: with a file for each module.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self.folder = share(self)

    def find(self, text: str, cores: int) -> bytes | None:
        """Give what a text was compiled to, for so many cores; None where it is not there, or damaged."""
        with suppress(OSError):  # the folder may be gone, or on another machine
            content = self._file(text, cores).read_bytes()
            name, code = content[:_NAME], content[_NAME:]
            # XLA ends the process where code is damaged.
            return code if sha256(code).digest() == name else None
        return None

    def keep(self, text: str, cores: int, code: bytes) -> None:
        """Keep what a text was compiled to; a folder that is full, or gone, keeps nothing."""
        with suppress(OSError):
            content = sha256(code).digest() + code
            self._make_room(len(content))
            write_whole(self._file(text, cores), content)

    def _make_room(self, size: int) -> None:
        # Looked up each time, for other processes add to the folder.
        files = {each: each.stat() for each in self.folder.glob("*.xla")}
        full = sum(found.st_size for found in files.values()) + size - self._room
        for file in sorted(files, key=lambda each: files[each].st_mtime):
            if full <= 0:
                return
            file.unlink(missing_ok=True)
            full -= files[file].st_size

    def _file(self, text: str, cores: int) -> Path:
        return self.folder / f"{sha256(f'{cores} {text}'.encode()).hexdigest()}.xla"
