"""Placing the nodes of an annotated graph in loops that they share where that is right (thesis 3.5.3).

Nodes are visited in the given order. Each reuses the longest run of open loops that its own order
begins with, and opens the others inside. It may not reuse a loop that a node it depends on has to finish
first: one that the other reduces (listing 4), one along which it reads more than the same iteration
wrote, or one that is staged (listing 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from planish.loops.ir.tree import LoopId

_NOTHING: Mapping[str, frozenset[str]] = {}


class NodeLoops(NamedTuple):
    """The loops that a node has around it, and who may share them: its annotation in the thesis.

    Args:
        order: the loops, outermost first.
        needs: node that it depends on to the axes along which it needs only the same iteration's output.
        reduced: axes that it reduces.
        staged: loops of its order that its readers may not reuse.
        copies: whether it copies for, or from, a node that reduces those axes; then it needs no start.
        filled: whether it needs a start even where it reduces no axis.
    """

    order: tuple[LoopId, ...]
    needs: Mapping[str, frozenset[str]] = _NOTHING
    reduced: frozenset[str] = frozenset()
    staged: frozenset[LoopId] = frozenset()
    copies: bool = False
    filled: bool = False


class Place:
    """An open or finished loop, or the root.

    `items` holds what is inside, in order: places, names of nodes, and `Start`s.
    """

    __slots__ = ("items", "loop", "reduces")

    def __init__(self, loop: LoopId, reduces: bool) -> None:
        self.loop = loop
        self.reduces = reduces
        self.items: list[Place | Start | str] = []


class Start(NamedTuple):
    """Where a reduction is set to its identity: just outside its outermost reduction loop."""

    node: str


class Placement(NamedTuple):
    """Where every node is executed.

    Args:
        root: the outermost place.
        path: node to the loops around it, outermost first.
        start: reducing node to how many of those loops are around its start.
    """

    root: Place
    path: Mapping[str, tuple[Place, ...]]
    start: Mapping[str, int]

    def shared(self, a: str, b: str) -> int:
        """Count the loops that two nodes share."""
        count = 0
        for x, y in zip(self.path[a], self.path[b], strict=False):
            if x is not y:
                break
            count += 1
        return count


def place(nodes: Mapping[str, NodeLoops], parallel: frozenset[LoopId] = frozenset()) -> Placement:
    """Place nodes.

    Args:
        nodes: name to loops, each node after those that it needs.
        parallel: outermost loops whose iterations may run at once: a node that reduces such an axis does
            not share the loop with one that does not.
    """
    placer = _Placer(nodes, parallel)
    for name in nodes:
        placer.visit(name)
    return Placement(placer.open[0], placer.path, placer.start)


class _Placer:
    def __init__(self, nodes: Mapping[str, NodeLoops], parallel: frozenset[LoopId]) -> None:
        self.nodes = nodes
        self.parallel = parallel
        self.open = [Place(("", 0), False)]
        self.path: dict[str, tuple[Place, ...]] = {}
        self.start: dict[str, int] = {}

    def visit(self, name: str) -> None:
        node = self.nodes[name]
        order = node.order
        shared = self._shareable(node)
        reduces = [] if node.copies else [i for i, loop in enumerate(order) if loop[0] in node.reduced]
        # Loops that are not shared have ended: whoever has the same ones later opens them anew.
        del self.open[shared + 1 :]
        if node.filled and not reduces:
            reduces = [len(order)]
        if reduces:
            outer = self.start[name] = reduces[0]
            self._open(node, order[shared:outer])
            items = self.open[outer].items
            # Where loops inside are shared, the last item is the outermost of them, and the start goes before
            # it.
            items.insert(len(items) - (outer < shared), Start(name))
        self._open(node, order[len(self.open) - 1 :])
        self.open[-1].items.append(name)
        self.path[name] = tuple(self.open[1:])

    def _open(self, node: NodeLoops, loops: Sequence[LoopId]) -> None:
        for loop in loops:
            inner = Place(loop, loop[0] in node.reduced)
            self.open[-1].items.append(inner)
            self.open.append(inner)

    def _shareable(self, node: NodeLoops) -> int:
        limit = 0
        for loop, place in zip(node.order, self.open[1:], strict=False):
            if place.loop != loop:
                break
            limit += 1
        if limit and node.order[0] in self.parallel:
            limit = 0 if self.open[1].reduces != (node.order[0][0] in node.reduced) else limit
        for source, pointwise in node.needs.items():
            limit = min(limit, self._shareable_with(source, pointwise, limit))
        return limit

    def _shareable_with(self, source: str, pointwise: frozenset[str], limit: int) -> int:
        staged = self.nodes[source].staged
        path = self.path[source]
        for i, place in enumerate(self.open[1 : limit + 1]):
            if i == len(path) or path[i] is not place:
                break  # the source is in other loops from here on, which have ended
            if place.loop[0] not in pointwise or place.loop in staged:
                return i
        return limit
