"""The knobs that make loops: the vector axis, the register tile, the reduction, the tiles of the caches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planish.loops.ir.schedule import loop_text
from planish.loops.space.estimate import RegisterTile, cycles, tiles
from planish.loops.space.facts import Facts
from planish.loops.space.knob import Knob, KnobContext, KnobOption, Options
from planish.loops.space.memory_costs import REDUCE_TILES, slab, streamed
from planish.loops.steps import LoopStep, Reorder, Split, Unroll, Vectorize

TILES_MAX = 80
"""Register tiles that are offered for one vector axis: those of the fewest cycles by estimate."""
MEETS = 4.0
"""How many times as long a nest takes whose vectors meet those of the next iteration in elements."""
UNROLLS = (2, 4, 8)
CACHE_TILES = (2, 4, 8, 16)
STREAM_ROWS = (8, 16)
"""Rows that are read side by side where a matrix is streamed, the first guess first."""


class Tiling:
    """Makes the knobs of one nest, the main one or, inside some of its loops, another.

    Args:
        facts: of the nest and the target.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._tiles: dict[str, dict[str, tuple[RegisterTile, float]]] = {}
        self._options: dict[str, Options] = {}

    def knobs(self) -> Iterator[Knob]:
        """List the main nest's knobs, in the order of their steps."""
        yield Knob("vector", self._vector, len(self.facts.size), lambda c, name: replace(c, vector=name))
        yield Knob("tile", self.tile, TILES_MAX, self.tiled)
        yield Knob("unroll", unroll, len(UNROLLS) + 2)
        yield Knob("reduce", reduce, len(REDUCE_TILES) + len(STREAM_ROWS) + 1)
        for axis in self.facts.parallel_axes:
            yield Knob(f"cache {axis}", lambda c, a=axis: _cache(c, a), len(CACHE_TILES) + 1)

    def offered(self, vector: str) -> dict[str, tuple[RegisterTile, float]]:
        """Name to the best register tiles of a vector axis and their cycles, the best first."""
        if vector not in self._tiles:
            whole = RegisterTile((), vector, self.facts.size[vector])
            legal = [found for found in tiles(self.facts, vector) if _is_legal(self.facts, found[0])]
            # A knob offers one alternative at least, and an axis as a whole is always legal.
            meets = 1.0 if self.facts.apart([vector]) else MEETS
            best = legal[:TILES_MAX] or [(whole, meets * cycles(self.facts, whole))]
            self._tiles[vector] = {str(tile): (tile, cycles) for tile, cycles in best}
        return self._tiles[vector]

    def fewest(self) -> dict[str, float]:
        """Each axis, to the cycles of its best register tile as the vector axis."""
        return {axis: next(iter(self.offered(axis).values()))[1] for axis in self.facts.size}

    def _vector(self, context: KnobContext) -> Options:
        """Offer every axis; one whose best register tile takes fewer cycles is more plausible."""
        del context
        cycles = self.fewest()
        best = min(cycles.values())
        return {axis: KnobOption((Vectorize(axis),), (best / n) ** 4) for axis, n in cycles.items()}

    def tile(self, context: KnobContext) -> Options:
        """Offer register tiles, with the reduction around and all else outside; each order of loops once."""
        vector = context.vector
        if vector not in self._options:
            offered = self.offered(vector).values()
            best = min(cycles for _, cycles in offered)
            found: dict[tuple[LoopStep, ...], tuple[str, KnobOption]] = {}
            for tile, cycles in offered:
                steps = _tile_steps(self.facts, tile)
                # Different tiles may make the same loops: the best of them comes first, and stays.
                found.setdefault(steps, (str(tile), KnobOption(steps, (best / cycles) ** 8)))
            self._options[vector] = dict(found.values())
        return self._options[vector]

    def tiled(self, context: KnobContext, name: str) -> KnobContext:
        """Note which register tile was chosen."""
        return replace(context, tile=self.offered(context.vector)[name][0])


def _is_legal(facts: Facts, tile: RegisterTile) -> bool:
    sides = (*tile.rows, (tile.vector, tile.width))
    return facts.apart(axis for axis, _ in sides) and all(
        n == facts.size[axis] or facts.fits(axis, n) for axis, n in sides
    )


def _tile_steps(facts: Facts, tile: RegisterTile) -> tuple[LoopStep, ...]:
    axes = (*tile.rows, (tile.vector, tile.width))
    part = {axis: n for axis, n in axes if n < facts.size[axis]}
    inside = [(axis, 1) for axis, _ in axes]
    # An axis that is split has its outer part here, one that is not is outside as a whole.
    outer = [(axis, part.get(axis, 1)) for axis in facts.parallel_axes]
    reduced = [(axis, 1) for axis in facts.reduced_axes if axis != tile.vector]
    if tile.vector in facts.reduced and tile.vector in part:
        reduced.append((tile.vector, tile.width))
    # The reduction is around the register tile, whose results stay in registers through all of it.
    order = (*(loop for loop in outer if loop not in inside), *reduced, *inside)
    nest = facts.nest_name
    splits = tuple(Split(axis, n, nest) for axis, n in part.items())
    return (*splits, Reorder(tuple(map(loop_text, order)), nest)) if len(order) > 1 else splits


def unroll(context: KnobContext) -> Options:
    """Offer to unroll the innermost reduction loop around the register tile, wholly or in part."""
    options = {"none": KnobOption((), 1.0)}
    axes = [a for a in context.facts.reduced_axes if a != context.tile.vector]
    nest = context.facts.nest_name
    if axes:
        axis, extent = axes[-1], context.facts.size[axes[-1]]
        if extent <= UNROLLS[-1]:
            options["all"] = KnobOption((Unroll(axis, nest),), 0.1)
        for factor in UNROLLS:
            if context.facts.fits(axis, factor):
                options[str(factor)] = KnobOption((Split(axis, factor, nest), Unroll(axis, nest)), 0.1)
    return options


def reduce(context: KnobContext) -> Options:
    """Offer to split the longest reduction for the cache, with the tiles around the other reductions."""
    options = {"none": KnobOption((), 1.0)}
    facts = context.facts
    axes = [a for a in facts.reduced_axes if a != context.tile.vector]
    if axes:
        axis = max(axes, key=lambda a: facts.size[a])
        inner = [loop for loop in context.order if loop[0] in axes]
        rows = STREAM_ROWS if streamed(facts, context.tile.vector) == axis else ()
        good = {(axis, STREAM_ROWS[0]), slab(facts, context.tile.vector)}
        taken = [step for name, step in inner if name == axis]  # the axis may be unrolled by as many
        for factor in (*rows, *REDUCE_TILES):
            if facts.fits(axis, factor) and factor not in taken:
                # A nest inside loops of another one may have larger steps of the axis around it: they stay.
                rest = [loop_text(loop) for loop in inner if loop[0] != axis or loop[1] < factor]
                order, nest = (loop_text((axis, factor)), *rest), facts.nest_name
                weight = 2.0 if (axis, factor) in good else 0.5 if factor in rows else 0.15
                options[str(factor)] = KnobOption((Split(axis, factor, nest), Reorder(order, nest)), weight)
    return options


def _cache(context: KnobContext, axis: str) -> Options:
    """Offer to group the register tiles of an axis."""
    options = {"none": KnobOption((), 1.0)}
    step = next((step for name, step in context.outer if name == axis), None)
    if step is not None:
        for times in CACHE_TILES:
            if times * step < context.facts.size[axis]:
                options[str(times)] = KnobOption((Split(axis, times * step),), 0.04)
    return options
