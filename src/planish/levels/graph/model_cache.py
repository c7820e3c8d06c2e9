"""Rewritten ONNX models, in a cache that processes share."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import content_hash
from planish.core.disk_cache import DiskCache
from planish.levels.graph.feeds import Feed, make_feeds
from planish.levels.graph.model_protos import identity
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.rewriting import NEEDS_INPUTS, RewriteError, apply_pass
from planish.levels.graph.source import load_checked
from planish.sandbox.shared_cache import shared_cache

if TYPE_CHECKING:
    from onnx import ModelProto


CAPACITY = 1 << 30
"""Bytes of models that are kept in memory; those that were used longest ago go."""
_SEARCH_CAPACITY, _WHOLE_CAPACITY = 2 << 30, 4 << 30
"""Bytes of models on disk, as the search may fill them, and all: finalists of some 300 MB have the rest."""
_KEY = re.compile(rb"[0-9a-f]{32}")

Rewrites = tuple[str, ...]


# Programs are searched one after the other: of several, the oldest cache goes with its folder.
@lru_cache(maxsize=2)
def model_cache_of(_program: GraphProgram) -> DiskCache:
    """Return the cache of a program's rewritten models, which all processes of a search share."""
    return shared_cache(_SEARCH_CAPACITY, evicts=False)


def final_cache_of(program: GraphProgram) -> DiskCache:
    """Return the same cache, with room that is left for the models that are compared at the end."""
    return replace(model_cache_of(program), capacity=_WHOLE_CAPACITY)


@dataclass(frozen=True)
class RewrittenModel:
    """A file of a model, and the model's identity: equal keys mean equal models."""

    file: Path
    key: str


class Rewriter:
    """Applies rewriting passes to one model; lists that begin alike share their beginnings.

    A pass that changes nothing, but names and the order of nodes, leaves the model as it is.

    Args:
        cache: of models and their identities, which other processes may share.
        folder: where files are written that the cache has no room for; it is not removed.
        capacity: bytes of models that are kept in memory.
        apply: applies one pass, as `apply_pass` does.

    Attributes:
        original: the model as it came.

    Raises:
        ProgramError: the file was moved or changed.
    """

    def __init__(
        self,
        program: GraphProgram,
        cache: DiskCache,
        folder: Path,
        capacity: int = CAPACITY,
        apply: Callable[..., ModelProto] = apply_pass,
    ) -> None:
        self.original, self._apply = load_checked(program), apply
        self._program, self._cache, self._folder = program, cache, folder
        self._capacity, self._count = capacity, 0
        self._keys: dict[Rewrites, str] = {(): identity(self.original)}
        self._broken: dict[Rewrites, RewriteError] = {}
        self._models: OrderedDict[str, ModelProto] = OrderedDict()

    def model_key(self, rewrites: Sequence[str]) -> str:
        """Return the identity of the model after these passes; raises RewriteError where one fails."""
        wanted = tuple(rewrites)
        if wanted not in self._keys:
            key_file = f"{content_hash(' '.join(wanted))}.key"
            known = self._cache.get(key_file) or b""
            if _KEY.fullmatch(known):
                self._keys[wanted] = known.decode()
            else:
                self.model(wanted)
                self._cache.put(key_file, self._keys[wanted].encode())
        return self._keys[wanted]

    def rewritten(self, rewrites: Sequence[str]) -> RewrittenModel:
        """Return the file of the model after these passes; raises RewriteError where one fails.

        Where the cache has no room for it, it is there until the next call.
        """
        key = self.model_key(rewrites)
        # The user's own file: no copy of a large model is written.
        if key == self._keys[()]:
            return RewrittenModel(self._program.file, key)
        name = f"{key}.onnx"
        file = self._cache.find(name)
        if file is None:
            content = self.model(rewrites).SerializeToString()
            file = self._cache.put(name, content)
            if file is None:
                file = self._folder / "rewritten.onnx"
                file.write_bytes(content)
        return RewrittenModel(file, key)

    def model(self, rewrites: Sequence[str]) -> ModelProto:
        """Return the model after these passes, not to be changed; raises RewriteError where one fails."""
        wanted = tuple(rewrites)
        known = self._keys.get(wanted)
        if known == self._keys[()]:
            return self.original
        if known in self._models:
            self._models.move_to_end(known)
            return self._models[known]
        if wanted in self._broken:
            raise self._broken[wanted]
        before = self.model(wanted[:-1])
        try:
            after = self._apply(before, wanted[-1], *([self._feeds] if wanted[-1] in NEEDS_INPUTS else []))
        except RewriteError as error:
            # Kept, too: lists that begin with a failing one need not try it again.
            self._broken[wanted] = error
            raise
        # To hash large weights takes a while: not for a pass that returned the model that it was given.
        old = self.model_key(wanted[:-1])
        new = self._keys[wanted] = old if after is before else identity(after)
        # The same but for names: the model before is kept, so that what follows is shared.
        if new == old:
            return before
        models = self._models
        models[new] = after
        # The newest stays, however large it is.
        while len(models) > 1 and sum(each.ByteSize() for each in models.values()) > self._capacity:
            models.popitem(last=False)
        return after

    def new_file(self) -> Path:
        """Name a file that is not there yet."""
        self._count += 1
        return self._folder / f"{self._count}.onnx"

    @cached_property
    def _feeds(self) -> Sequence[Feed]:
        return make_feeds(self._program, self.original)
