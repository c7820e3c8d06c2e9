"""Rewritten models that several processes share, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planish.core import content_hash
from planish.sandbox.scratch import share, write_whole

ROOM = 2 << 30
"""Bytes of models: the finalists of a model of some 300 MB."""


class ModelCache:
    """A folder of rewritten models of one program; it ends with the process, or the object, that made it.

    A copy that was sent to another process only looks at the folder, and adds to it.

    Args:
        room: bytes of models that it holds at most.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self.folder = share(self)

    def name(self, rewrites: Sequence[str]) -> str | None:
        """Give the name of the model after some passes; None where it is not known."""
        file = self._card(rewrites)
        return file.read_text(encoding="ascii") if file.exists() else None

    def keep_name(self, rewrites: Sequence[str], name: str) -> None:
        """Keep the name of the model after some passes."""
        write_whole(self._card(rewrites), name.encode("ascii"))

    def find(self, name: str) -> Path | None:
        """Give the file of a model; None where it is not there."""
        file = self._file(name)
        return file if file.exists() else None

    def keep(self, name: str, content: bytes) -> Path | None:
        """Keep a model as a file; None where there is no room for it."""
        # Looked up each time, for other processes add to the folder.
        if sum(each.stat().st_size for each in self.folder.glob("*.onnx")) + len(content) > self._room:
            return None
        write_whole(self._file(name), content)
        return self._file(name)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.onnx"

    def _card(self, rewrites: Sequence[str]) -> Path:
        return self.folder / f"{content_hash(' '.join(rewrites))}.name"
