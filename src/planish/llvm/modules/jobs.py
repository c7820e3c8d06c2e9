"""Which list is run on which functions next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planish.llvm.modules.lists import Passes, further_lists, shipped_lists

_MOST = 150
_OVERHEAD = 20.0
"""Instructions for which trying takes as long as it takes for a function at all."""
_LEAST = 6
"""Functions of fewer instructions have nothing to choose."""


@dataclass(frozen=True)
class Job:
    """A list, and functions that it is tried on together."""

    passes: Passes
    names: tuple[str, ...]


def jobs(sizes: Mapping[str, int]) -> Iterator[Job]:
    """Give what is to be tried, where most is expected for the time first; it never ends.

    Args:
        sizes: of each function, in instructions.
    """
    groups = _groups(sizes)
    if not groups:
        return
    lists = shipped_lists().first
    worth = [(saves * _share(group, sizes), passes, group) for passes, saves in lists[1:] for group in groups]
    worth.sort(key=lambda each: -each[0])
    yield from (Job(passes, group) for _, passes, group in worth)
    for passes in further_lists():
        yield from (Job(passes, group) for group in groups)


def _groups(sizes: Mapping[str, int]) -> list[tuple[str, ...]]:
    names = [name for name in sorted(sizes, key=lambda name: -sizes[name]) if sizes[name] >= _LEAST]
    return [tuple(names[begin : begin + _MOST]) for begin in range(0, len(names), _MOST)]


def _share(group: Sequence[str], sizes: Mapping[str, int]) -> float:
    """Tell how much of the time for a group goes into its code."""
    mean = sum(sizes[name] for name in group) / len(group)
    return mean / (mean + _OVERHEAD)
