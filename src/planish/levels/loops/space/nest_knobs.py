"""Knobs for existing loops and for the nests beside the main one.

The first order the outer loops, and add packing and threads. A nest beside the main one may follow
it: then it has what it shares of the main one's loops, which suits what is done to each result. One that
reduces by itself, as the second of two products, is better off with the vector axis, the tile and the packing
that suit it; it may stay inside the outermost loops of the main nest, so that what passes from one to the
other stays in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice, permutations
from math import prod

from planish.levels.loops.ir.graph import plain_axis
from planish.levels.loops.ir.schedule import Order, loop_text
from planish.levels.loops.lang.subscripts import is_spread
from planish.levels.loops.space.costs import (
    COPY,
    REDUCE_TILES,
    RegisterTile,
    cycles,
    is_beyond,
    is_copied,
    is_scattered,
    slab,
    streamed,
)
from planish.levels.loops.space.facts import Facts, Moves
from planish.levels.loops.space.knobs import (
    TILES_MAX,
    UNROLLS,
    Knob,
    KnobContext,
    KnobOption,
    Options,
    Tiling,
    knob_name,
    reduce,
    unroll,
)
from planish.levels.loops.steps import LoopStep, Merge, Pack, Parallel, Reorder

# Existing loops

ORDERS_MAX = 24
"""Orders of the outer loops that are offered; with more than four loops these are not all."""
PARALLEL_CYCLES = 30_000
"""Threads that are waiting take some thousands of cycles to begin and to end."""
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

    The first guess has outside what moves the tensor that vectors are loaded from, so that its tile is used
    again by the loops inside; and splits of a reduction inside. The split of a reduction is outside where
    what is streamed is read row by row, and where only a part of what is read again stays in a cache.
    """
    outer = context.outer
    options: dict[str, KnobOption] = {}
    for order, name, step in _named_orders(_by_use(context, outer)):
        options[name] = KnobOption((step,) if order != outer else (), 0.1 if options else 1.0)
    return options


@lru_cache(maxsize=4096)
def _named_orders(first: Order) -> tuple[tuple[Order, str, Reorder], ...]:
    """List the orders that are offered, with their names and steps; the same loops come again and again."""
    orders = list(islice(_orders(first), ORDERS_MAX))
    names = [tuple(map(loop_text, order)) for order in orders]
    return tuple([(order, " ".join(n), Reorder(n)) for order, n in zip(orders, names, strict=True)])


def _by_use(context: KnobContext, loops: Order) -> Order:
    facts = context.facts
    loaded = [m for m in facts.operands if context.tile.vector in m.strides]
    leader = max(loaded, key=lambda m: m.elements, default=facts.output)
    rows, outside = streamed(facts, context.tile.vector), slab(facts, context.tile.vector)
    tile = {context.tile.vector, *(axis for axis, _ in context.tile.rows)}

    def rank(loop: tuple[str, int]) -> int:
        if loop[0] == rows or loop == outside:
            return -1
        if loop[0] in facts.reduced:
            return 4
        if loop[0] not in facts.nest.reduced:
            return int(loop[0] not in leader.strides)
        # What meets the tile in elements of the target does not follow it at once, either.
        return 2 if facts.beside(loop[0]).intersection(tile - {loop[0]}) else 3

    return tuple(sorted(loops, key=rank))


