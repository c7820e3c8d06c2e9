"""The knobs of the nests beside the main one: to follow its loops, or to have a register tile of their own.

A nest that follows has what it shares of the main one's loops, which suits what is done to each result. One
that reduces by itself, as the second of two products, is better off with the vector axis, the tile and the
packing that suit it; it may stay inside the outermost loops of the main nest, so that what passes from one
to the other stays in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

from planish.loops.ir.graph import plain_axis
from planish.loops.ir.schedule import Order, loop_text
from planish.loops.space.estimate import RegisterTile
from planish.loops.space.facts import Facts
from planish.loops.space.knob import Knob, KnobContext, KnobOption, Options, knob_name
from planish.loops.space.memory_costs import REDUCE_TILES
from planish.loops.space.placement_knobs import can_be_packed, pack, pack_most, parallel
from planish.loops.space.tiling import TILES_MAX, UNROLLS, Tiling, reduce, unroll
from planish.loops.steps import LoopStep, Merge, Reorder

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
            yield from _Nest(replace(main, other=i), main).knobs()


class _Nest:
    """Makes the knobs of one nest.

    Args:
        facts: of the whole nest.
        main: of the main nest.
    """

    def __init__(self, facts: Facts, main: Facts) -> None:
        self.facts = facts
        self.heavy = bool(facts.reduced_axes) and _deserves(facts, prod(main.size.values()))
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
        yield self._knob("tile", lambda c: self._tiling(c.facts.around).tile(c), TILES_MAX, self._tiled)
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

    def _tiled(self, context: KnobContext, name: str) -> KnobContext:
        return self._tiling(context.facts.around).tiled(context, name)

    def _loops(self, context: KnobContext) -> Options:
        """Offer to follow, turned or not, or each axis as the vector axis, inside some shared loops."""
        options = {FOLLOW: KnobOption((), 1.0), **self._turned(context)}
        # Alternatives of equal steps could not be told apart when a candidate is read back.
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
        place = {axis: d for d, axis in enumerate(axes)}
        turned = sorted(inner, key=lambda loop: place.get(loop[0], -1))
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
        mine = context.schedule.loops[self.facts.number]
        count = 0
        while count < min(len(main.outer), len(mine)) and main.outer[count] == mine[count]:
            count += 1
        return mine[:count]


def _deserves(facts: Facts, main: int) -> bool:
    work = prod(facts.size.values())
    return work >= HEAVY * main and all(work >= REUSES * moves.elements for moves in facts.operands)


def _main(context: KnobContext) -> KnobContext:
    """Give where the main nest's knobs ended."""
    return context.main or context
