"""From a loop tree to its annotated form: what is held, what is unrolled, what is a vector."""

from __future__ import annotations

from collections.abc import Sequence

from planish.loops.ir.annotated import (
    AnnotatedTree,
    Block,
    CellRegion,
    Function,
    Item,
    Lanes,
    Nest,
    Part,
    Unrolled,
    Vectors,
)
from planish.loops.ir.extent import iterations
from planish.loops.ir.tree import Leaf, Loop, LoopId, LoopTree, Node, leaves
from planish.loops.lower.memory_spaces import spaces_of
from planish.loops.lower.roots import root_groups
from planish.loops.lower.virtual.scope import Scope, Scopes
from planish.loops.lower.virtual.state import Held, State, homes_of
from planish.loops.lower.virtual.unrolling import Unrolling
from planish.loops.lower.virtual.vector_analysis import VectorAnalysis

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
        for groups in (root_groups(tree.body), root_groups(tree.ahead))
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
        if loop.id not in self._tells(loop):
            positions = positions[:1]
        return tuple([self._nodes(loop.body, state.within(loop, rest, i)) for i in positions])

    def _tells(self, loop: Loop) -> frozenset[LoopId]:
        """List the loops whose position tells which references inside a loop meet."""
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
