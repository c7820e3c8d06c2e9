"""How loops become vectors, and how much code the nodes of a tree come to."""

from __future__ import annotations

from planish.loops.ir.annotated import Vectors
from planish.loops.ir.cells import Piece
from planish.loops.ir.extent import Remaining, iterations, within
from planish.loops.ir.tree import Call, Leaf, Loop, LoopId, LoopTree, Node, Ref, Value, leaves, refs
from planish.loops.lower.mathlib import EXPANDED, expansion


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
        """Whether a loop is executed in vectors: an innermost loop whose iterations do not depend on another.

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
        """Whether a temporary lives within one iteration of the vectorised loop at a depth."""
        found = self.tree.buffer[buffer]
        return found.kind == "temporary" and found.scope == depth

    def partial(self, leaf: Leaf, loop: Loop, depth: int) -> bool:
        """Whether a leaf of a vectorised loop reduces along it; `depth` counts that loop too."""
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
        """Whether a loop moves some reference to these buffers."""
        if isinstance(node, Leaf):
            return False
        key = ("moves", id(node), held)
        if key not in self._kept:
            found = (r for leaf in leaves(node.body) for r in (leaf.target, *refs(leaf.value)))
            self._kept[key] = any(r.buffer in held and node.id in r.stride for r in found)
        return bool(self._kept[key])


def _power(n: int) -> int:
    """The least power of 2 that is not less."""
    return 1 << (n - 1).bit_length()


def _apart(a: Ref, b: Ref, loop: LoopId, trip: int) -> bool:
    """Whether two references meet only in the same iteration of a loop; both move along it or not."""
    if a.stride != b.stride:
        return False
    distance, stride = abs(a.offset - b.offset), a.stride[loop]
    # Iterations i and j of the two are |i - j| * stride apart.
    return distance == 0 or distance % stride != 0 or distance // stride >= trip
