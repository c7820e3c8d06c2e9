"""Annotation for code generators whose values have names, and are given registers later (LLVM).

What is held is a set of cells: each vector or scalar of memory that a part of the tree touches has a name.
The largest part whose reduced elements fit the registers is found from the top (thesis 3.4.2). Inside it,
loops that move those elements are unrolled, so that each copy has names of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from planish.levels.loops.ir.annotated import (
    AnnotatedLoop,
    AnnotatedTree,
    Block,
    Cell,
    CellRegion,
    Function,
    Inside,
    Item,
    Lanes,
    Part,
    Piece,
    Positions,
    Unrolled,
    Vectors,
    cell,
    entry_groups,
    memory_space_of,
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

# Analysis

UNROLLED_MOST = 512
"""Vector operations that a part which must be unrolled may come to."""
OTHER_REGISTERS = 4
"""Registers that are left for operands, where others hold results."""


class Held(NamedTuple):
    """Buffers whose elements registers hold.

    Args:
        buffers: their names.
        parts: accumulators for each element that is reduced lane by lane; a power of 2.
        homes: for each buffer, a reference to where it is in memory.
    """

    buffers: frozenset[str]
    parts: int = 1
    homes: Mapping[str, Ref] = {}


class Analysis:
    """Answers questions about one tree for one machine."""

    def __init__(self, tree: LoopTree, vectors: Vectors, dtype: str) -> None:
        self.tree = tree
        self._vectors = vectors
        self._budget = vectors.registers - OTHER_REGISTERS
        self._dtype = dtype
        self._depth: dict[int, int] = {}
        """Loop, by identity, to how many loops are around its body."""
        self._vectorized: dict[tuple[int, int], bool] = {}
        self._volumes: dict[object, int] = {}
        self._weights: dict[int, int] = {}
        self._moves: dict[tuple[int, frozenset[str]], bool] = {}
        self._note_depths((*tree.body, *tree.ahead), 1)

    def _note_depths(self, nodes: Iterable[Node], depth: int) -> None:
        for node in nodes:
            if isinstance(node, Loop):
                self._depth[id(node)] = depth
                self._note_depths(node.body, depth + 1)

    # Vectors

    def vectorized(self, loop: Loop, inside: Remaining) -> bool:
        """Return whether a loop is executed in vectors: an innermost loop of independent iterations."""
        if not loop.innermost:
            return False
        trip = self.trip(loop, inside)
        key = (id(loop), trip)
        if key not in self._vectorized:
            self._vectorized[key] = trip > 1 and self._independent(loop, trip)
        return self._vectorized[key]

    def trip(self, loop: Loop, inside: Remaining) -> int:
        """Count a loop's iterations, the tail included."""
        return -(-remaining(self.tree, inside, loop.axis) // loop.step)

    def _independent(self, loop: Loop, trip: int) -> bool:
        if loop.looks_up:
            return False
        body = leaves(loop.body)
        for leaf in body:
            target = leaf.target
            if self.lane_private(target.buffer, loop):
                continue
            others = [ref for other in body for ref in other.refs if ref.buffer == target.buffer]
            if loop.id not in target.stride:
                if leaf.reduce is None or len(others) > 1:
                    return False
            elif not all(_apart(target, other, loop.id, trip) for other in others):
                return False
        return True

    def lane_private(self, buffer: str, loop: Loop) -> bool:
        """Return whether a temporary lives within one iteration of a vectorized loop."""
        found = self.tree.buffer[buffer]
        return found.kind == "temporary" and found.scope == self._depth[id(loop)]

    def partial(self, leaf: Leaf, loop: Loop) -> bool:
        """Return whether a leaf of a vectorized loop reduces along it."""
        return loop.id not in leaf.target.stride and not self.lane_private(leaf.target.buffer, loop)

    def pieces(self, trip: int, whole: bool) -> tuple[int, int, list[Piece]]:
        """Cut an innermost loop into vectors.

        Args:
            trip: its iterations.
            whole: whether all vectors must have the same number of lanes.

        Returns:
            Lanes of the full vectors, how many full vectors there are, and what follows them.
        """
        lanes = min(self._vectors.lanes, _power(trip)) if whole else self._vectors.lanes
        full, rest = divmod(trip, lanes)
        start = full * lanes
        if not rest:
            return lanes, full, []
        if whole or self._vectors.masks:
            return lanes, full, [Piece(start, lanes if whole else _power(rest), rest)]
        # Without masks the rest is cut into powers of 2 that become ever smaller.
        tail: list[Piece] = []
        while rest:
            part = _power(rest + 1) // 2
            tail.append(Piece(start, part, part))
            start, rest = start + part, rest - part
        return lanes, full, tail

    # Work

    def volume(self, nodes: tuple[Node, ...], inside: Remaining) -> int:
        """Count the vector operations of nodes when all is unrolled."""
        key = (tuple(map(id, nodes)), tuple(inside.items()))
        if key not in self._volumes:
            self._volumes[key] = sum([self._volume(node, inside) for node in nodes])
        return self._volumes[key]

    def _volume(self, node: Node, inside: Remaining) -> int:
        if isinstance(node, Leaf):
            return self.weight(node)
        if self.vectorized(node, inside):
            _, full, tail = self.pieces(self.trip(node, inside), whole=False)
            return (full + len(tail)) * sum(map(self.weight, leaves(node.body)))
        full, tail = iterations(self.tree, inside, node)
        total = full * self.volume(node.body, within(inside, node.axis, node.step)) if full else 0
        return total + (self.volume(node.body, within(inside, node.axis, tail)) if tail else 0)

    def weight(self, leaf: Leaf) -> int:
        """Count a leaf's operations; a product that is added counts as one."""
        if id(leaf) not in self._weights:
            self._weights[id(leaf)] = max(1, self._operations(leaf.value))
        return self._weights[id(leaf)]

    def _operations(self, value: Value) -> int:
        if not isinstance(value, Call):
            return 0
        own = len(expansion(value.function, self._dtype)) if value.function in EXPANDED else 1
        return own + sum(map(self._operations, value.args))

    def moves(self, loop: Loop, buffers: frozenset[str]) -> bool:
        """Return whether a loop moves some reference to these buffers."""
        key = (id(loop), buffers)
        if key not in self._moves:
            found = [ref for leaf in leaves(loop.body) for ref in leaf.refs]
            self._moves[key] = any(r.buffer in buffers and loop.id in r.stride for r in found)
        return self._moves[key]

    # What registers hold

    def held(self, nodes: tuple[Node, ...], inside: Inside, at: Positions) -> Held | None:
        """Plan to hold what nodes reduce, and if possible what passes between them, in registers.

        Returns:
            None where it does not fit, or where it is better decided further inside.
        """
        found = leaves(nodes)
        private: set[str] = set().union(*[self._lane_privates(node, inside) for node in nodes])
        read = {ref.buffer for leaf in found for ref in refs(leaf.value)}
        reduced = {leaf.target.buffer for leaf in found if leaf.reduce} - private
        shared = {leaf.target.buffer for leaf in found} - private & (read | reduced)
        for buffers in dict.fromkeys((frozenset(shared), frozenset(reduced))):
            moved = len(nodes) == 1 and isinstance(nodes[0], Loop) and self.moves(nodes[0], buffers)
            if buffers and not moved and self._small(nodes, inside, buffers):
                fitting = self._fitting(nodes, inside, at, buffers)
                if fitting:
                    return fitting
        return None

    def _first_iteration(self, loop: Loop, inside: Inside) -> Inside:
        return within(inside, loop.axis, min(loop.step, remaining(self.tree, inside, loop.axis)))

    def _lane_privates(self, node: Node, inside: Inside) -> set[str]:
        if isinstance(node, Leaf):
            return set()
        if self.vectorized(node, inside):
            names = {leaf.target.buffer for leaf in leaves(node.body)}
            return {name for name in names if self.lane_private(name, node)}
        inner = self._first_iteration(node, inside)
        return set().union(*[self._lane_privates(n, inner) for n in node.body])

    def _small(self, nodes: tuple[Node, ...], inside: Inside, buffers: frozenset[str]) -> bool:
        """Return whether the loops that move what is held may be unrolled, with all that is inside them."""
        for node in nodes:
            if isinstance(node, Leaf):
                continue
            if self.moves(node, buffers):
                if self.volume((node,), inside) > UNROLLED_MOST:
                    return False
                continue
            inner = self._first_iteration(node, inside)
            if not self.vectorized(node, inside) and not self._small(node.body, inner, buffers):
                return False
        return True

    def _fitting(
        self, nodes: tuple[Node, ...], inside: Inside, at: Positions, buffers: frozenset[str]
    ) -> Held | None:
        found: dict[Cell, None] = {}
        for touched in self.cells(nodes, inside, at, Held(buffers)):
            found[touched] = None
            if len(found) > self._budget:
                return None
        # An element in two registers would be old in one of them.
        if _overlap(found):
            return None
        parts, partial = 1, sum([bool(c.reduce) for c in found])
        # Eight in flight: an addition takes some four cycles, and two begin in each.
        while 0 < partial * parts < 8 and len(found) + partial * (2 * parts - 1) <= self._budget:
            parts *= 2
        return Held(buffers, parts)

    def cells(self, nodes: Iterable[Node], inside: Inside, at: Positions, held: Held) -> Iterator[Cell]:
        """List the cells that nodes touch, some several times.

        Args:
            at: positions of the enclosing loops; in a counted one, those of its first iteration.
            held: what is held.
        """
        for node in nodes:
            if isinstance(node, Leaf):
                for ref in node.refs:
                    if ref.buffer in held.buffers:
                        yield Cell(ref.buffer, position(ref, at))
            elif self.vectorized(node, inside):
                yield from self._vector_cells(node, inside, at, held)
            else:
                full, tail = iterations(self.tree, inside, node)
                # Other loops touch the same cells in every iteration.
                for i in range(full if self.moves(node, held.buffers) else min(full, 1)):
                    inner = within(inside, node.axis, node.step)
                    yield from self.cells(node.body, inner, {**at, node.id: i}, held)
                if tail:
                    inner = within(inside, node.axis, tail)
                    yield from self.cells(node.body, inner, {**at, node.id: full}, held)

    def _vector_cells(self, loop: Loop, inside: Inside, at: Positions, held: Held) -> Iterator[Cell]:
        body = leaves(loop.body)
        whole = any(self.partial(leaf, loop) for leaf in body)
        lanes, full, tail = self.pieces(self.trip(loop, inside), whole)
        count = full if self.moves(loop, held.buffers) else min(full, held.parts)
        for i, piece in enumerate([*(Piece(j * lanes, lanes, lanes) for j in range(count)), *tail]):
            here = {**at, loop.id: piece.start}
            for leaf in body:
                for ref in leaf.refs:
                    if ref.buffer not in held.buffers:
                        continue
                    if ref is leaf.target and self.partial(leaf, loop):
                        yield summed(leaf, here, piece, i % held.parts)
                    else:
                        yield cell(ref, here, loop, piece)


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


def _overlap(cells: Iterable[Cell]) -> bool:
    """Return whether two cells share an element."""
    seen: set[tuple[str, int]] = set()
    total = 0
    for c in cells:
        elements = range(c.offset, c.offset + c.active * c.stride, c.stride) if c.stride else (c.offset,)
        seen.update((c.buffer, e) for e in elements)
        total += len(elements)
    return len(seen) != total


# Annotation

SMALL = 16
"""A loop of so few vector operations is unrolled, and a body is repeated up to so many."""
SMALL_HELD = 128
"""As `SMALL`, where registers hold the results."""
SMALL_VECTORS = 32
"""As `SMALL`, for an innermost loop."""
CHUNK = 4
"""Vectors in one iteration of a long innermost loop."""


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

    def holding(self, held: Held, nodes: Sequence[Node]) -> State | None:
        """Return the state with more held; None if loops of run time move references to a buffer apart."""
        homes: dict[str, Ref] = {}
        for leaf in leaves(tuple(nodes)):
            for ref in leaf.refs:
                if ref.buffer in held.buffers:
                    home = homes.setdefault(ref.buffer, ref)
                    if any(home.stride.get(loop) != ref.stride.get(loop) for loop in self.counted):
                        return None
        return self._replace(held=held._replace(homes=homes))


def annotate(tree: LoopTree, vectors: Vectors, dtype: str) -> AnnotatedTree:
    """Decide how a tree is executed.

    Args:
        dtype: the tree's element type.
    """
    annotator = _Annotator(Analysis(tree, vectors, dtype))
    body, ahead = [
        tuple([annotator.function(nodes, len(groups) == 1) for nodes in groups])
        for groups in (entry_groups(tree.body), entry_groups(tree.ahead))
    ]
    return AnnotatedTree(tree, vectors, body, ahead, memory_space_of(tree, (*body, *ahead)))


class _Annotator:
    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.tree = analysis.tree
        self._deciding: dict[int, frozenset[LoopId]] = {}

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
        return Function(nodes, AnnotatedLoop(node, tuple(parts)), "parallel")

    def _nodes(self, nodes: tuple[Node, ...], state: State, *, whole: bool = True) -> Item:
        """Annotate nodes: all of a loop's body, which then ends the lives of its temporaries, or a part."""
        if state.held is None:
            held = self.analysis.held(nodes, state.inside, state.at)
            inner = state.holding(held, nodes) if held else None
            if inner:
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
        if self.analysis.vectorized(node, state.inside):
            return self._vector_loop(node, state)
        return self._loop(node, state)

    def _region(self, nodes: tuple[Node, ...], state: State, item: Item, whole: bool) -> CellRegion:
        assert state.held is not None
        held, parts, homes = state.held
        outside = len(state.at) + (not whole)
        buffers = [self.tree.buffer[name] for name in held]
        local = frozenset([b.name for b in buffers if b.kind == "temporary" and b.scope >= outside])
        return CellRegion(nodes, item, held, parts, homes, local)

    def _moves_held(self, loop: Loop, state: State) -> bool:
        return state.held is not None and self.analysis.moves(loop, state.held.buffers)

    def _carried(self, loop: Loop, state: State) -> tuple[Cell, ...]:
        """List the held cells that a counted loop touches, counted from their homes."""
        if state.held is None:
            return ()
        at, homes = state.at, state.held.homes.items()
        shift = {name: position(home, at) - home.offset for name, home in homes}
        found = dict.fromkeys(self.analysis.cells((loop,), state.inside, at, state.held))
        return tuple([c._replace(offset=c.offset - shift[c.buffer]) for c in found])

    # Loops

    def _loop(self, loop: Loop, state: State) -> AnnotatedLoop:
        full, tail = iterations(self.tree, state.inside, loop)
        copies = self._copies(loop, state, full)
        main = full - full % copies if copies < full else 0
        parts: list[Part] = []
        if main:
            inner = state._replace(counted=(*state.counted, loop.id))
            bodies = self._bodies(loop, inner, range(copies))
            carried = self._carried(loop, state)
            parts.append(Part("counted", 0, main, 1, bodies[0], 1, copies, (), carried, bodies[1:]))
        unrolling = state._replace(unrolling=state.unrolling or self._moves_held(loop, state))
        if full > main:
            bodies = self._bodies(loop, unrolling, range(main, full))
            parts.append(Part("unrolled", main, full - main, 1, bodies[0], others=bodies[1:]))
        if tail:
            body = self._nodes(loop.body, unrolling.within(loop, tail, full))
            parts.append(Part("unrolled", full, 1, 1, body))
        return AnnotatedLoop(loop, tuple(parts))

    def _copies(self, loop: Loop, state: State, full: int) -> int:
        """Return how often to repeat a loop's body; `full` times, where it is to be no loop at all."""
        if full <= 1 or state.unrolling or self._moves_held(loop, state):
            return full
        volume = self.analysis.volume(loop.body, within(state.inside, loop.axis, loop.step))
        asked = loop.kind == "unroll"
        most = UNROLLED_MOST if asked else SMALL_HELD if state.held else SMALL
        if volume * full <= most:
            return full
        return max(1, (UNROLLED_MOST if asked else SMALL) // volume)

    def _bodies(self, loop: Loop, state: State, positions: range) -> Sequence[Item]:
        """Annotate a loop's body at each position; once, where that makes no difference."""
        if id(loop) not in self._deciding:
            self._deciding[id(loop)] = _deciding_loops(loop)
        if loop.id not in self._deciding[id(loop)]:
            positions = positions[:1]
        return [self._nodes(loop.body, state.within(loop, loop.step, i)) for i in positions]

    def _vector_loop(self, loop: Loop, state: State) -> Item:
        found = [x.target.buffer for x in leaves(loop.body) if self.analysis.partial(x, loop)]
        reduced = frozenset(found)
        if not reduced or state.held:
            return self._vectors(loop, state, reduced)
        inner = state.holding(Held(reduced), (loop,))
        assert inner is not None
        return self._region((loop,), inner, self._vectors(loop, inner, reduced), whole=False)

    def _vectors(self, loop: Loop, state: State, reduced: frozenset[str]) -> AnnotatedLoop:
        lanes, full, tail = self.analysis.pieces(self.analysis.trip(loop, state.inside), bool(reduced))
        chunk = self._chunk(loop, full, state)
        main = full - full % chunk if full >= 2 * chunk else 0  # one iteration would be no loop
        used = dict.fromkeys([ref.buffer for leaf in leaves(loop.body) for ref in leaf.refs])
        body = Lanes(loop, frozenset([b for b in used if self.analysis.lane_private(b, loop)]), reduced)
        parts: list[Part] = []
        if main:
            carried = self._carried(loop, state)
            parts.append(Part("counted", 0, main, lanes, body, lanes, chunk, (), carried))
        if full > main:
            parts.append(Part("unrolled", main * lanes, full - main, lanes, body, lanes))
        parts += [Part("unrolled", p.start, 1, p.active, body, p.lanes) for p in tail]
        return AnnotatedLoop(loop, tuple(parts))

    def _chunk(self, loop: Loop, full: int, state: State) -> int:
        """Return how many vectors an iteration writes; more than `full`, where there is to be no loop."""
        volume = sum(map(self.analysis.weight, leaves(loop.body)))
        most = UNROLLED_MOST if loop.kind == "unroll" else SMALL_VECTORS
        if state.unrolling or self._moves_held(loop, state) or full * volume <= most:
            return full + 1
        # As many as a sum has parts at least: vectors take these alternately.
        return max(state.held.parts if state.held else 1, min(CHUNK, 64 // volume), 1)


def _deciding_loops(loop: Loop) -> frozenset[LoopId]:
    """List the loops whose position decides which references inside a loop meet."""
    strides: dict[str, set[tuple[tuple[LoopId, int], ...]]] = {}
    for leaf in leaves(loop.body):
        for ref in leaf.refs:
            strides.setdefault(ref.buffer, set()).add(ref.strides)
    found = [
        frozenset.union(*map(frozenset, s)) - frozenset.intersection(*map(frozenset, s))
        for s in strides.values()
    ]
    return frozenset([moved for pairs in found for moved, _ in pairs])
