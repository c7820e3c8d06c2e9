"""Placement of the nodes of an annotated graph in loops that they share where that is right (thesis 3.5.3).

Nodes are visited in the given order. Each reuses the longest run of open loops that its own order
begins with, and opens the others inside. It may not reuse a loop that a node it depends on has to finish
first: one that the other reduces (listing 4), one along which it reads more than the same iteration
wrote, or one that is staged (listing 5). A plan says beforehand which copies of tensors a program needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from planish.levels.loops.ir.schedule import Graph, Nest, Operand, Order, Packing, Schedule
from planish.levels.loops.ir.tree import LoopId
from planish.levels.loops.lower.packing import (
    Packed,
    leaving_dimensions,
    moved,
    same_view,
    tile_of,
    whole_view,
)

# Placement

_NOTHING: Mapping[str, frozenset[str]] = {}


class NodeLoops(NamedTuple):
    """The loops that a node has around it, and which nodes may share them: its annotation in the thesis.

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


class Scope:
    """An open or finished loop, or the root.

    `items` holds what is inside, in order: scopes, names of nodes, and `Start`s.
    """

    __slots__ = ("items", "loop", "reduces")

    def __init__(self, loop: LoopId, reduces: bool) -> None:
        self.loop = loop
        self.reduces = reduces
        self.items: list[Scope | Start | str] = []


class Start(NamedTuple):
    """Start of a reduction: it is set to its identity just outside its outermost reduction loop."""

    node: str


class Placement(NamedTuple):
    """Placement of every node in the loops.

    Args:
        root: the outermost scope.
        path: node to the loops around it, outermost first.
        start: reducing node to how many of those loops are around its start.
    """

    root: Scope
    path: Mapping[str, tuple[Scope, ...]]
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
    opened = [Scope(("", 0), False)]
    path: dict[str, tuple[Scope, ...]] = {}
    start: dict[str, int] = {}

    def open_loops(node: NodeLoops, loops: Sequence[LoopId]) -> None:
        for loop in loops:
            inner = Scope(loop, loop[0] in node.reduced)
            opened[-1].items.append(inner)
            opened.append(inner)

    for name, node in nodes.items():
        order = node.order
        shared = _shareable(node, nodes, opened, path, parallel)
        reduces = [] if node.copies else [i for i, loop in enumerate(order) if loop[0] in node.reduced]
        # Loops that are not shared have ended: a node that has the same ones later opens them anew.
        del opened[shared + 1 :]
        if node.filled and not reduces:
            reduces = [len(order)]
        if reduces:
            outer = start[name] = reduces[0]
            open_loops(node, order[shared:outer])
            items = opened[outer].items
            # Where loops inside are shared, the last item is the outermost of them, and the start goes before
            # it.
            items.insert(len(items) - (outer < shared), Start(name))
        open_loops(node, order[len(opened) - 1 :])
        opened[-1].items.append(name)
        path[name] = tuple(opened[1:])
    return Placement(opened[0], path, start)


def _shareable(
    node: NodeLoops,
    nodes: Mapping[str, NodeLoops],
    opened: Sequence[Scope],
    path: Mapping[str, tuple[Scope, ...]],
    parallel: frozenset[LoopId],
) -> int:
    """Count the open loops that a node may share."""
    limit = 0
    for loop, scope in zip(node.order, opened[1:], strict=False):
        if scope.loop != loop:
            break
        limit += 1
    if limit and node.order[0] in parallel and opened[1].reduces != (node.order[0][0] in node.reduced):
        limit = 0
    for source, pointwise in node.needs.items():
        for i, scope in enumerate(opened[1 : limit + 1]):
            if i == len(path[source]) or path[source][i] is not scope:
                break  # the source is in other loops from here on, which have ended
            if scope.loop[0] not in pointwise or scope.loop in nodes[source].staged:
                limit = i
                break
    return limit


# Plans


