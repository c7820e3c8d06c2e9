"""Knobs of the template space: those that make the loops of a nest, and those that place them.

They choose the axes to fuse, the vector axis, the register tile, the reduction, and the tiles of caches; then
the order of the outer loops, packing and threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import islice, permutations, takewhile
from math import prod
from typing import TYPE_CHECKING

from planish.core import Step
from planish.levels.loops.ir.schedule import Order, Schedule, loop_text
from planish.levels.loops.lang.draft import is_spread
from planish.levels.loops.space.facts import (
    COPY,
    PAGE,
    REDUCE_TILES,
    SHARE,
    STREAM_ROWS,
    Facts,
    Moves,
    RegisterTile,
    cycles,
    is_copied,
    is_large,
    is_scattered,
    is_scattered_constant,
    item_bytes,
    second_cache,
    slab,
    streamed,
    tiles,
)
from planish.levels.loops.steps import (
    Fuse,
    LoopStep,
    Pack,
    Parallel,
    Reorder,
    Split,
    Unroll,
    Vectorize,
    fusable,
    fused,
)

if TYPE_CHECKING:
    from planish.levels.loops.ir.tree import LoopId

# Knobs


@dataclass(frozen=True)
class KnobOption:
    """An alternative.

    Args:
        steps: what it does; none for leaving things as they are. One that is not a step of a schedule names
            the code generator.
        weight: how plausible it is; it is drawn in proportion, and the greatest is the default.
    """

    steps: tuple[Step, ...]
    weight: float


Options = Mapping[str, KnobOption]
"""Name of an alternative to the alternative; one name means the same wherever it is offered."""


@dataclass(frozen=True)
class KnobContext:
    """State that the knobs before this one have led to.

    Args:
        facts: of the nest whose knobs are turned, and of the target.
        schedule: so far.
        chosen: knob to alternative, so far.
        vector: the nest's vector axis, once it is chosen.
        tile: its register tile, once it is chosen.
        main: where the main nest's knobs ended, once another nest's are turned.
    """

    facts: Facts
    schedule: Schedule
    chosen: Mapping[str, str]
    vector: str
    tile: RegisterTile
    main: KnobContext | None = None

    @cached_property
    def order(self) -> Order:
        """The nest's loops."""
        return self.schedule.loops[self.facts.number]

    def of(self, kind: str) -> str | None:
        """Return the choice for the nest's knob of a kind, if it was turned."""
        return self.chosen.get(knob_name(kind, self.facts))

    @cached_property
    def outer(self) -> Order:
        """The loops around the register tile and its reduction, and that reduction's cache tile."""
        core = {(axis, 1) for axis, _ in (*self.tile.rows, (self.tile.vector, 0))}
        for i, loop in enumerate(self.order):
            # The alternatives of the knob "reduce" are named after their factor.
            reduces = loop[0] in self.facts.reduced and str(loop[1]) != self.of("reduce")
            if reduces or loop in core:
                return self.order[:i]
        return self.order

    def trips(self, loops: Order) -> dict[LoopId, int]:
        """Count the iterations of each of the outermost loops, tails included."""
        left = dict(self.facts.program.size)
        found: dict[LoopId, int] = {}
        for axis, step in loops:
            found[axis, step] = -(-left[axis] // step)
            # Inside a loop an axis is as long as its step.
            left[axis] = step
        return found


@dataclass(frozen=True)
class Knob:
    """A choice.

    Args:
        name: unique in the space.
        options: what is offered where the knobs before it have led; at least one alternative, and no two of
            the same steps.
        most: it never offers more.
        after: what else the choice changes in where one stands, beside the schedule.
    """

    name: str
    options: Callable[[KnobContext], Options]
    most: int
    after: Callable[[KnobContext, str], KnobContext] = lambda context, _: context


def knob_name(kind: str, facts: Facts) -> str:
    """Return the name of a nest's knob: "tile" for the main nest, "tile O" for the nest that writes O."""
    return f"{kind} {facts.nest_name}".rstrip()


# Tiling

TILES_MAX = 80
"""Register tiles that are offered for one vector axis: those of the fewest cycles by estimate."""
MEETS = 4.0
"""Slowdown of a nest whose vectors meet those of the next iteration in elements."""
UNROLLS = (2, 4, 8)
CACHE_TILES = (2, 4, 8, 16)


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
        """Return the best register tiles of a vector axis by name, with their cycles, the best first."""
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


# Fusion

FUSED = "all"
GAIN = 0.97
"""Share of the cycles below which the default schedule has axes fused."""
PREFERENCE = 4
"""Exponent of the ratio of cycles that says how much more plausible fewer of them are."""


def fusing(facts: Facts) -> tuple[Knob, Facts] | None:
    """Make the knob, with the facts of the program after it; None where there is nothing to fuse."""
    steps: tuple[Fuse, ...] = ()
    program = facts.program
    while pair := next(fusable(program), None):
        steps, program = (*steps, Fuse(*pair)), fused(program, *pair) or program
    if not steps:
        return None
    after = replace(facts, program=program)

    @cache
    def offered() -> Options:
        two, one = (min(Tiling(f).fewest().values(), default=1.0) for f in (facts, after))
        # By the best vector axis of each form: a fused axis is longer, so fewer lanes are unused.
        return {"none": KnobOption((), 1.0), FUSED: KnobOption(steps, (GAIN * two / one) ** PREFERENCE)}

    knob = Knob(
        "fuse", lambda _: offered(), 2, lambda c, name: replace(c, facts=after) if name == FUSED else c
    )
    return knob, after


# Placing

ORDERS_MAX = 24
"""Orders of the outer loops that are offered; with more than four loops these are not all."""
PARALLEL_CYCLES = 30_000
"""Threads that are waiting take some thousands of cycles to begin and to end."""
SMALL = 1 << 14
"""Bytes of a tensor of which the first cache keeps all, beside what flows through it."""
COPIES_MAX = 0.5
"""Copies that would take more than this share of the operations' time are not offered."""


def placing_knobs(facts: Facts) -> Iterator[Knob]:
    """List the knobs, in the order of their steps."""
    yield Knob("order", _order, ORDERS_MAX)
    for moves in (*facts.operands, facts.output):
        if can_be_packed(facts, moves):
            yield Knob(f"pack {moves.tensor}", lambda c, t=moves.tensor: pack(c, t), pack_most(facts))
    if facts.cores > 1:
        yield Knob("parallel", parallel, 2)


def _order(context: KnobContext) -> Options:
    """Offer orders of the loops around the register tile.

    The default has outside what moves the tensor that vectors are loaded from, so that its tile is used again
    by the loops inside; and splits of a reduction inside. The split of a reduction is outside where what is
    streamed is read row by row, and where only a part of what is read again stays in a cache.
    """
    outer = context.outer
    options: dict[str, KnobOption] = {}
    for order, name, step in _named_orders(_by_use(context, outer)):
        options[name] = KnobOption((step,) if order != outer else (), 0.1 if options else 1.0)
    return options


@lru_cache(maxsize=4096)
def _named_orders(first: Order) -> tuple[tuple[Order, str, Reorder], ...]:
    """List the orders that are offered, with their names and steps; the same loops come again and again."""
    # The loop of the larger step is outside: the steps of an axis decrease inward.
    pairs = [(a, b) for a in first for b in first if a[0] == b[0] and a[1] > b[1]]
    legal = (o for o in permutations(first) if all(o.index(a) < o.index(b) for a, b in pairs))
    orders = list(islice(legal, ORDERS_MAX))
    names = [tuple(map(loop_text, order)) for order in orders]
    return tuple([(order, " ".join(n), Reorder(n)) for order, n in zip(orders, names, strict=True)])


def _by_use(context: KnobContext, loops: Order) -> Order:
    facts = context.facts
    loaded = [m for m in facts.operands if context.tile.vector in m.strides]
    leader = max(loaded, key=lambda m: m.elements, default=facts.output)
    rows, outside = streamed(facts, context.tile.vector), slab(facts, context.tile.vector)
    tile = {context.tile.vector, *(axis for axis, _ in context.tile.rows)}

    # All panels of a small tensor stay in a near cache, and a large result is then written in sequence.
    others = (facts.output.strides.get(axis, 0) for axis, _ in loops if axis not in leader.strides)
    near = SHARE * second_cache(facts) if max(others, default=0) * item_bytes(facts) >= PAGE else SMALL
    inside = leader.elements * item_bytes(facts) <= near and is_large(facts, facts.output)

    def rank(loop: tuple[str, int]) -> int:
        if loop[0] == rows or loop == outside:
            return -1
        if loop[0] in facts.reduced:
            return 4
        if loop[0] not in facts.nest.reduced:
            return int((loop[0] not in leader.strides) != inside)
        # What meets the tile in elements of the target does not follow it at once, either.
        return 2 if facts.beside(loop[0]).intersection(tile - {loop[0]}) else 3

    return tuple(sorted(loops, key=rank))


def can_be_packed(facts: Facts, moves: Moves) -> bool:
    """Return whether the nest touches a tensor in one way, and does not write it for other nests."""
    written = moves.tensor == facts.output.tensor
    passed_on = written and (
        moves.tensor not in facts.program.outputs or is_spread(facts.nest.statement.target)
    )
    return moves.single and bool(moves.strides) and not passed_on


def pack_most(facts: Facts) -> int:
    """Bound how many ways there are to pack a tensor."""
    return 3 * len(facts.nest.axes) + 3  # none, ahead, the root, and the loops: three of an axis at most


def pack(context: KnobContext, tensor: str) -> Options:
    """Offer the outer loops at which a tensor may be packed, and the root; ahead for constants."""
    facts, vector = context.facts, context.tile.vector
    moves = next(moves for moves in (*facts.operands, facts.output) if moves.tensor == tensor)
    is_output = moves.tensor == facts.output.tensor
    # A result is wanted in sequence, too: else each is stored lane by lane.
    wanted = moves.strides.get(vector, 1) != 1 if is_output else is_copied(facts, moves, vector)
    scattered = not is_output and is_scattered(facts, moves, vector)
    apart = 0 if is_output or wanted else _slices(context, moves)
    options = {"none": KnobOption((), 0.02 if wanted else 0.3 if scattered or apart else 1.0)}
    for depth in range(len(facts.around), len(context.outer) + 1):
        around, inside = context.outer[:depth], context.order[depth:]
        if not is_output:
            weight = _copy_weight(context, moves, around)
        elif any(axis in facts.nest.reduced for axis, _ in around):
            weight = 0.0
        else:
            weight = 1.0 if depth == len(context.outer) else 0.3  # the smallest tile is best
        # What no loop inside moves is a single element: there is nothing to pack.
        if weight and any(axis in moves.strides for axis, _ in inside):
            at = loop_text(around[-1]) if around else "root"
            options[at] = KnobOption(
                (Pack(moves.tensor, at, nest=facts.nest_name),),
                weight * (1.0 if wanted or scattered or 0 < depth <= apart else 0.1),
            )
    if moves.tensor in facts.program.constants:
        options["ahead"] = KnobOption(
            (Pack(moves.tensor, "root", True, facts.nest_name),),
            3.0 if wanted or is_scattered_constant(facts, moves, vector) else 0.3,
        )
    return options


def _slices(context: KnobContext, moves: Moves) -> int:
    """Count the outer loops of which each iteration reads a slice of its own of a tensor with edges.

    Only of tensors that each operation of a tile loads anew, as in depthwise convolutions and pools: there a
    copy of the whole with edges, through a far cache, takes a large share of the time.
    """
    tile, facts = context.tile, context.facts
    loaded = all(axis in moves.strides for axis in (tile.vector, *(axis for axis, _ in tile.rows)))
    read_again = prod(facts.size.values()) > moves.elements
    if not (moves.padded and moves.single and loaded and read_again):
        return 0
    return len([*takewhile(lambda loop: loop[0] in moves.alone, context.outer)])


def _copy_weight(context: KnobContext, moves: Moves, around: Order) -> float:
    """Prefer what is copied once, and of that the smallest tile; refuse what is copied too often."""
    facts = context.facts
    trips = context.trips(around)
    # Copied anew for each iteration that does not move it.
    again = prod(trips[loop] for loop in around[len(facts.around) :] if loop[0] not in moves.strides)
    # As in `cycles`: two vector operations in each.
    operations = prod(facts.size.values()) / (2 * facts.lanes)
    if again > 1 and again * moves.elements * COPY > COPIES_MAX * operations:
        return 0.0
    return (1 + 0.1 * len(around)) / again


def parallel(context: KnobContext) -> Options:
    """Offer to share the outermost loop among the cores, first of all where there is work enough."""
    enough = cycles(context.facts, context.tile) > PARALLEL_CYCLES
    options = {"none": KnobOption((), 0.1 if enough else 1.0)}
    # Threads that reduce into one element would race.
    if context.order[0][0] not in context.facts.nest.reduced:
        step = Parallel(loop_text(context.order[0]), context.facts.nest_name)
        options["outermost"] = KnobOption((step,), 1.0 if enough else 0.1)
    return options
