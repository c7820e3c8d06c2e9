"""Which buffers a placed program needs, and how small each can be (thesis 3.5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal

from planish.loops.ir.graph import Graph, Nest, plain_axis
from planish.loops.ir.schedule import Order, Schedule
from planish.loops.ir.tree import Buffer, Ref
from planish.loops.lang.program import COPIED, POSITIONS, Access, Index
from planish.loops.lower.layout import Location, row_major, tile
from planish.loops.lower.place import place
from planish.loops.lower.placement_plan import plan

_KINDS = {"input": 0, "output": 1, "ahead": 2, "temporary": 3}


@dataclass(frozen=True)
class _Reader:
    node: str
    index: tuple[Index, ...]


class Memory:
    """A schedule placed: its buffers, and where each tensor, tile and copy lies."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.graph = schedule.graph
        self.plan = plan(schedule)
        self.placement = place(self.plan.nodes, frozenset(loop for _, loop in schedule.parallel))
        self.inlined: set[str] = set()
        self.locations: dict[str, Location] = {}
        """Tensor, or buffer of a tile or a whole view, to where it lies."""
        self._found: list[Buffer] = []
        self._of_caller()
        self._of_positions()
        self._of_copies()
        for tensor, writers in self.graph.writers.items():
            if tensor not in self.locations:
                self._intermediate(tensor, [self.graph.nests[i] for i in writers])
        for name, write in self.plan.writes.items():
            nest = self.graph.nests[self.graph.nest[name]]
            self._tile(f"{name}.tile", [nest], [_Reader(write, nest.statement.target.index)])

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers, in the order of the calling convention."""
        return tuple(sorted(self._found, key=lambda buffer: _KINDS[buffer.kind]))

    def target(self, nest: Nest) -> Location:
        """Find where a nest puts its results."""
        tiled = nest.name in self.plan.writes
        return self.locations[f"{nest.name}.tile" if tiled else nest.statement.target.tensor]

    def use(self, copy: str, access: Access, path: Order) -> Ref:
        """Read an element of a copy."""
        if copy in self.locations:
            return self.locations[copy].ref(access.index, path)
        return self.plan.copies[copy].packed.use(path)

    def _of_caller(self) -> None:
        for buffer, location in _caller_memory(self.graph):
            self._found.append(buffer)
            self.locations[buffer.name] = location

    def _of_positions(self) -> None:
        if kind := self.schedule.program.type.get(POSITIONS):
            self._found.append(Buffer(POSITIONS, kind.dtype, kind.size, "ahead"))
            self.locations[POSITIONS] = Location(POSITIONS, (1,))

    def _of_copies(self) -> None:
        for name, copy in self.plan.copies.items():
            packed = copy.packed
            dtype = self.schedule.program.type[packed.access.tensor].dtype
            kind = "ahead" if copy.ahead else "temporary"
            self._found.append(Buffer(name, COPIED[dtype], packed.size, kind, len(packed.around)))
            if copy.whole:
                # A whole view begins where its window does, which may be before the tensor: subscripts count
                # from there.
                origin = tuple(index.offset for index in packed.access.index)
                self.locations[name] = Location(name, packed.strides, origin=origin)

    def _intermediate(self, tensor: str, writers: Sequence[Nest]) -> None:
        readers = [
            _Reader(self._reader(operand.node, nest), operand.access.index)
            for nest in self.graph.nests
            for operand in nest.operands
            if operand.access.tensor == tensor
        ]
        self._tile(tensor, writers, readers)

    def _reader(self, node: str, nest: Nest) -> str:
        """Find which node reads memory for an operand: the nest, or the copy that it begins with."""
        name = self.plan.reads.get(node)
        if name is None:
            return nest.name
        source = self.plan.copies[name].source
        # A packed view is a copy of a copy: the view is what touches the tensor.
        return source if source in self.plan.copies else name

    def _tile(self, name: str, writers: Sequence[Nest], readers: Sequence[_Reader]) -> None:
        shared = self.placement.shared
        # A buffer lives in the loops that all who touch it share.
        depth = min(shared(w.name, r.node) for w in writers for r in readers)
        if self._same_body(writers, readers, depth):
            self.inlined.add(writers[0].name)
            return
        target = writers[0].statement.target
        type_ = self.schedule.program.type[target.tensor]
        indices = [*(w.statement.target.index for w in writers), *(r.index for r in readers)]
        order = tuple(p.loop for p in self.placement.path[writers[0].name])
        relative: list[bool] = []
        extents: list[int] = []
        for d, extent in enumerate(type_.shape):
            axis = plain_axis(target.index[d])
            # A tile will do only where all subscripts agree: then an iteration touches its own part alone.
            alone = axis is not None and d not in writers[0].scattered
            same = depth > 0 and alone and all(index[d] == target.index[d] for index in indices)
            relative.append(same)
            size = self.schedule.program.size
            extents.append(tile(axis, order[:depth], size[axis]) if same and axis else extent)
        # So that it is written in sequence.
        dims = _by_innermost_loop(target, order) if len(writers) == 1 else None
        dtype = self.schedule.program.arithmetic
        self._found.append(Buffer(name, dtype, prod(extents), "temporary", depth))
        self.locations[name] = Location(name, row_major(extents, dims), depth, tuple(relative))

    def _same_body(self, writers: Sequence[Nest], readers: Sequence[_Reader], depth: int) -> bool:
        # A result that a reduction adds to needs a place; so does what a copy reads.
        nodes = [writers[0].name, *(r.node for r in readers)]
        whole = all(len(self.placement.path[n]) == depth and n not in self.plan.copies for n in nodes)
        return len(writers) == 1 and whole and writers[0].name not in self.placement.start


@lru_cache(maxsize=256)
def _caller_memory(graph: Graph) -> Sequence[tuple[Buffer, Location]]:
    """List the inputs and outputs, which are the same for all schedules of a program."""
    program = graph.program
    kinds: dict[str, Literal["input", "output"]] = dict.fromkeys(program.inputs, "input")
    kinds |= dict.fromkeys(program.outputs, "output")
    found: list[tuple[Buffer, Location]] = []
    for tensor, kind in kinds.items():
        type_ = program.type[tensor]
        found.append((Buffer(tensor, type_.dtype, type_.size, kind), Location(tensor, type_.strides())))
    return found


def _by_innermost_loop(target: Access, order: Order) -> list[int]:
    """Order a target's dimensions as the innermost loops walk them; those without a loop first."""
    last = {axis: i for i, (axis, _) in enumerate(order)}

    def innermost(d: int) -> int:
        return max([last.get(axis, -1) for axis, _ in target.index[d].terms], default=-1)

    return sorted(range(len(target.index)), key=innermost)