class Copy(NamedTuple):
    """A read or view node that is materialized.

    Args:
        packed: its buffer.
        source: what it copies: a tensor, or the buffer of another copy.
        ahead: whether that happens once, before the first call.
        whole: whether it holds all of a padded tensor, row-major.
    """

    packed: Packed
    source: str
    ahead: bool = False
    whole: bool = False


@dataclass
class PlacementPlan:
    """Nodes with their loops, in the order of visiting, and what they stand for.

    Args:
        nodes: by name of nest, of copy (its buffer's name) or of write node.
        copies: buffer to copy.
        reads: operand to the copy that serves it.
        writes: name of a nest to the write node that takes its tile to memory.
    """

    nodes: dict[str, NodeLoops] = field(default_factory=dict[str, NodeLoops])
    copies: dict[str, Copy] = field(default_factory=dict[str, Copy])
    reads: dict[Operand, str] = field(default_factory=dict[Operand, str])
    writes: dict[str, str] = field(default_factory=dict[str, str])


def plan(schedule: Schedule) -> PlacementPlan:
    """Annotate the graph of a scheduled program.

    Copies of inputs at the root go first; a nest's other copies go just before it, the outermost first.
    """
    planner = _Planner(schedule)
    for i in range(len(planner.graph.nests)):
        planner.copies_of(i)
    for i in range(len(planner.graph.nests)):
        planner.nest(i)
    return planner.plan


class _Planner:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.graph: Graph = schedule.graph
        self.plan = PlacementPlan()
        self.later: list[list[tuple[str, Mapping[str, frozenset[str]]]]] = [[] for _ in self.graph.nests]

    def copies_of(self, i: int) -> None:
        """Plan the copies that a nest reads; annotate those of inputs at the root."""
        nest = self.graph.nests[i]
        packs = {p.tensor: p for p in self.schedule.packs if p.nest == i}
        for operand in nest.operands:
            pack = packs.get(operand.access.tensor)
            leaving = _leaving(self.graph, operand)
            if pack is None and not leaving:
                continue
            around = self.schedule.loops[i][: depth_of(self.schedule, pack)] if pack else ()
            # Where the loops around a packing move its padded dimension, each tile's edges would differ: so
            # the whole view is made first, which has the edges already.
            viewed = bool(leaving) and (pack is None or moved(operand.access, leaving, around))
            source = self._view(operand, i) if viewed else operand.access.tensor
            if pack is not None:
                source = self._pack(operand, pack, around, source)
            self.plan.reads[operand] = source

    def _view(self, operand: Operand, i: int) -> str:
        access = operand.access
        name = self._unique(f"{access.tensor}.padded")
        packed = _whole_view(self.graph, operand, name)
        # Two reads with the same padding, as of one input by several statements, share one view.
        for known in self.plan.copies.values():
            if known.whole and known.source == access.tensor and same_view(known.packed, packed):
                return known.packed.name
        needs = {self.graph.nests[j].name: frozenset[str]() for j, _ in operand.links}
        self._add(i, Copy(packed, access.tensor, whole=True), needs)
        return name

    def _pack(self, operand: Operand, pack: Packing, around: Order, source: str) -> str:
        access, program = operand.access, self.schedule.program
        name = self._unique(f"{pack.tensor}.packed")
        viewed = source != access.tensor
        access = replace(access, pad=None) if viewed else access  # the view has the edges already
        shape = program.type[access.tensor].shape
        order = self.schedule.loops[pack.nest]
        packed = tile_of(name, access, order, len(around), shape, program.size)
        needs = {self.graph.nests[j].name: axes for j, axes in operand.links}
        self._add(pack.nest, Copy(packed, source, pack.ahead), {source: frozenset()} if viewed else needs)
        return name

    def _add(self, i: int, copy: Copy, needs: Mapping[str, frozenset[str]]) -> None:
        name = copy.packed.name
        self.plan.copies[name] = copy
        if copy.ahead:
            return
        # What lies in loops, or is written by a nest first, waits for the turn of the nest that reads it.
        if copy.packed.around or any(source in self.graph.nest for source in needs):
            self.later[i].append((name, needs))
        else:
            self.plan.nodes[name] = NodeLoops((), copies=True)

    def nest(self, i: int) -> None:
        """Annotate a nest, after the copies that it reads and before the one that takes its tile away."""
        nest, order, plan = self.graph.nests[i], self.schedule.loops[i], self.plan
        for name, needs in sorted(self.later[i], key=lambda item: len(plan.copies[item[0]].packed.around)):
            around = plan.copies[name].packed.around
            # A copy within loops stands where its nest stands, so it may share no loop that the nest may not.
            both = _meet(needs, self._links(nest)) if around else needs
            plan.nodes[name] = NodeLoops(around, both, nest.reduced, copies=True)
        tensor = nest.statement.target.tensor
        staged = frozenset(loop for name, loop in self.schedule.staged if name == tensor)
        pack = next((p for p in self.schedule.packs if p.nest == i and p.tensor == tensor), None)
        depth = depth_of(self.schedule, pack) if pack else 0
        if pack:
            # What takes the tile away reads all of it: none of its loops can be shared.
            staged |= frozenset(order[depth:])
        needs = self._needs(nest)
        plan.nodes[nest.name] = NodeLoops(order, needs, nest.reduced, staged, filled=bool(nest.scattered))
        if pack:
            write = plan.writes[nest.name] = f"write {nest.name}"
            loops = _write_order(nest, order, depth)
            plan.nodes[write] = NodeLoops(loops, {nest.name: frozenset(nest.axes)}, copies=True)

    def _links(self, nest: Nest) -> dict[str, frozenset[str]]:
        """Return the nests that a nest reads, by itself or by copies, with the axes that link them."""
        links: dict[str, frozenset[str]] = {}
        for operand in nest.operands:
            links = _meet(links, {self.graph.nests[j].name: axes for j, axes in operand.links})
        return links

    def _needs(self, nest: Nest) -> dict[str, frozenset[str]]:
        needs: dict[str, frozenset[str]] = {}
        for operand in nest.operands:
            copy = self.plan.reads.get(operand)
            if copy is None:
                links = {self.graph.nests[j].name: axes for j, axes in operand.links}
                needs = _meet(needs, links)
            elif copy in self.plan.nodes:
                needs[copy] = frozenset(nest.axes)
        return needs

    def _unique(self, name: str) -> str:
        count = sum(known == name or known.startswith(f"{name}#") for known in self.plan.copies)
        return f"{name}#{count + 1}" if count else name


