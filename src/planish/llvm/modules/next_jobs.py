"""Which list is run on which functions next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from planish.llvm.modules.chunks import ModuleChunk
from planish.llvm.modules.function_lists import Passes, further_lists, shipped_lists

_OVERHEAD = 20.0
"""Instructions for which trying takes as long as it takes for a function at all."""


@dataclass(frozen=True)
class ListJob:
    """A list, and the part of a module that it is tried on."""

    passes: Passes
    chunk: ModuleChunk


def jobs(chunks: Sequence[ModuleChunk], known: Sequence[Passes] = (), tried: int = 0) -> Iterator[ListJob]:
    """Give what is to be tried, where most is expected for the time first; it never ends.

    Args:
        chunks: of the module.
        known: lists that were good before; they come first.
        tried: how many of the others were tried before.
    """
    if not chunks:
        return
    yield from (_job(passes, chunk) for passes in known for chunk in chunks)
    yield from islice(_others(chunks), tried, None)


def _others(chunks: Sequence[ModuleChunk]) -> Iterator[ListJob]:
    lists = shipped_lists().first
    # Without the first: the module was made with it.
    worth = [(saves * _share(chunk), passes, chunk) for passes, saves in lists[1:] for chunk in chunks]
    worth.sort(key=lambda each: -each[0])
    yield from (_job(passes, chunk) for _, passes, chunk in worth)
    for passes in further_lists():
        yield from (_job(passes, chunk) for chunk in chunks)


def _job(passes: Passes, chunk: ModuleChunk) -> ListJob:
    """Leave out what breaks one function of a part: the list would be lost for all others too."""
    return ListJob(tuple(text for text in passes if text not in chunk.breaking), chunk)


def _share(chunk: ModuleChunk) -> float:
    """Tell how much of the time for a part goes into its code."""
    mean = chunk.instructions / len(chunk.names)
    return mean / (mean + _OVERHEAD)
