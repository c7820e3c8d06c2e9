"""Which part of a loop tree can keep its results in registers.

LoopNest holds the output of the largest scope that fits the register file (thesis 3.4.2, "no spilling of the
result tensor"). A scope is accepted here when all elements that its reductions write, and all elements that
pass between its leaves, have a register each, and the processor keeps enough others for the operands.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from planish.loops.extent import remaining
from planish.loops.mathlib import EXPANDED
from planish.loops.program import IDENTITY, Const
from planish.loops.tree import Call, Leaf, Loop, LoopId, LoopTree, Node, Ref, Value, leaves, refs
from planish.loops.x86.isa import Isa
from planish.loops.x86.paths import Path, instances, leaf_paths, positions, vector_loop
from planish.loops.x86.pointers import leaf_refs

Key = tuple[str, int, int]
"""(buffer, offset in elements relative to the scope, lanes): one vector that a register holds."""

UNROLLED_MAX = 320
STREAM_MAX = 8


@dataclass
class Region:
    """A scope whose results live in registers.

    Args:
        registers: each vector's registers; several where sums are kept in parts to hide latency.
        reduce: how the parts of a buffer's vectors are combined, for buffers that are reduced.
        lanewise: vectors that are summed lane by lane until the scope's end, as reduced buffers' scalars.
        fresh: buffers that the scope initialises, so that memory is not read.
        local: buffers that live inside the scope only, so that memory is not written.
        homes: one reference for each vector, which tells where it is in memory.
        stride: elements between lanes of each held buffer.
        listed: targets whose vectors are in `homes`, with the loops that move them.
    """

    registers: dict[Key, list[int]] = field(default_factory=dict[Key, list[int]])
    reduce: dict[str, str] = field(default_factory=dict[str, str])
    lanewise: set[str] = field(default_factory=set[str])
    fresh: set[str] = field(default_factory=set[str])
    local: set[str] = field(default_factory=set[str])
    homes: dict[Key, Ref] = field(default_factory=dict[Key, Ref])
    stride: dict[str, int] = field(default_factory=dict[str, int])
    listed: set[tuple[Ref, tuple[LoopId, ...], LoopId | None]] = field(
        default_factory=set[tuple[Ref, tuple[LoopId, ...], LoopId | None]]
    )


def _is_multiply(value: Value) -> bool:
    return isinstance(value, Call) and value.function == "mul" and all(isinstance(a, Ref) for a in value.args)


def _depth(value: Value) -> int:
    return 1 + max(map(_depth, value.args)) if isinstance(value, Call) else 0


def _expanded(value: Value) -> bool:
    return isinstance(value, Call) and (value.function in EXPANDED or any(map(_expanded, value.args)))


class _Scope(NamedTuple):
    """What there is to know of a scope, whatever remains of its axes.

    Args:
        nodes: what it holds.
        found: its leaves, with the loops inside the scope that lead to them.
        held: the buffers to be held in registers.
        local: those of them that nothing outside uses.
        telling: the loops of one leaf, which mostly tells by itself that the scope is too large.
        most: how many vectors that leaf may write.
    """

    nodes: tuple[Node, ...]
    found: list[tuple[Leaf, Path]]
    held: set[str]
    local: set[str]
    telling: Path
    most: int


class Analyser:
    """Decides about scopes of one tree.

    Args:
        tree: the whole tree.
        isa: instruction set and element type.
    """

    def __init__(self, tree: LoopTree, isa: Isa) -> None:
        self.tree = tree
        self.isa = isa
        self._total: dict[str, int] = {}
        self._scopes: dict[tuple[int, ...], _Scope] = {}
        self._moves: dict[int, tuple[Loop, bool]] = {}
        for leaf in (*leaves(tree.body), *leaves(tree.ahead)):
            for ref in leaf_refs(leaf):
                self._total[ref.buffer] = self._total.get(ref.buffer, 0) + 1

    def moves_target(self, loop: Loop) -> bool:
        """Whether some leaf below writes along the loop; if not, the loop only reduces."""
        known = self._moves.get(id(loop))
        if known is None:
            moves = any(loop.id in leaf.target.stride for leaf in leaves(loop.body))
            known = self._moves[id(loop)] = loop, moves
        return known[1]

    def region(self, nodes: tuple[Node, ...], inside: dict[str, int]) -> Region | None:
        """Plan the registers of a scope; None if it does not fit. A single element always does."""
        planned = self._planned(nodes, inside)
        if planned is None and len(nodes) == 1 and isinstance(nodes[0], Leaf):
            return Region()
        return planned

    def _planned(self, nodes: tuple[Node, ...], inside: dict[str, int]) -> Region | None:
        scope = self._scope(nodes)
        if self._unrolled(scope.telling, inside) > scope.most:
            return None
        found, held = scope.found, scope.held
        if not self._small(nodes, inside, found, bool(held)):
            return None
        budget = max(1, self.isa.registers - max(self._operands(leaf, path) for leaf, path in found))
        if held and not self._fits([(leaf, path) for leaf, path in found if leaf.reduce], inside, budget):
            return None
        region = Region(local=scope.local)
        if not self._collect(region, found, held, inside) or len(region.homes) > budget:
            return None
        early = _read_early(found, region)
        if early & region.lanewise:
            return None
        self._assign(region, nodes, inside, 0 if early else budget)
        return region

    def _scope(self, nodes: tuple[Node, ...]) -> _Scope:
        key = tuple(map(id, nodes))
        if key not in self._scopes:
            found = list(leaf_paths(nodes))
            held, local = self._held(found)
            telling = next((path for leaf, path in found if leaf.reduce), found[0][1])
            reduces = any(leaf.reduce for leaf, _ in found)
            most = self.isa.registers if reduces else UNROLLED_MAX if held else STREAM_MAX
            self._scopes[key] = _Scope(nodes, found, held, local, telling, most)
        return self._scopes[key]

    def _held(self, found: list[tuple[Leaf, Path]]) -> tuple[set[str], set[str]]:
        """The buffers to be held in registers, and those of them that nothing outside uses."""
        counts: dict[str, int] = {}
        for leaf, _ in found:
            for ref in leaf_refs(leaf):
                counts[ref.buffer] = counts.get(ref.buffer, 0) + 1
        written = {leaf.target.buffer for leaf, _ in found}
        reduced = {leaf.target.buffer for leaf, _ in found if leaf.reduce}
        local = {
            b for b in written if self.tree.buffer[b].kind == "temporary" and counts[b] == self._total[b]
        }
        return reduced | local, local

    def _small(
        self, nodes: tuple[Node, ...], inside: dict[str, int], found: list[tuple[Leaf, Path]], held: bool
    ) -> bool:
        """Whether what must be unrolled is short enough."""
        lanes = self.isa.lanes
        if not held:
            return instances(self.tree, nodes, inside, lanes, STREAM_MAX) <= STREAM_MAX
        return all(self._unrolled(path, inside) <= UNROLLED_MAX for _, path in found)

    def _unrolled(self, path: Path, inside: dict[str, int]) -> int:
        left = dict(inside)
        vector = vector_loop(path)
        count = 1
        for loop in path:
            here = remaining(self.tree, left, loop.axis)
            step = self.isa.lanes if loop is vector else loop.step
            if self.moves_target(loop):
                count *= -(-here // step)
            left[loop.axis] = min(loop.step, here)
        return count

    def _operands(self, leaf: Leaf, path: Path) -> int:
        """Vector registers that a leaf needs besides those that hold results."""
        vector = vector_loop(path)
        strided = vector is not None and any(r.stride.get(vector.id, 0) > 1 for r in leaf_refs(leaf))
        spare = strided + (not self.isa.wide)
        if leaf.reduce == "add" and _is_multiply(leaf.value):
            return 2 + spare
        base = 3 if self.isa.wide else 5
        return base + _depth(leaf.value) + spare + (6 if _expanded(leaf.value) else 0)

    def _fits(self, reducing: list[tuple[Leaf, Path]], inside: dict[str, int], budget: int) -> bool:
        return all(self._unrolled(path, inside) <= budget for _, path in reducing)

    def _collect(
        self, region: Region, found: list[tuple[Leaf, Path]], held: set[str], inside: dict[str, int]
    ) -> bool:
        """List the vectors to hold; false if the leaves do not agree on them."""
        outer: dict[str, tuple[tuple[tuple[str, int], int], ...]] = {}
        written = {leaf.target.buffer for leaf, _ in found}
        for leaf, path in found:
            inner = {loop.id for loop in path}
            vector = vector_loop(path)
            for ref in leaf_refs(leaf):
                if ref.buffer not in held:
                    if ref is not leaf.target and ref.buffer in written:
                        return False
                    continue
                outside = tuple(item for item in ref.strides if item[0] not in inner)
                if outer.setdefault(ref.buffer, outside) != outside:
                    return False
            if leaf.target.buffer in held and not self._collect_target(region, leaf, path, vector, inside):
                return False
        return not _overlaps(region) and all(
            self._agrees(region, leaf, path, held, inside) for leaf, path in found
        )

    def _collect_target(
        self, region: Region, leaf: Leaf, path: Path, vector: Loop | None, inside: dict[str, int]
    ) -> bool:
        target = leaf.target
        stride = target.stride.get(vector.id, 0) if vector else 0
        if leaf.reduce:
            if region.reduce.setdefault(target.buffer, leaf.reduce) != leaf.reduce:
                return False
            if vector is not None and stride == 0:
                region.lanewise.add(target.buffer)
        elif isinstance(leaf.value, Const):
            if self._begins_again(target, path, inside):
                return False
            region.fresh.add(target.buffer)
        elif target.buffer not in region.local:
            return False
        if stride and region.stride.setdefault(target.buffer, stride) != stride:
            return False
        self._list(region, target, path, vector, inside)
        return True

    def _list(
        self, region: Region, target: Ref, path: Path, vector: Loop | None, inside: dict[str, int]
    ) -> None:
        """Note the vectors that a target names, unless it is known from another leaf."""
        moving = tuple(loop.id for loop in path if loop.id in target.stride)
        still = {loop.axis for loop in path if loop.id not in target.stride}
        listed = target, moving, vector and vector.id
        if listed not in region.listed:
            for offset, lanes in positions(self.tree, path, target, vector, self.isa.lanes, inside):
                region.homes[target.buffer, offset, lanes] = target
        if still.isdisjoint(axis for axis, _ in moving):
            region.listed.add(listed)

    def _begins_again(self, target: Ref, path: Path, inside: dict[str, int]) -> bool:
        """Whether an element is initialised several times here: then it is several results in turn."""
        left = dict(inside)
        for loop in path:
            here = remaining(self.tree, left, loop.axis)
            if loop.id not in target.stride and here > loop.step:
                return True
            left[loop.axis] = min(here, loop.step)
        return False

    def _agrees(self, region: Region, leaf: Leaf, path: Path, held: set[str], inside: dict[str, int]) -> bool:
        """Whether every held vector that a leaf reads is one that some leaf writes."""
        vector = vector_loop(path)
        target = leaf.target.buffer
        if isinstance(leaf.value, Const) and target in region.reduce:
            if leaf.value.value != IDENTITY[region.reduce[target]]:
                return False
        elif not leaf.reduce and target in region.reduce:
            return False
        for ref in refs(leaf.value):
            if ref.buffer not in held:
                continue
            if ref.buffer in region.lanewise and vector is not None and vector.id in ref.stride:
                return False
            stride = ref.stride.get(vector.id, 0) if vector else 0
            if stride != region.stride.get(ref.buffer, 0) and (stride or ref.buffer in region.stride):
                return False
            for offset, lanes in positions(self.tree, path, ref, vector, self.isa.lanes, inside):
                if (ref.buffer, offset, lanes) not in region.homes:
                    return False
        return True

    def _assign(self, region: Region, nodes: tuple[Node, ...], inside: dict[str, int], budget: int) -> None:
        """Give each vector its registers, and sums several where few of them would wait for each other."""
        reduced = [key for key in region.homes if key[0] in region.reduce]
        others = [key for key in region.homes if key[0] not in region.reduce]
        copies = 1
        few = 0 < len(reduced) < 8
        if few and instances(self.tree, nodes, inside, self.isa.lanes, UNROLLED_MAX) > 2 * len(region.homes):
            copies = max(1, min(4, -(-8 // len(reduced)), (budget - len(others)) // len(reduced)))
        number = self.isa.registers
        for key in (*reduced, *others):
            take = copies if key in reduced else 1
            region.registers[key] = [number - 1 - i for i in range(take)]
            number -= take


def _overlaps(region: Region) -> bool:
    places: dict[str, list[tuple[int, int]]] = {}
    for buffer, offset, lanes in region.homes:
        places.setdefault(buffer, []).append((offset, lanes))
    return any(_overlap(vectors, region.stride.get(buffer, 1)) for buffer, vectors in places.items())


def _overlap(vectors: list[tuple[int, int]], stride: int) -> bool:
    if stride > 1:
        elements = [offset + i * stride for offset, lanes in vectors for i in range(lanes)]
        return len(set(elements)) < len(elements)
    vectors.sort()
    return any(offset + lanes > after for (offset, lanes), (after, _) in pairwise(vectors))


def _read_early(found: list[tuple[Leaf, Path]], region: Region) -> set[str]:
    """The reduced buffers that are read in the very node that reduces them, before it has ended."""
    tops = {(leaf.target.buffer, id(path[0])) for leaf, path in found if leaf.reduce and path}
    read = {(ref.buffer, id(path[0])) for leaf, path in found if path for ref in refs(leaf.value)}
    return {buffer for buffer, _ in tops & read} & region.reduce.keys()