def depth_of(schedule: Schedule, pack: Packing) -> int:
    """Count the loops around a packing."""
    return 0 if pack.at is None else schedule.loops[pack.nest].index(pack.at) + 1


def _write_order(nest: Nest, order: Order, depth: int) -> tuple[LoopId, ...]:
    """Walk what remains of the target's dimensions as they lie in memory."""
    # Only a loop of step 1 has fixed its axis: of a larger step the tile has elements left.
    done = {axis for axis, step in order[:depth] if step == 1}
    axes = [axis for axis in nest.statement.output_axes if axis in nest.axes and axis not in done]
    return (*order[:depth], *((axis, 1) for axis in axes))


# Asked anew for each candidate, and the same for all schedules of a program; so is the next one.
@lru_cache(maxsize=1024)
def _leaving(graph: Graph, operand: Operand) -> Sequence[int]:
    """List the dimensions along which an operand leaves its tensor."""
    access, program = operand.access, graph.program
    return leaving_dimensions(access, program.type[access.tensor].shape, program.size)


@lru_cache(maxsize=256)
def _whole_view(graph: Graph, operand: Operand, name: str) -> Packed:
    access, program = operand.access, graph.program
    return whole_view(name, access, program.type[access.tensor].shape, program.size)


# Of a source that is read twice, both reads limit which axes need only the same iteration.
def _meet(a: Mapping[str, frozenset[str]], b: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {name: a.get(name, axes) & axes for name, axes in {**a, **b}.items()}
