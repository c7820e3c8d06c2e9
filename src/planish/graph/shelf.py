"""Rewritten models that several processes share, one after the other."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from planish.core import content_hash
from planish.measure.scratch import Scratch


class Shelf:
    """A folder of rewritten models of one program; it ends with the process, or the object, that made it.

    A copy that was sent to another process only looks at the folder, and adds to it.
    """

    def __init__(self) -> None:
        scratch = Scratch()
        self.folder = scratch.path
        weakref.finalize(self, scratch.remove)

    def name(self, rewrites: Sequence[str]) -> str | None:
        """Give the name of the model after some passes; None where it is not known."""
        file = self._card(rewrites)
        return file.read_text(encoding="ascii") if file.exists() else None

    def keep_name(self, rewrites: Sequence[str], name: str) -> None:
        """Keep the name of the model after some passes."""
        _write(self._card(rewrites), name.encode("ascii"))

    def file(self, name: str, make: Callable[[], bytes]) -> Path:
        """Give the file of a model; it is made where it is not there."""
        file = self.folder / f"{name}.onnx"
        if not file.exists():
            _write(file, make())
        return file

    def _card(self, rewrites: Sequence[str]) -> Path:
        return self.folder / f"{content_hash(' '.join(rewrites))}.name"


def _write(file: Path, content: bytes) -> None:
    """Write a file so that it is whole or not there, whoever ends this process."""
    part = file.with_suffix(".part")
    part.write_bytes(content)
    part.replace(file)
