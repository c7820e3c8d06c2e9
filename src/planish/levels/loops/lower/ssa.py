"""Annotation for code generators whose values have names, and are given registers later (LLVM).

What is held is a set of cells: each vector or scalar of memory that a part of the tree touches has a name.
The largest part whose reduced elements fit the registers is found from the top (thesis 3.4.2). Inside it,
loops that move those elements are unrolled, so that each copy has names of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planish.levels.loops.ir.annotated import (
    AnnotatedTree,
    Block,
    Cell,
    CellRegion,
    Function,
    Inside,
    Item,
    Lanes,
    Nest,
    Part,
    Piece,
    Positions,
    Unrolled,
    Vectors,
    cell,
    position,
    summed,
)
from planish.levels.loops.ir.tree import (
    Call,
    Leaf,
    Loop,
    LoopId,
    LoopTree,
    Node,
    Ref,
    Remaining,
    Value,
    iterations,
    leaves,
    refs,
    remaining,
    within,
)
from planish.levels.loops.lower.mathlib import EXPANDED, expansion
from planish.levels.loops.lower.memory_spaces import entry_groups, spaces_of

# Vectors


class VectorAnalysis:
    """Answers questions about one tree for one machine."""

    def __init__(self, tree: LoopTree, vectors: Vectors, dtype: str) -> None:
        self.tree = tree
        self.vectors = vectors
        self.lanes = vectors.lanes
        self.masks = vectors.masks
        self.dtype = dtype
        self._kept: dict[object, bool | int] = {}

    def vectorised(self, node: Node, inside: Remaining, depth: int) -> bool:
        """Return whether a loop is executed in vectors: an innermost loop of independent iterations.

        Args:
            node: a loop, or a leaf, which is none.
            inside: what remains outside it.
            depth: how many loops enclose it.
        """
        if isinstance(node, Leaf) or any(isinstance(n, Loop) for n in node.body):
            return False
        trip = self.trip(node, inside)
        key = ("vector", id(node), trip)
        if key not in self._kept:
            self._kept[key] = trip > 1 and self._independent(node, trip, depth + 1)
        return bool(self._kept[key])

    def trip(self, loop: Loop, inside: Remaining) -> int:
        """Count a loop's iterations, the tail included."""
        full, tail = iterations(self.tree, inside, loop)
        return full + (tail > 0)

    def _independent(self, loop: Loop, trip: int, depth: int) -> bool:
        if loop.looks_up:
            return False
        body = tuple(leaves(loop.body))
        for leaf in body:
            target = leaf.target
            if self.lane_private(target.buffer, depth):
                continue
            others = [r for x in body for r in (x.target, *refs(x.value)) if r.buffer == target.buffer]
            if loop.id not in target.stride:
                if leaf.reduce is None or len(others) > 1:
                    return False
            elif not all(_apart(target, other, loop.id, trip) for other in others):
                return False
        return True

    def lane_private(self, buffer: str, depth: int) -> bool:
        """Return whether a temporary lives within one iteration of the vectorised loop at a depth."""
        found = self.tree.buffer[buffer]
        return found.kind == "temporary" and found.scope == depth

    def partial(self, leaf: Leaf, loop: Loop, depth: int) -> bool:
        """Return whether a leaf of a vectorised loop reduces along it; `depth` counts that loop too."""
        target = leaf.target
        return loop.id not in target.stride and not self.lane_private(target.buffer, depth)

    def pieces(self, trip: int, whole: bool) -> tuple[int, int, list[Piece]]:
        """Cut an innermost loop into vectors.

        Args:
            trip: its iterations.
            whole: whether all vectors must have the same number of lanes.

        Returns:
            Lanes of the full vectors, how many full vectors there are, and what follows them.
        """
        lanes = min(self.lanes, _power(trip)) if whole else self.lanes
        full, rest = divmod(trip, lanes)
        start = full * lanes
        if not rest:
            return lanes, full, []
        if whole or self.masks:
            return lanes, full, [Piece(start, lanes if whole else _power(rest), rest)]
        # Without masks the rest is cut into powers of 2 that become ever smaller.
        tail: list[Piece] = []
        while rest:
            part = _power(rest + 1) // 2
            tail.append(Piece(start, part, part))
            start, rest = start + part, rest - part
        return lanes, full, tail

    def volume(self, nodes: tuple[Node, ...], inside: Remaining, depth: int) -> int:
        """Count the vector operations of nodes when all is unrolled."""
        key = ("volume", tuple(map(id, nodes)), tuple(inside.items()))
        if key not in self._kept:
            self._kept[key] = sum(self._volume(node, inside, depth) for node in nodes)
        return int(self._kept[key])

    def _volume(self, node: Node, inside: Remaining, depth: int) -> int:
        if isinstance(node, Leaf):
            return self.weight(node)
        if self.vectorised(node, inside, depth):
            _, full, tail = self.pieces(self.trip(node, inside), whole=False)
            return (full + len(tail)) * sum(map(self.weight, leaves(node.body)))
        full, tail = iterations(self.tree, inside, node)
        total = full * self.volume(node.body, within(inside, node.axis, node.step), depth + 1) if full else 0
        return total + (self.volume(node.body, within(inside, node.axis, tail), depth + 1) if tail else 0)

    def weight(self, leaf: Leaf) -> int:
        """Count a leaf's operations; a product that is added counts as one."""
        key = ("weight", id(leaf))
        if key not in self._kept:
            self._kept[key] = max(1, self._operations(leaf.value))
        return int(self._kept[key])

    def _operations(self, value: Value) -> int:
        if not isinstance(value, Call):
            return 0
        own = len(expansion(value.function, self.dtype)) if value.function in EXPANDED else 1
        return own + sum(map(self._operations, value.args))

    def moves(self, node: Node, held: frozenset[str]) -> bool:
        """Return whether a loop moves some reference to these buffers."""
        if isinstance(node, Leaf):
            return False
        key = ("moves", id(node), held)
        if key not in self._kept:
            found = (r for leaf in leaves(node.body) for r in (leaf.target, *refs(leaf.value)))
            self._kept[key] = any(r.buffer in held and node.id in r.stride for r in found)
        return bool(self._kept[key])


