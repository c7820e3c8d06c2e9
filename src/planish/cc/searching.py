"""Searching for a smaller module, in a child: what crashes or hangs there costs the improvement alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait

from planish.cc.function_cache import FunctionMemory
from planish.cc.object_cache import ObjectCache
from planish.core import PlanishError
from planish.isolation.fork import ForkedChild
from planish.isolation.scratch import Scratch

_MEMORY_BYTES = 8 << 30


class SearchError(Exception):
    """There is no result; the message is for the user."""


@dataclass(frozen=True)
class Asked:
    """A search.

    Args:
        bitcode: unoptimised.
        seconds: of the processor, at most, apart from making the module once.
        evaluations: of lists on functions; None: no limit.
        patience_s: after which the child is killed.
    """

    bitcode: bytes
    seconds: float
    evaluations: int | None
    patience_s: float


@dataclass(frozen=True)
class FoundBuild:
    """What it gave.

    Args:
        bitcode: improved; empty where nothing else can be made.
        passes: function to the list that it has of its own.
        evaluations: lists that were run on functions.
        trouble: what is wrong with the cache; empty: nothing.
    """

    bitcode: bytes
    passes: Mapping[str, tuple[str, ...]]
    evaluations: int
    trouble: str


def search(asked: Asked, cache: ObjectCache, scratch: Scratch) -> FoundBuild:
    """Search in a child.

    Raises:
        SearchError: it fails, crashes, or does not end.
    """
    child = ForkedChild(partial(_work, asked, cache), _MEMORY_BYTES, scratch.path)
    try:
        if not wait(child.ends, asked.patience_s):
            child.kill()
            raise SearchError(f"the search did not end within {asked.patience_s:.0f} s")
        try:
            answer = child.receive()
        except (EOFError, OSError):
            answer = None
    except KeyboardInterrupt:
        child.kill()
        raise
    end = child.end()
    if isinstance(answer, FoundBuild):
        return answer
    raise SearchError(answer if isinstance(answer, str) else f"the search died: {end.cause}")


def _work(asked: Asked, cache: ObjectCache, sends: Connection) -> None:
    """Search, and send what comes of it, or why nothing does."""
    with closing(sends):
        try:
            sends.send(_found(asked, cache))
        except (PlanishError, ImportError) as error:
            sends.send(str(error))


def _found(asked: Asked, cache: ObjectCache) -> FoundBuild:
    from planish.llvm.modules import make_smaller

    found = make_smaller(asked.bitcode, asked.seconds, asked.evaluations, FunctionMemory(cache))
    if found is None:
        return FoundBuild(b"", {}, 0, cache.trouble)
    return FoundBuild(found.bitcode, found.passes(), found.evaluations, cache.trouble)
