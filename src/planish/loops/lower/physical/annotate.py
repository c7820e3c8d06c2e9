"""From a loop tree to its annotated form: regions where they fit, and loops over memory around them."""

from __future__ import annotations

from collections.abc import Hashable

from planish.loops.ir.annotated import (
    AnnotatedTree,
    Block,
    Function,
    Inside,
    Item,
    Nest,
    Part,
    Region,
    Vectors,
)
from planish.loops.ir.extent import remaining
from planish.loops.ir.tree import Loop, LoopTree, Node, Ref, leaves, loops
from planish.loops.lower.memory_spaces import spaces_of
from planish.loops.lower.physical.allocate import Analyser
from planish.loops.lower.physical.past_caches import past_caches
from planish.loops.lower.physical.region import Regions, walked
from planish.loops.lower.roots import root_groups

FLOWS_FROM = 1 << 22
"""A buffer of fewer bytes, which is passed through once, is not asked for ahead of time."""


def annotate(tree: LoopTree, vectors: Vectors, spare: int = 0) -> AnnotatedTree:
    """Decide how a tree is executed.

    Args:
        tree: what is executed.
        vectors: of the machine.
        spare: registers that are left free beyond what operands are known to need.
    """
    annotator = _Annotator(tree, vectors, spare)
    body = [annotator.function(nodes) for nodes in root_groups(tree.body[tree.views :])]
    if tree.views:
        body.insert(0, _views(annotator))
    ahead = [annotator.function(nodes) for nodes in root_groups(tree.ahead)]
    spaces = spaces_of(tree, (*body, *ahead))
    return AnnotatedTree(tree, vectors, tuple(body), tuple(ahead), spaces, annotator.past_caches())


_known_views: dict[Hashable, Function] = {}
_VIEWS_MAX = 1000


def _views(annotator: _Annotator) -> Function:
    """Annotate the copies of padded inputs, once for all schedules of a program."""
    tree = annotator.tree
    nodes = tree.body[: tree.views]
    sizes = tuple([tree.size[loop.axis] for loop in loops(nodes)])
    used = tuple([tree.buffer[ref.buffer] for leaf in leaves(nodes) for ref in leaf.refs])
    key = nodes, sizes, used, annotator.vectors
    known = _known_views.get(key)
    if known is None:
        if len(_known_views) >= _VIEWS_MAX:
            _known_views.clear()
        known = _known_views[key] = annotator.function(nodes)
    return known


class _Annotator:
    def __init__(self, tree: LoopTree, vectors: Vectors, spare: int) -> None:
        self.tree = tree
        self.vectors = vectors
        self._analyser = Analyser(tree, vectors, spare)
        self._regions = Regions(self._analyser)
        self._flowing = self._analyser.buffers_from(FLOWS_FROM)

    def past_caches(self) -> frozenset[str]:
        """Name the outputs whose stores go past the caches."""
        return past_caches(self._analyser)

    def function(self, nodes: tuple[Node, ...]) -> Function:
        """Annotate some root nodes."""
        node = nodes[0]
        # Threads start at a function's beginning and meet at its end, so a parallel loop is a function of its
        # own.
        if isinstance(node, Loop) and node.concurrent and len(nodes) == 1:
            return Function(nodes, self._outer(node, {}, "parallel"), "parallel")
        return Function(nodes, self._nodes(nodes, {}))

    # Around regions

    def _nodes(self, nodes: tuple[Node, ...], inside: Inside) -> Item:
        allocation = self._analyser.allocate(nodes, inside)
        if allocation is not None:
            return self._regions.region(nodes, inside, allocation)
        if len(nodes) == 1 and isinstance(nodes[0], Loop):
            return self._outer_loop(nodes[0], inside)
        return Block(nodes, tuple([self._nodes((node,), inside) for node in nodes]))

    def _outer_loop(self, loop: Loop, inside: Inside) -> Nest:
        if not loop.side_by_side:
            return self._outer(loop, inside, "counted")
        lanes, here = self.vectors.lanes, remaining(self.tree, inside, loop.axis)
        # Longer strips first: fewer passes, and more sums side by side.
        for elements in (8 * lanes, 4 * lanes, 2 * lanes, lanes):
            inner = {**inside, loop.axis: elements}
            # Shorter than what is there: a strip as long as the loop was refused as a whole already.
            allocation = elements < here and self._analyser.allocate((loop,), inner)
            if allocation:
                region = self._regions.region((loop,), inner, allocation)
                return self._strips(loop, inside, elements, region)
        return self._leaf_by_leaf(loop, inside)

    def _outer(self, loop: Loop, inside: Inside, kind: str) -> Nest:
        full, tail = divmod(remaining(self.tree, inside, loop.axis), loop.step)
        parts: list[Part] = []
        if full:
            body = self._nodes(loop.body, {**inside, loop.axis: loop.step})
            flowing = () if kind == "parallel" else self._flows(loop, 1, body)
            parts.append(Part(kind, 0, full, 1, body, fetched=flowing))
        if tail:
            body = self._nodes(loop.body, {**inside, loop.axis: tail})
            parts.append(Part("unrolled", full, 1, 1, body))
        return Nest(loop, tuple(parts))

    def _strips(self, loop: Loop, inside: Inside, elements: int, region: Region) -> Nest:
        """Cut a vector loop too long to unroll into strips of several vectors."""
        full, tail = divmod(remaining(self.tree, inside, loop.axis), elements)
        parts = [Part("counted", 0, full, elements, region, fetched=self._flows(loop, elements, region))]
        if tail:
            body = self._nodes((loop,), {**inside, loop.axis: tail})
            parts.append(Part("unrolled", full * elements, 1, tail, body))
        return Nest(loop, tuple(parts))

    def _leaf_by_leaf(self, loop: Loop, inside: Inside) -> Nest:
        """Execute a vector's worth of each leaf in turn, where one leaf reads what another writes."""
        here = remaining(self.tree, inside, loop.axis)
        if len(loop.body) == 1:
            body = self._nodes(loop.body, {**inside, loop.axis: 1})
            return Nest(loop, (Part("counted", 0, here, 1, body),))
        lanes = self.vectors.lanes
        apart = tuple(Loop(loop.axis, loop.step, (leaf,)) for leaf in loop.body)
        full, tail = divmod(here, lanes)
        parts: list[Part] = []
        if full:
            body = self._nodes(apart, {**inside, loop.axis: lanes})
            parts.append(Part("counted", 0, full, lanes, body))
        if tail:
            body = self._nodes(apart, {**inside, loop.axis: tail})
            parts.append(Part("unrolled", full * lanes, 1, tail, body))
        return Nest(loop, tuple(parts))

    def _flows(self, loop: Loop, width: int, body: Item) -> tuple[Ref, ...]:
        """What a loop over memory asks for early: large buffers that its passes only pass through."""
        passes_on = self._flowing and isinstance(body, Region) and not body.registers
        return walked(loop, width, self._flowing) if passes_on else ()