def _power(n: int) -> int:
    """Return the least power of 2 that is not less."""
    return 1 << (n - 1).bit_length()


def _apart(a: Ref, b: Ref, loop: LoopId, trip: int) -> bool:
    """Return whether two references meet only in the same iteration of a loop; both move along it or not."""
    if a.stride != b.stride:
        return False
    distance, stride = abs(a.offset - b.offset), a.stride[loop]
    # Iterations i and j of the two are |i - j| * stride apart.
    return distance == 0 or distance % stride != 0 or distance // stride >= trip


# Scopes

UNROLLED_MOST = 512
"""Vector operations that a part which must be unrolled may come to."""


@dataclass(frozen=True)
class Scope:
    """Nodes during which registers hold some buffers' elements.

    Args:
        held: those buffers.
        parts: accumulators for each element that is reduced lane by lane; a power of 2.
    """

    held: frozenset[str]
    parts: int = 1


class Scopes:
    """Plans the scopes of one tree.

    Args:
        analysis: of the tree.
        budget: how many registers may hold cells.
    """

    def __init__(self, analysis: VectorAnalysis, budget: int) -> None:
        self.analysis = analysis
        self.budget = budget

    def find(self, nodes: tuple[Node, ...], inside: Remaining, at: Positions, depth: int) -> Scope | None:
        """Plan to hold what nodes reduce, and if possible what passes between them, in registers.

        Returns:
            None where it does not fit, or where it is better decided further inside.
        """
        shared, reduced = self._candidates(nodes, inside, depth)
        for held in dict.fromkeys((shared, reduced)):
            moved = len(nodes) == 1 and self.analysis.moves(nodes[0], held)
            if held and not moved and self._small(nodes, inside, depth, held):
                scope = self._fitting(nodes, inside, at, depth, held)
                if scope:
                    return scope
        return None

    def _candidates(
        self, nodes: tuple[Node, ...], inside: Remaining, depth: int
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the buffers that are reduced or read after being written, and those that are reduced."""
        private: set[str] = set()
        for node in nodes:
            private |= self._lane_privates(node, inside, depth)
        found = list(leaves(nodes))
        written = {x.target.buffer for x in found} - private
        read = {r.buffer for x in found for r in refs(x.value)}
        reduced = {x.target.buffer for x in found if x.reduce} - private
        return frozenset(written & (read | reduced)), frozenset(reduced)

    def _lane_privates(self, node: Node, inside: Remaining, depth: int) -> set[str]:
        if isinstance(node, Leaf):
            return set()
        if self.analysis.vectorised(node, inside, depth):
            names = {leaf.target.buffer for leaf in leaves(node.body)}
            return {n for n in names if self.analysis.lane_private(n, depth + 1)}
        step = min(node.step, remaining(self.analysis.tree, inside, node.axis))
        inner = within(inside, node.axis, step)
        return set().union(*(self._lane_privates(n, inner, depth + 1) for n in node.body))

    def _small(self, nodes: tuple[Node, ...], inside: Remaining, depth: int, held: frozenset[str]) -> bool:
        """Return whether the loops that move what is held may be unrolled, with all that is inside them."""
        for node in nodes:
            if isinstance(node, Leaf):
                continue
            if self.analysis.moves(node, held):
                if self.analysis.volume((node,), inside, depth) > UNROLLED_MOST:
                    return False
            elif not self.analysis.vectorised(node, inside, depth):
                step = min(node.step, remaining(self.analysis.tree, inside, node.axis))
                if not self._small(node.body, within(inside, node.axis, step), depth + 1, held):
                    return False
        return True

    def _fitting(
        self, nodes: tuple[Node, ...], inside: Remaining, at: Positions, depth: int, held: frozenset[str]
    ) -> Scope | None:
        found: dict[Cell, None] = {}
        for touched in self.cells(nodes, inside, at, depth, Scope(held)):
            found[touched] = None
            if len(found) > self.budget:
                return None
        # An element in two registers would be old in one of them.
        if _overlap(found):
            return None
        partial = sum(bool(c.reduce) for c in found)
        return Scope(held, self._parts(partial, len(found)))

    def _parts(self, partial: int, cells: int) -> int:
        """Accumulators for each of `partial` elements, enough to hide the latency of an addition."""
        parts = 1
        # Eight in flight: an addition takes some four cycles, and two begin in each.
        while partial and partial * parts < 8 and cells + partial * (2 * parts - 1) <= self.budget:
            parts *= 2
        return parts

    def cells(
        self, nodes: tuple[Node, ...], inside: Remaining, at: Positions, depth: int, scope: Scope
    ) -> Iterator[Cell]:
        """List the cells that nodes touch, some several times.

        Args:
            nodes: what is executed.
            inside: what remains there.
            at: positions of the enclosing loops; those that only move at run time are absent.
            depth: how many loops enclose the nodes.
            scope: what is held.
        """
        for node in nodes:
            if isinstance(node, Leaf):
                for ref in (node.target, *refs(node.value)):
                    if ref.buffer in scope.held:
                        yield Cell(ref.buffer, position(ref, at))
            elif self.analysis.vectorised(node, inside, depth):
                yield from self._vector_cells(node, inside, at, depth + 1, scope)
            else:
                full, tail = iterations(self.analysis.tree, inside, node)
                moved = self.analysis.moves(node, scope.held)
                # Other loops touch the same cells in every iteration.
                for i in range(full if moved else min(full, 1)):
                    inner = within(inside, node.axis, node.step)
                    yield from self.cells(node.body, inner, {**at, node.id: i}, depth + 1, scope)
                if tail:
                    inner = within(inside, node.axis, tail)
                    yield from self.cells(node.body, inner, {**at, node.id: full}, depth + 1, scope)

    def _vector_cells(
        self, loop: Loop, inside: Remaining, at: Positions, depth: int, scope: Scope
    ) -> Iterator[Cell]:
        body = tuple(leaves(loop.body))
        whole = any(self.analysis.partial(leaf, loop, depth) for leaf in body)
        lanes, full, tail = self.analysis.pieces(self.analysis.trip(loop, inside), whole)
        count = full if self.analysis.moves(loop, scope.held) else min(full, scope.parts)
        for i, piece in enumerate([*(Piece(j * lanes, lanes, lanes) for j in range(count)), *tail]):
            here = {**at, loop.id: piece.start}
            for leaf in body:
                if leaf.target.buffer in scope.held:
                    if self.analysis.partial(leaf, loop, depth):
                        yield summed(leaf, here, piece, i % scope.parts)
                    else:
                        yield cell(leaf.target, here, loop, piece)
                for ref in refs(leaf.value):
                    if ref.buffer in scope.held:
                        yield cell(ref, here, loop, piece)


def _overlap(cells: Mapping[Cell, None]) -> bool:
    """Return whether two cells share an element."""
    seen: set[tuple[str, int]] = set()
    total = 0
    for c in cells:
        elements = range(c.offset, c.offset + c.active * c.stride, c.stride) if c.stride else (c.offset,)
        seen.update((c.buffer, e) for e in elements)
        total += len(elements)
    return len(seen) != total


# State


class Held(NamedTuple):
    """Contents of registers here, and their locations in memory, by buffer."""

    scope: Scope
    homes: Mapping[str, Ref]


class State(NamedTuple):
    """Location in the tree where a decision is made.

    Args:
        inside: what remains of the axes.
        at: positions of the enclosing loops; in a counted one, those of its first iteration.
        counted: the enclosing loops that move at run time.
        held: what registers hold.
        unrolling: whether a loop around moves what is held, so that all inside it is unrolled.
    """

    inside: Inside
    at: Positions
    counted: tuple[LoopId, ...] = ()
    held: Held | None = None
    unrolling: bool = False

    def within(self, loop: Loop, rest: int, at: int) -> State:
        """Return the state in an iteration of a loop."""
        inside = within(self.inside, loop.axis, rest)
        return self._replace(inside=inside, at={**self.at, loop.id: at})


def homes_of(scope: Scope, nodes: tuple[Node, ...], counted: Sequence[LoopId]) -> Mapping[str, Ref] | None:
    """Find a reference of each held buffer; None if the loops of run time move its references apart."""
    homes: dict[str, Ref] = {}
    for leaf in leaves(nodes):
        for ref in leaf.refs:
            if ref.buffer in scope.held:
                home = homes.setdefault(ref.buffer, ref)
                if [home.stride.get(loop, 0) for loop in counted] != [
                    ref.stride.get(loop, 0) for loop in counted
                ]:
                    return None
    return homes


# Unrolling

SMALL = 16
"""A loop of so few vector operations is unrolled, and a body is repeated up to so many."""
SMALL_HELD = 128
"""As `SMALL`, where registers hold the results."""
SMALL_VECTORS = 32
"""As `SMALL`, for an innermost loop."""
CHUNK = 4
"""Vectors in one iteration of a long innermost loop."""


class Unrolling:
    """Answers for one tree.

    Args:
        scopes: of the tree.
    """

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._analysis = scopes.analysis

    def moves_held(self, loop: Loop, state: State) -> bool:
        return state.held is not None and self._analysis.moves(loop, state.held.scope.held)

    def copies(self, loop: Loop, state: State, full: int) -> int:
        """Return how often to repeat a loop's body; `full` times, where it is to be no loop at all."""
        if full <= 1 or state.unrolling or self.moves_held(loop, state):
            return full
        inner = within(state.inside, loop.axis, loop.step)
        volume = self._analysis.volume(loop.body, inner, len(state.at) + 1)
        asked = loop.kind == "unroll"
        most = UNROLLED_MOST if asked else SMALL_HELD if state.held else SMALL
        if volume * full <= most:
            return full
        return max(1, (UNROLLED_MOST if asked else SMALL) // volume)

    def carried(self, loop: Loop, state: State) -> tuple[Cell, ...]:
        """List the held cells that a counted loop touches, counted from their homes."""
        if state.held is None:
            return ()
        scope, homes = state.held
        at = state.at
        shift = {name: position(home, at) - home.offset for name, home in homes.items()}
        found = self._scopes.cells((loop,), state.inside, at, len(at), scope)
        return tuple([c._replace(offset=c.offset - shift[c.buffer]) for c in dict.fromkeys(found)])

    def chunk(self, loop: Loop, full: int, state: State) -> int:
        """Return how many vectors an iteration writes; more than `full`, where there is to be no loop."""
        volume = sum(map(self._analysis.weight, leaves(loop.body)))
        most = UNROLLED_MOST if loop.kind == "unroll" else SMALL_VECTORS
        if state.unrolling or self.moves_held(loop, state) or full * volume <= most:
            return full + 1
        parts = state.held.scope.parts if state.held else 1
        # As many as a sum has parts at least: vectors take these by turns.
        return max(parts, min(CHUNK, 64 // volume), 1)


# Annotation

OTHER_REGISTERS = 4
"""Registers that are left for operands, where others hold results."""


def annotate(tree: LoopTree, vectors: Vectors, dtype: str) -> AnnotatedTree:
    """Decide how a tree is executed.

    Args:
        tree: what is executed.
        vectors: of the machine.
        dtype: the tree's element type.
    """
    scopes = Scopes(VectorAnalysis(tree, vectors, dtype), vectors.registers - OTHER_REGISTERS)
    body, ahead = [
        tuple([_Annotator(scopes).function(nodes, len(groups) == 1) for nodes in groups])
        for groups in (entry_groups(tree.body), entry_groups(tree.ahead))
    ]
    return AnnotatedTree(tree, vectors, body, ahead, spaces_of(tree, (*body, *ahead)))


class _Annotator:
    def __init__(self, scopes: Scopes) -> None:
        self.analysis: VectorAnalysis = scopes.analysis
        self.tree: LoopTree = scopes.analysis.tree
        self.scopes = scopes
        self.unrolling = Unrolling(scopes)
        self._apart: dict[int, frozenset[LoopId]] = {}

    def function(self, nodes: tuple[Node, ...], whole: bool) -> Function:
        """Annotate some root nodes, all of them or not."""
        node, start = nodes[0], State({}, {})
        if not (isinstance(node, Loop) and node.concurrent):
            return Function(nodes, self._nodes(nodes, start, whole=whole))
        full, tail = iterations(self.tree, {}, node)
        parts: list[Part] = []
        if full:
            inner = start.within(node, node.step, 0)._replace(counted=(node.id,))
            parts.append(Part("parallel", 0, full, 1, self._nodes(node.body, inner)))
        if tail:
            body = self._nodes(node.body, start.within(node, tail, full))
            parts.append(Part("unrolled", full, 1, 1, body))
        return Function(nodes, Nest(node, tuple(parts)), "parallel")

    def _nodes(self, nodes: tuple[Node, ...], state: State, *, whole: bool = True) -> Item:
        """Annotate nodes: all of a loop's body, which then ends the lives of its temporaries, or a part."""
        if state.held is None:
            scope = self.scopes.find(nodes, state.inside, state.at, len(state.at))
            homes = homes_of(scope, nodes, state.counted) if scope else None
            if scope and homes:
                inner = state._replace(held=Held(scope, homes))
                return self._region(nodes, inner, self._each(nodes, inner), whole)
            if len(nodes) > 1:
                return Block(nodes, tuple([self._nodes((n,), state, whole=False) for n in nodes]))
        return self._each(nodes, state)

    def _each(self, nodes: tuple[Node, ...], state: State) -> Item:
        items = [self._node(node, state) for node in nodes]
        return items[0] if len(items) == 1 else Block(nodes, tuple(items))

    def _node(self, node: Node, state: State) -> Item:
        if isinstance(node, Leaf):
            return Unrolled(node, state.inside)
        if self.analysis.vectorised(node, state.inside, len(state.at)):
            return self._vector_loop(node, state)
        return self._loop(node, state)

    def _region(self, nodes: tuple[Node, ...], state: State, item: Item, whole: bool) -> CellRegion:
        assert state.held is not None
        scope, homes = state.held
        outside = len(state.at) + (not whole)
        buffers = [self.tree.buffer[name] for name in scope.held]
        local = frozenset([b.name for b in buffers if b.kind == "temporary" and b.scope >= outside])
        return CellRegion(nodes, item, scope.held, scope.parts, homes, local)

    # Loops

    def _loop(self, loop: Loop, state: State) -> Nest:
        full, tail = iterations(self.tree, state.inside, loop)
        copies = self.unrolling.copies(loop, state, full)
        main = full - full % copies if copies < full else 0
        parts: list[Part] = []
        if main:
            inner = state._replace(counted=(*state.counted, loop.id))
            bodies = self._bodies(loop, inner, range(copies), loop.step)
            carried = self.unrolling.carried(loop, state)
            parts.append(Part("counted", 0, main, 1, bodies[0], 1, copies, (), carried, bodies[1:]))
        unrolling = state._replace(unrolling=state.unrolling or self.unrolling.moves_held(loop, state))
        if full > main:
            bodies = self._bodies(loop, unrolling, range(main, full), loop.step)
            parts.append(Part("unrolled", main, full - main, 1, bodies[0], others=bodies[1:]))
        if tail:
            body = self._nodes(loop.body, unrolling.within(loop, tail, full))
            parts.append(Part("unrolled", full, 1, 1, body))
        return Nest(loop, tuple(parts))

    def _bodies(self, loop: Loop, state: State, positions: range, rest: int) -> Sequence[Item]:
        """Annotate a loop's body at each position; once, where that makes no difference."""
        if loop.id not in self._deciding_loops(loop):
            positions = positions[:1]
        return tuple([self._nodes(loop.body, state.within(loop, rest, i)) for i in positions])

    def _deciding_loops(self, loop: Loop) -> frozenset[LoopId]:
        """List the loops whose position decides which references inside a loop meet."""
        known = self._apart.get(id(loop))
        if known is None:
            strides: dict[str, set[tuple[tuple[LoopId, int], ...]]] = {}
            for leaf in leaves(loop.body):
                for ref in leaf.refs:
                    strides.setdefault(ref.buffer, set()).add(ref.strides)
            found = [
                frozenset.union(*map(frozenset, s)) - frozenset.intersection(*map(frozenset, s))
                for s in strides.values()
            ]
            known = self._apart[id(loop)] = frozenset([moved for pairs in found for moved, _ in pairs])
        return known

    # Vectors

    def _vector_loop(self, loop: Loop, state: State) -> Item:
        depth = len(state.at) + 1
        summed = frozenset(
            [x.target.buffer for x in leaves(loop.body) if self.analysis.partial(x, loop, depth)]
        )
        if not summed or state.held:
            return self._vectors(loop, state, summed)
        scope = Scope(summed)
        homes = homes_of(scope, (loop,), state.counted)
        assert homes is not None
        inner = state._replace(held=Held(scope, homes))
        return self._region((loop,), inner, self._vectors(loop, inner, summed), whole=False)

    def _vectors(self, loop: Loop, state: State, summed: frozenset[str]) -> Nest:
        lanes, full, tail = self.analysis.pieces(self.analysis.trip(loop, state.inside), bool(summed))
        chunk = self.unrolling.chunk(loop, full, state)
        main = full - full % chunk if full >= 2 * chunk else 0  # one iteration would be no loop
        depth = len(state.at) + 1
        used = dict.fromkeys([ref.buffer for leaf in leaves(loop.body) for ref in leaf.refs])
        body = Lanes(loop, frozenset([b for b in used if self.analysis.lane_private(b, depth)]), summed)
        parts: list[Part] = []
        if main:
            carried = self.unrolling.carried(loop, state)
            parts.append(Part("counted", 0, main, lanes, body, lanes, chunk, (), carried))
        if full > main:
            parts.append(Part("unrolled", main * lanes, full - main, lanes, body, lanes))
        parts += [Part("unrolled", p.start, 1, p.active, body, p.lanes) for p in tail]
        return Nest(loop, tuple(parts))