def _orders(first: Order) -> Iterator[Order]:
    """List the permutations in which each axis keeps the order of its loops."""
    # The loop of the larger step is outside: the steps of an axis decrease inward.
    pairs = [(a, b) for a in first for b in first if a[0] == b[0] and a[1] > b[1]]
    for order in permutations(first):
        if all(order.index(a) < order.index(b) for a, b in pairs):
            yield order


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
    beyond = not is_output and not wanted and is_beyond(facts, moves)
    options = {"none": KnobOption((), 0.02 if wanted else 0.3 if scattered or beyond else 1.0)}
    for depth in range(len(facts.around), len(context.outer) + 1):
        around, inside = context.outer[:depth], context.order[depth:]
        if not is_output:
            weight = _copy_weight(context, moves, around, windows=beyond)
        elif any(axis in facts.nest.reduced for axis, _ in around):
            weight = 0.0
        else:
            weight = 1.0 if depth == len(context.outer) else 0.3  # the smallest tile is best
        # What no loop inside moves is a single element: there is nothing to pack.
        if weight and any(axis in moves.strides for axis, _ in inside):
            at = loop_text(around[-1]) if around else "root"
            options[at] = KnobOption(
                (Pack(moves.tensor, at, nest=facts.nest_name),),
                weight * (1.0 if wanted or scattered or beyond else 0.1),
            )
    if moves.tensor in facts.program.constants:
        options["ahead"] = KnobOption(
            (Pack(moves.tensor, "root", True, facts.nest_name),), 3.0 if wanted else 0.3
        )
    return options


def _copy_weight(context: KnobContext, moves: Moves, around: Order, *, windows: bool) -> float:
    """Prefer what is copied once, and of that the smallest tile; refuse what is copied too often.

    Windows overlap: of those a larger one is preferred, if it is inside a loop.
    """
    facts = context.facts
    trips = context.trips(around)
    # Copied anew for each iteration that does not move it.
    again = prod(trips[loop] for loop in around[len(facts.around) :] if loop[0] not in moves.strides)
    # As in `cycles`: two vector operations in each.
    operations = prod(facts.size.values()) / (2 * facts.lanes)
    if again > 1 and again * moves.elements * COPY > COPIES_MAX * operations:
        return 0.0
    if windows:
        return 1 / (again * len(around)) if around else 0.1
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


# Nests beside the main one

HEAVY = 1 / 8
"""Share of the main nest's iterations from which on a reduction may deserve a tile of its own."""
REUSES = 16
"""How often it uses each element that it reads, at least; else memory sets the pace, and sharing helps."""
FOLLOW, TURNED = "follow", "turned"
_NONE: Options = {"none": KnobOption((), 1.0)}


def nest_knobs(main: Facts) -> Iterator[Knob]:
    """List the knobs of all nests but the main one, in the order of their steps."""
    for i in range(len(main.graph.nests)):
        if i != main.graph.main:
            yield from NestKnobs(replace(main, other=i), main).knobs()


