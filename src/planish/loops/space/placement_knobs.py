"""The knobs that place what is there: order of the outer loops, packing, threads, results turned round."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, permutations
from math import prod

from planish.loops.ir.schedule import Order, loop_text
from planish.loops.lang.scattering import is_spread
from planish.loops.space.estimate import COPY, cycles, is_copied
from planish.loops.space.facts import Facts, Moves
from planish.loops.space.knob import Knob, KnobContext, KnobOption, Options
from planish.loops.space.memory_costs import is_beyond, is_scattered, slab, streamed
from planish.loops.steps import Pack, Parallel, Reorder

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
    """Whether the nest touches a tensor in one way, and can write it in tiles, or none that nests pass on."""
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
        if is_output:
            weight = _output_weight(context, depth)
        else:
            weight = _copy_weight(context, moves, around, windows=beyond)
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


def _output_weight(context: KnobContext, depth: int) -> float:
    """Prefer the smallest tile; none inside a loop that reduces."""
    if any(axis in context.facts.nest.reduced for axis, _ in context.outer[:depth]):
        return 0.0
    return 1.0 if depth == len(context.outer) else 0.3


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
