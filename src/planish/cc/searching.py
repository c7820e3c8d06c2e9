"""Searching for a smaller module, in a child: what crashes or hangs there costs the improvement alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from planish.cc.function_cache import FunctionMemory
from planish.cc.object_cache import ObjectCache
from planish.core import PlanishError
from planish.sandbox.fork import ForkedChild, Send, wait
from planish.sandbox.plain_data import DataError, dumps, loads
from planish.sandbox.scratch import Scratch

_MEMORY_BYTES = 8 << 30


class SearchError(Exception):
    """There is no result; the message is for the user."""


class ReadsFilesError(Exception):
    """An object depends on files that are not known: only clang can make it."""


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
        seconds: that were spent on it by now; fewer than were asked for where load cut the search short.
        trouble: what is wrong with the cache; empty: nothing.
        reading_directive: of assembly, by which the object may depend on more files; empty: there is none.
    """

    bitcode: bytes
    passes: Mapping[str, tuple[str, ...]]
    evaluations: int
    seconds: float
    trouble: str
    reading_directive: str = ""


_ANSWER = FoundBuild | str


def search(asked: Asked, cache: ObjectCache, scratch: Scratch) -> FoundBuild:
    """Search in a child.

    Raises:
        SearchError: it fails, crashes, or does not end.
    """
    child = ForkedChild(partial(_work, asked, cache), _MEMORY_BYTES, scratch.path)
    try:
        answer = _answer(child, asked.patience_s)
    except (SearchError, KeyboardInterrupt):
        child.kill()
        raise
    end = child.end()
    if isinstance(answer, FoundBuild):
        if answer.reading_directive:
            raise ReadsFilesError(reads_files(answer.reading_directive))
        return answer
    raise SearchError(answer if isinstance(answer, str) else f"the search died: {end.cause}")


def reads_files(directive: str) -> str:
    """Say why clang has to make an object each time."""
    return f"its assembly has '{directive}', which may read files"


def _answer(child: ForkedChild, seconds: float) -> FoundBuild | str | None:
    """Wait for a child's answer; None where it dies, or sends something else.

    Raises:
        SearchError: it does not come in time.
    """
    deadline = time.monotonic() + seconds
    with suppress(EOFError):
        while wait(child.ends, max(0.0, deadline - time.monotonic())):
            for message in child.receive():
                try:
                    return loads(message, _ANSWER)
                except DataError as error:
                    child.reject(error)
        raise SearchError(f"the search did not end within {seconds:.0f} s")
    return None


def _work(asked: Asked, cache: ObjectCache, send: Send) -> None:
    """Search, and send what comes of it, or why nothing does."""
    try:
        send(dumps(_found(asked, cache), _ANSWER))
    except (PlanishError, ImportError) as error:
        send(dumps(str(error), _ANSWER))


def _found(asked: Asked, cache: ObjectCache) -> FoundBuild:
    from planish.llvm.modules import make_smaller, reading_directive_of

    if directive := reading_directive_of(asked.bitcode):
        return FoundBuild(b"", {}, 0, asked.seconds, cache.trouble, directive)
    found = make_smaller(asked.bitcode, asked.seconds, asked.evaluations, FunctionMemory(cache))
    if found is None:
        return FoundBuild(b"", {}, 0, asked.seconds, cache.trouble)
    return FoundBuild(found.bitcode, found.passes(), found.evaluations, found.seconds, cache.trouble)
