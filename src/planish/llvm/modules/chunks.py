"""A module cut into parts of few functions, so that what is tried on some costs nothing for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from planish.llvm.backend.capi.module import CModule
from planish.llvm.modules.trying import keep_only
from planish.llvm.passes.breaking import MERGES, within

LEAST = 6
"""Functions of fewer instructions have nothing to choose."""
_MOST, _MOST_INSTRUCTIONS = 150, 5000


@dataclass(frozen=True)
class ModuleChunk:
    """Some functions of a module: all others are declarations.

    Args:
        module: it.
        names: of the functions.
        instructions: that they have together.
        breaking: passes that would break one of them.
    """

    module: CModule
    names: tuple[str, ...]
    instructions: int
    breaking: frozenset[str] = frozenset()


def cut(module: CModule, counts: Mapping[str, int], held: ExitStack) -> list[ModuleChunk]:
    """Cut a module.

    Args:
        module: it; it is not changed.
        counts: instructions of the functions that are wanted.
        held: closes the parts.

    Returns:
        The parts, the one with the largest functions first.
    """
    wanted = sorted((name for name in counts if counts[name] >= LEAST), key=lambda name: -counts[name])
    return list(_halves(module, list(_groups(wanted, counts)), counts, held)) if wanted else []


def _groups(names: Sequence[str], counts: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    group: list[str] = []
    size = 0
    for name in names:
        if group and (len(group) == _MOST or size + counts[name] > _MOST_INSTRUCTIONS):
            yield tuple(group)
            group, size = [], 0
        group.append(name)
        size += counts[name]
    yield tuple(group)


def _halves(
    module: CModule, groups: list[tuple[str, ...]], counts: Mapping[str, int], held: ExitStack
) -> Iterator[ModuleChunk]:
    """Cut by halves: each step copies what is left of the module, and not the whole."""
    part = module.clone()
    held.callback(part.close)
    keep_only(part, {name for group in groups for name in group})
    if len(groups) == 1:
        (names,) = groups
        kept = within([MERGES], part.text())
        yield ModuleChunk(
            part, names, sum(counts[name] for name in names), frozenset([MERGES]).difference(kept)
        )
        return
    middle = len(groups) // 2
    yield from _halves(part, groups[:middle], counts, held)
    yield from _halves(part, groups[middle:], counts, held)
    part.close()