class NestKnobs:
    """Makes the knobs of one nest.

    Args:
        facts: of the whole nest.
        main: of the main nest.
    """

    def __init__(self, facts: Facts, main: Facts) -> None:
        self.facts = facts
        work = prod(facts.size.values())
        reuses = all(work >= REUSES * moves.elements for moves in facts.operands)
        self.heavy = bool(facts.reduced_axes) and work >= HEAVY * prod(main.size.values()) and reuses
        self._tilings: dict[Order, Tiling] = {}
        self._weights: dict[str, float] = {}

    def knobs(self) -> Iterator[Knob]:
        facts = self.facts
        if not facts.size:
            return
        yield Knob(
            knob_name("loops", facts),
            self._loops,
            # Followed, turned or not; or each axis inside any number of shared loops, of which an axis has
            # three at most.
            2 + len(facts.size) * (len(facts.size) * 3 + 1),
            self._entered,
        )
        yield self._knob(
            "tile",
            lambda c: self._tiling(c.facts.around).tile(c),
            TILES_MAX,
            lambda c, name: self._tiling(c.facts.around).tiled(c, name),
        )
        yield self._knob("unroll", unroll, len(UNROLLS) + 2)
        yield self._knob("reduce", reduce, len(REDUCE_TILES) + 2)
        for moves in (*facts.operands, facts.output):
            if can_be_packed(facts, moves):
                yield self._knob(
                    f"pack {moves.tensor}", lambda c, t=moves.tensor: pack(c, t), pack_most(facts)
                )
        if facts.cores > 1:
            yield self._knob("parallel", parallel, 2)

    def _knob(
        self,
        kind: str,
        options: Callable[[KnobContext], Options],
        most: int,
        after: Callable[[KnobContext, str], KnobContext] = lambda context, _: context,
    ) -> Knob:
        """Make a knob that is turned only where the nest has loops of its own."""

        def offered(context: KnobContext) -> Options:
            # A nest that follows has the main one's loops: there is nothing of its own to turn.
            return options(context) if context.facts.other == self.facts.other else _NONE

        def entered(context: KnobContext, name: str) -> KnobContext:
            return after(context, name) if context.facts.other == self.facts.other else context

        return Knob(knob_name(kind, self.facts), offered, most, entered)

    def _tiling(self, around: Order) -> Tiling:
        if around not in self._tilings:
            self._tilings[around] = Tiling(replace(self.facts, around=around))
        return self._tilings[around]

    def _loops(self, context: KnobContext) -> Options:
        """Offer to follow, turned or not, or each axis as the vector axis, inside some shared loops."""
        options = {FOLLOW: KnobOption((), 1.0), **self._turned(context)}
        # Alternatives of equal steps could not be distinguished when a candidate is read back.
        known = {option.steps for option in options.values()}
        shared = self._shared(context)
        for depth in range(len(shared) + 1):
            for axis in replace(self.facts, around=shared[:depth]).size:
                steps = self._own(context, depth, axis)
                if steps not in known:
                    known.add(steps)
                    options[f"{depth} {axis}"] = KnobOption(steps, self._weight(axis, depth))
        return options

    def _turned(self, context: KnobContext) -> Options:
        """Offer that the nest walks its result as that lies in memory, inside the main one's loops."""
        outer = set(_main(context).outer)
        inner = [loop for loop in context.schedule.loops[self.facts.number] if loop not in outer]
        axes = [plain_axis(index) for index in self.facts.nest.statement.target.index]
        position = {axis: d for d, axis in enumerate(axes)}
        turned = sorted(inner, key=lambda loop: position.get(loop[0], -1))
        if turned == inner or any(axis in self.facts.nest.reduced for axis, _ in inner):
            return {}
        return {TURNED: KnobOption((Reorder(tuple(map(loop_text, turned)), self.facts.nest_name),), 2.0)}

    def _own(self, context: KnobContext, depth: int, axis: str) -> tuple[LoopStep, ...]:
        """Undo the splits inside so many shared loops, and put an axis innermost."""
        name = self.facts.nest_name
        inner = context.schedule.loops[self.facts.number][depth:]
        merged = tuple(Merge(a, step, name) for a, step in inner if step > 1)
        # Merged, each axis has one loop left, that of step 1.
        rest = [loop for loop in inner if loop[1] == 1]
        rest.sort(key=lambda loop: loop[0] == axis)
        return (*merged, Reorder(tuple(map(loop_text, rest)), name)) if len(rest) > 1 else merged

    def _weight(self, axis: str, depth: int) -> float:
        """Prefer loops of its own for a nest that reduces much, and the axis of the fewest cycles."""
        if not self.heavy:
            return 0.05
        if not self._weights:
            cycles = self._tiling(()).fewest()
            self._weights = {a: (min(cycles.values()) / n) ** 4 for a, n in cycles.items()}
        return self._weights[axis] * (0.3 if depth else 2.0)

    def _entered(self, context: KnobContext, name: str) -> KnobContext:
        if name in (FOLLOW, TURNED):
            return context
        depth, axis = name.split()
        around = self._shared(context)[: int(depth)]
        # A placeholder until the knob "tile" is turned.
        facts, tile = replace(self.facts, around=around), RegisterTile((), axis, 1)
        return replace(context, facts=facts, vector=axis, tile=tile, main=_main(context))

    def _shared(self, context: KnobContext) -> Order:
        """Find the main nest's outermost loops that this one begins with when it follows."""
        main = _main(context)
        own = context.schedule.loops[self.facts.number]
        count = 0
        while count < min(len(main.outer), len(own)) and main.outer[count] == own[count]:
            count += 1
        return own[:count]


def _main(context: KnobContext) -> KnobContext:
    """Return where the main nest's knobs ended."""
    return context.main or context
