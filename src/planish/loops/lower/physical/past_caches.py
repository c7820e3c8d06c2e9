"""Which results are written past the caches: large ones, of which nothing is read again."""

from __future__ import annotations

from planish.loops.lower.physical.allocate import Analyser
from planish.loops.lower.physical.paths import Site
from planish.loops.lower.physical.region import LINE

PAST_FROM = 1 << 26
"""Bytes of a result from which on no usual cache would keep it for its reader."""


def past_caches(analyser: Analyser) -> frozenset[str]:
    """Name the outputs whose stores go past the caches.

    An ordinary store first reads the line that it writes to: of what `A + B` moves, that is a quarter. Stores
    past the caches need whole vectors at multiples of their size, and pay where a line is filled at once.

    Args:
        analyser: of what is executed.
    """
    large, vectors = analyser.buffers_from(PAST_FROM), analyser.vectors
    outputs = {b.name: large[b.name] for b in analyser.tree.buffers if b.kind == "output" and b.name in large}
    return frozenset(
        name
        for site in (analyser.named_once(outputs) if outputs else ())
        if _fills_lines(site, outputs[name := site.leaf.target.buffer], vectors.lanes)
    )


def _fills_lines(site: Site, itemsize: int, lanes: int) -> bool:
    """Tell whether the innermost loop walks the target in sequence, from whole vectors to whole vectors."""
    target, path = site.leaf.target, site.path
    if site.leaf.reduce or not path or target.stride.get(path[-1].id) != 1 or target.offset:
        return False
    # The loops around a vector loop of the same axis move by whole lines, which are written at once.
    units = [LINE if loop.axis == path[-1].axis else lanes * itemsize for loop in path[:-1]]
    moves = [target.stride.get(loop.id, 0) * itemsize for loop in path[:-1]]
    return not any(move % unit for move, unit in zip(moves, units, strict=True))
