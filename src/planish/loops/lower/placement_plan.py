"""Which copies a scheduled program needs, and what `place` is told of each nest and copy, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from planish.loops.ir.graph import Graph, Nest, Operand
from planish.loops.ir.schedule import Order, Packing, Schedule
from planish.loops.ir.tree import LoopId
from planish.loops.lower.pack import Packed, leaving_dimensions, moved, same_view, tile_of, whole_view
from planish.loops.lower.place import NodeLoops


class Copy(NamedTuple):
    """A read or view node that is materialised.

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
        reads: read or view node to the copy that serves it.
        writes: name of a nest to the write node that takes its tile to memory.
    """

    nodes: dict[str, NodeLoops] = field(default_factory=dict[str, NodeLoops])
    copies: dict[str, Copy] = field(default_factory=dict[str, Copy])
    reads: dict[str, str] = field(default_factory=dict[str, str])
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
            leaving = _leaving(self.graph, operand.node)
            if pack is None and not leaving:
                continue
            around = self.schedule.loops[i][: depth_of(self.schedule, pack)] if pack else ()
            # Where the loops around a packing move its padded dimension, each tile's edges would differ: so
            # the whole view is made first, which has the edges already.
            viewed = bool(leaving) and (pack is None or moved(operand.access, leaving, around))
            source = self._view(operand, i) if viewed else operand.access.tensor
            if pack is not None:
                source = self._pack(operand, pack, around, source)
            self.plan.reads[operand.node] = source

    def _view(self, operand: Operand, i: int) -> str:
        access = operand.access
        name = self._unique(f"{access.tensor}.padded")
        packed = _whole_view(self.graph, operand.node, name)
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

    def _later(self, i: int) -> None:
        """Annotate a nest's copies so that they share no loop that the nest itself cannot share."""
        nest = self.graph.nests[i]
        for name, needs in sorted(
            self.later[i], key=lambda item: len(self.plan.copies[item[0]].packed.around)
        ):
            around = self.plan.copies[name].packed.around
            # A copy within loops stands where its nest stands, so it may share no loop that the nest may not.
            both = _meet(needs, self._links(nest)) if around else needs
            self.plan.nodes[name] = NodeLoops(around, both, nest.reduced, copies=True)

    def nest(self, i: int) -> None:
        """Annotate a nest, after the copies that it reads and before the one that takes its tile away."""
        nest, order = self.graph.nests[i], self.schedule.loops[i]
        self._later(i)
        tensor = nest.statement.target.tensor
        staged = frozenset(loop for name, loop in self.schedule.staged if name == tensor)
        pack = next((p for p in self.schedule.packs if p.nest == i and p.tensor == tensor), None)
        # What takes the tile away reads all of it: none of its loops can be shared.
        if pack:
            staged |= frozenset(order[depth_of(self.schedule, pack) :])
        filled = bool(nest.scattered)
        needs = self._needs(nest)
        self.plan.nodes[nest.name] = NodeLoops(order, needs, nest.reduced, staged, filled=filled)
        if pack:
            write = f"write {nest.name}"
            self.plan.writes[nest.name] = write
            loops = _write_order(nest, order, depth_of(self.schedule, pack))
            self.plan.nodes[write] = NodeLoops(loops, {nest.name: frozenset(nest.axes)}, copies=True)

    def _links(self, nest: Nest) -> dict[str, frozenset[str]]:
        """What a nest needs of other nests, by itself or by copies."""
        links: dict[str, frozenset[str]] = {}
        for operand in nest.operands:
            links = _meet(links, {self.graph.nests[j].name: axes for j, axes in operand.links})
        return links

    def _needs(self, nest: Nest) -> dict[str, frozenset[str]]:
        needs: dict[str, frozenset[str]] = {}
        for operand in nest.operands:
            copy = self.plan.reads.get(operand.node)
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
def _leaving(graph: Graph, node: str) -> Sequence[int]:
    """List the dimensions along which a read or view node leaves its tensor."""
    access = graph.operand[node].access
    return leaving_dimensions(access, graph.program.type[access.tensor].shape, graph.program.size)


@lru_cache(maxsize=256)
def _whole_view(graph: Graph, node: str, name: str) -> Packed:
    access = graph.operand[node].access
    return whole_view(name, access, graph.program.type[access.tensor].shape, graph.program.size)


# Of a source that is read twice, both reads limit which axes need only the same iteration.
def _meet(a: Mapping[str, frozenset[str]], b: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {name: a.get(name, axes) & axes for name, axes in {**a, **b}.items()}
