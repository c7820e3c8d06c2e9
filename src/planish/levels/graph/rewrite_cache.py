"""Caches of rewritten models: one of a process, and a folder that several processes share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import content_hash
from planish.levels.graph.feeds import Feed, make_feeds
from planish.levels.graph.model_protos import identity
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.rewriting import NEEDS_INPUTS, RewriteError, apply_pass
from planish.levels.graph.source import load_checked
from planish.sandbox.scratch import share, write_whole

if TYPE_CHECKING:
    from onnx import ModelProto

SHARED_ROOM = 2 << 30
"""Bytes of models: the finalists of a model of some 300 MB."""


class ModelCache:
    """A folder of rewritten models of one program; it ends with the process, or the object, that made it.

    A copy that was sent to another process only looks at the folder, and adds to it.

    Args:
        room: bytes of models that it holds at most.
    """

    def __init__(self, room: int = SHARED_ROOM) -> None:
        self._room = room
        self.folder = share(self)

    def name(self, rewrites: Sequence[str]) -> str | None:
        """Return the name of the model after some passes; None where it is not known."""
        file = self._card(rewrites)
        return file.read_text(encoding="ascii") if file.exists() else None

    def keep_name(self, rewrites: Sequence[str], name: str) -> None:
        """Keep the name of the model after some passes."""
        write_whole(self._card(rewrites), name.encode("ascii"))

    def find(self, name: str) -> Path | None:
        """Return the file of a model; None where it is not there."""
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


ROOM = 1 << 30
"""Bytes of models that are kept in memory, and of files on disk; those that were needed longest ago go."""

Rewrites = tuple[str, ...]


@dataclass(frozen=True)
class MadeModel:
    """A file of a model.

    Args:
        file: where it is.
        name: the model's identity: equal names mean equal models.
    """

    file: Path
    name: str


class RewriteCache:
    """Applies rewriting passes to one model; lists that begin alike share their beginnings.

    A pass that changes nothing, but names and the order of nodes, leaves the model as it is.

    Args:
        program: the model.
        folder: where files are written; it is not removed.
        room: bytes of models, and of files, that are kept.
        shelf: where files are looked up and written instead, while it has room.

    Attributes:
        original: the model as it came.

    Raises:
        ProgramError: the file was moved or changed.
    """

    def __init__(
        self, program: GraphProgram, folder: Path, room: int = ROOM, shelf: ModelCache | None = None
    ) -> None:
        self.original = load_checked(program)
        self._program = program
        self._shelf = shelf
        self._folder, self._room, self._count = folder, room, 0
        first = identity(self.original)
        self._names: dict[Rewrites, str] = {(): first}
        self._broken: dict[Rewrites, RewriteError] = {}
        self._models: OrderedDict[str, ModelProto] = OrderedDict()
        self._files: OrderedDict[str, Path] = OrderedDict()
        self._first = MadeModel(program.file, first)

    def name(self, rewrites: Sequence[str]) -> str:
        """Name the model after these passes; raises RewriteError where one fails."""
        wanted = tuple(rewrites)
        if wanted not in self._names and self._shelf is not None:
            known = self._shelf.name(wanted)
            self._names |= {wanted: known} if known else {}
        if wanted not in self._names:
            self.model(wanted)
            if self._shelf is not None:
                self._shelf.keep_name(wanted, self._names[wanted])
        return self._names[wanted]

    def made(self, rewrites: Sequence[str]) -> MadeModel:
        """Return the file of the model after these passes; raises RewriteError where one fails."""
        name = self.name(rewrites)
        # The user's own file: no copy of a large model is written.
        if name == self._first.name:
            return self._first
        if self._shelf is not None and (file := self._shelf.find(name)) is not None:
            return MadeModel(file, name)
        if name not in self._files:
            content = self.model(rewrites).SerializeToString()
            if self._shelf is not None and (file := self._shelf.keep(name, content)) is not None:
                return MadeModel(file, name)
            self._make_room(len(content))
            self._files[name] = self.new_file()
            self._files[name].write_bytes(content)
        self._files.move_to_end(name)
        return MadeModel(self._files[name], name)

    def model(self, rewrites: Sequence[str]) -> ModelProto:
        """Return the model after these passes, not to be changed; raises RewriteError where one fails."""
        wanted = tuple(rewrites)
        known = self._names.get(wanted)
        if known == self._first.name:
            return self.original
        if known in self._models:
            self._models.move_to_end(known)
            return self._models[known]
        return self._extended(wanted)

    def new_file(self) -> Path:
        """Name a file that is not there yet."""
        self._count += 1
        return self._folder / f"{self._count}.onnx"

    def _extended(self, rewrites: Rewrites) -> ModelProto:
        """Apply the last pass to the model before it."""
        if rewrites in self._broken:
            raise self._broken[rewrites]
        before = self.model(rewrites[:-1])
        try:
            given = (self._feeds,) if rewrites[-1] in NEEDS_INPUTS else ()
            after = apply_pass(before, rewrites[-1], *given)
        except RewriteError as error:
            # Kept, too: lists that begin with a failing one need not try it again.
            self._broken[rewrites] = error
            raise
        # To hash large weights takes a while: not for a pass that gave back what it was given.
        name = self._names[rewrites[:-1]] if after is before else identity(after)
        self._names[rewrites] = name
        # The same but for names: the model before is kept, so that what follows is shared.
        if name == self._names[rewrites[:-1]]:
            return before
        self._models[name] = after
        # The newest stays, however large it is.
        while sum(model.ByteSize() for model in self._models.values()) > self._room and len(self._models) > 1:
            self._models.popitem(last=False)
        return after

    @cached_property
    def _feeds(self) -> Sequence[Feed]:
        return make_feeds(self._program, self.original)

    def _make_room(self, size: int) -> None:
        while self._files and sum(f.stat().st_size for f in self._files.values()) + size > self._room:
            self._files.popitem(last=False)[1].unlink()
