"""The loops that lead to leaves: what is vectorised, what is repeated, and which vectors that names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planish.loops.ir.annotated import Inside
from planish.loops.ir.extent import remaining
from planish.loops.ir.tree import Leaf, Loop, LoopTree, Node, Ref

Path = tuple[Loop, ...]


def vector_loop(path: Path) -> Loop | None:
    """The loop that a leaf is vectorised along: the innermost, if its iterations may run side by side."""
    return path[-1] if path and path[-1].side_by_side else None


class Site:
    """A leaf of a tree: what is known of it, whatever remains of the axes.

    A scope around it is given by its depth: how many of the leaf's loops are outside.

    Args:
        tree: the whole tree.
        leaf: the leaf.
        path: all the loops that lead to it.
    """

    __slots__ = ("_moving", "_plain", "_tree", "leaf", "path", "vector")

    def __init__(self, tree: LoopTree, leaf: Leaf, path: Path) -> None:
        self._tree = tree
        self.leaf = leaf
        self.path = path
        self.vector = vector_loop(path)
        self._plain = _plain_from([loop.axis for loop in path], tree)
        self._moving: list[tuple[int, str, int, int]] = []

    def mark(self, moves: Mapping[int, bool], lanes: int) -> None:
        """Note which loops, by identity, something is written along; they are unrolled, the rest is not."""
        size = self._tree.size
        self._moving = [
            (depth, loop.axis, lanes if loop is self.vector else loop.step, size.get(loop.axis, 0))
            for depth, loop in enumerate(self.path)
            if moves[id(loop)]
        ]

    def copies(self, inside: Inside, depth: int) -> int:
        """Count its repetitions in a scope where all loops along which something is written are unrolled."""
        count = 1
        # From this depth on each axis has one loop, so the counts multiply.
        if depth >= self._plain:
            for at, axis, step, size in self._moving:
                if at >= depth:
                    count *= -(-inside.get(axis, size) // step)
            return count
        left = dict(inside)
        steps = {at: step for at, _, step, _ in self._moving}
        for at, loop in enumerate(self.path[depth:], depth):
            here = remaining(self._tree, left, loop.axis)
            if at in steps:
                count *= -(-here // steps[at])
            left[loop.axis] = min(loop.step, here)
        return count

    def begins_again(self, inside: Inside, depth: int) -> bool:
        """Whether a scope writes an element of it several times: then that is several results in turn."""
        stride = self.leaf.target.stride
        left = dict(inside)
        for loop in self.path[depth:]:
            here = remaining(self._tree, left, loop.axis)
            # More than one pass of a loop that does not move the target: the same element is written again.
            if here > loop.step and loop.id not in stride:
                return True
            left[loop.axis] = min(here, loop.step)
        return False


def _plain_from(axes: Sequence[str], tree: LoopTree) -> int:
    """Find the depth below which every loop has an axis of its own whose extent depends on no other."""
    for depth in range(len(axes) - 1, -1, -1):
        if axes[depth] in tree.window or axes[depth] in axes[depth + 1 :]:
            return depth + 1
    return 0


class Walk:
    """Where a reference goes inside a scope.

    Args:
        tree: the whole tree.
        path: the loops inside the scope that lead to it.
        ref: the reference.
        vector: the loop of the path that is executed a vector at a time.
    """

    def __init__(self, tree: LoopTree, path: Path, ref: Ref, vector: Loop | None) -> None:
        self._tree = tree
        self._path = path
        self._vector = vector
        self.ref = ref
        self._moving = [(loop, ref.stride[loop.id]) for loop in path if loop.id in ref.stride]
        axes = [loop.axis for loop in path]
        self._single = all(
            axes.count(loop.axis) == 1 and loop.axis not in tree.window for loop, _ in self._moving
        )

    def vectors(self, lanes: int, inside: Inside) -> list[tuple[int, int]]:
        """List the vectors that it names, as (offset, lanes).

        Loops that do not move it are visited once, and once for their tail, which may be a shorter vector.
        """
        return self._of_single_loops(lanes, inside) if self._single else self._of_any(lanes, inside)

    def _of_single_loops(self, lanes: int, inside: Inside) -> list[tuple[int, int]]:
        """Every axis that moves the reference has one loop: the common case, made quick."""
        offsets, parts = [self.ref.offset], [(0, 1)]
        for loop, stride in self._moving:
            here = remaining(self._tree, inside, loop.axis)
            if loop is self._vector:
                parts = [(first * stride, min(lanes, here - first)) for first in range(0, here, lanes)]
            else:
                moves = range(0, -(-here // loop.step) * stride, stride)
                offsets = [offset + move for offset in offsets for move in moves]
        return [(offset + move, count) for offset in offsets for move, count in parts]

    def _of_any(self, lanes: int, inside: Inside) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        stack: list[tuple[int, int, Inside]] = [(0, self.ref.offset, inside)]
        while stack:
            depth, offset, left = stack.pop()
            if depth == len(self._path):
                found.append((offset, 1))
                continue
            loop = self._path[depth]
            stride = self.ref.stride.get(loop.id, 0)
            here = remaining(self._tree, left, loop.axis)
            if loop is self._vector:
                if stride == 0:
                    found.append((offset, 1))
                else:
                    ends = range(0, here, lanes)
                    found += [(offset + first * stride, min(lanes, here - first)) for first in ends]
                continue
            full, tail = divmod(here, loop.step)
            if stride == 0:
                full = min(full, 1)
            # A stack: the tail first and the iterations in reverse, so that they are visited in order.
            if tail:
                stack.append((depth + 1, offset + full * stride, {**left, loop.axis: tail}))
            inner = {**left, loop.axis: loop.step}
            stack.extend((depth + 1, offset + i * stride, inner) for i in reversed(range(full)))
        return found


def instances(
    tree: LoopTree, nodes: tuple[Node, ...], inside: Mapping[str, int], lanes: int, cap: int
) -> int:
    """Count the vector operations of nodes when all is unrolled; counting ends above the cap."""
    total = 0
    for node in nodes:
        if isinstance(node, Leaf):
            total += 1
        elif node.innermost:
            total += len(node.body) * -(-remaining(tree, inside, node.axis) // lanes)
        else:
            full, tail = divmod(remaining(tree, inside, node.axis), node.step)
            if full:
                total += full * instances(tree, node.body, {**inside, node.axis: node.step}, lanes, cap)
            if tail and total <= cap:
                total += instances(tree, node.body, {**inside, node.axis: tail}, lanes, cap)
        # The product of loops grows fast, and nobody needs to know by how much it is too large.
        if total > cap:
            break
    return total
