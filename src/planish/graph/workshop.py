"""The files of rewritten models, made once each; lives in a worker process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planish.graph.program import GraphProgram
from planish.graph.rewriting import identity, rewrite
from planish.graph.source import load_checked

if TYPE_CHECKING:
    from onnx import ModelProto

ROOM = 2 << 30
"""Bytes of rewritten models that are kept; the oldest go first."""


@dataclass(frozen=True)
class Made:
    """A model after some rewriting passes.

    Args:
        file: where it is.
        name: its identity: equal names mean equal models.
        size: bytes of the file.
    """

    file: Path
    name: str
    size: int


class Workshop:
    """Applies rewriting passes to one model; models of lists that begin alike are made from each other.

    Args:
        program: the model.
        folder: where files are written; it is not removed.
        room: bytes that all files may take.

    Attributes:
        original: the model as it came.

    Raises:
        ProgramError: the file was moved or changed.
    """

    def __init__(self, program: GraphProgram, folder: Path, room: int = ROOM) -> None:
        self.original = load_checked(program)
        self._folder = folder
        self._room, self._count = room, 0
        size = sum(tensor.ByteSize() for tensor in self.original.graph.initializer)
        self._first = Made(program.file, identity(self.original), max(size, program.file.stat().st_size))
        self._made: OrderedDict[tuple[str, ...], Made] = OrderedDict()

    def made(self, rewrites: Sequence[str]) -> Made:
        """Give the model after these passes; raises PassError where one fails."""
        wanted = tuple(rewrites)
        if not wanted:
            return self._first
        if wanted not in self._made:
            start = self._longest(wanted)
            model = rewrite(self._model(wanted[:start]), wanted[start:])
            self._keep(wanted, model)
        self._made.move_to_end(wanted)
        return self._made[wanted]

    def new_file(self) -> Path:
        """Name a file that is not there yet."""
        self._count += 1
        return self._folder / f"{self._count}.onnx"

    def model(self, rewrites: Sequence[str]) -> ModelProto:
        """Give the model itself, not to be changed; raises PassError where a pass fails."""
        self.made(rewrites)
        return self._model(tuple(rewrites))

    def _model(self, rewrites: tuple[str, ...]) -> ModelProto:
        import onnx

        return onnx.load(self._made[rewrites].file) if rewrites else self.original

    def _longest(self, rewrites: tuple[str, ...]) -> int:
        """Count the passes of the longest beginning that is made already."""
        return next(n for n in range(len(rewrites), -1, -1) if not n or rewrites[:n] in self._made)

    def _keep(self, rewrites: tuple[str, ...], model: ModelProto) -> None:
        content = model.SerializeToString()
        while self._made and sum(each.size for each in self._made.values()) + len(content) > self._room:
            self._made.popitem(last=False)[1].file.unlink()
        file = self.new_file()
        file.write_bytes(content)
        self._made[rewrites] = Made(file, identity(model), len(content))
