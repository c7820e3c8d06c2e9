"""The loops that lead to leaves: what is vectorised, what is repeated, and which vectors that names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planish.loops.extent import remaining
from planish.loops.tree import Leaf, Loop, LoopTree, Node, Ref

Path = tuple[Loop, ...]


def vector_loop(path: Path) -> Loop | None:
    """The loop that a leaf is vectorised along: the innermost, if its iterations may run side by side."""
    return path[-1] if path and path[-1].side_by_side else None


def leaf_paths(nodes: tuple[Node, ...], path: Path = ()) -> Iterator[tuple[Leaf, Path]]:
    """List the leaves below with the loops that lead to each."""
    for node in nodes:
        if isinstance(node, Leaf):
            yield node, path
        else:
            yield from leaf_paths(node.body, (*path, node))


def positions(
    tree: LoopTree, path: Path, ref: Ref, vector: Loop | None, lanes: int, inside: dict[str, int]
) -> Iterator[tuple[int, int]]:
    """List the vectors that a reference names inside a scope, as (offset, lanes).

    Loops that do not move it are visited once, and once for their tail, which may be a shorter vector.
    """
    axes = [loop.axis for loop in path]
    if all(axes.count(loop.axis) == 1 for loop in path if loop.id in ref.stride):
        yield from _positions_of_single_loops(tree, path, ref, vector, lanes, inside)
        return
    stack: list[tuple[int, int, dict[str, int]]] = [(0, ref.offset, inside)]
    while stack:
        depth, offset, left = stack.pop()
        if depth == len(path):
            yield offset, 1
            continue
        loop = path[depth]
        stride = ref.stride.get(loop.id, 0)
        here = remaining(tree, left, loop.axis)
        if loop is vector:
            if stride == 0:
                yield offset, 1
            else:
                for first in range(0, here, lanes):
                    yield offset + first * stride, min(lanes, here - first)
            continue
        full, tail = divmod(here, loop.step)
        if stride == 0:
            full = min(full, 1)
        if tail:
            stack.append((depth + 1, offset + full * stride, {**left, loop.axis: tail}))
        inner = {**left, loop.axis: loop.step}
        stack.extend((depth + 1, offset + i * stride, inner) for i in reversed(range(full)))


def _positions_of_single_loops(
    tree: LoopTree, path: Path, ref: Ref, vector: Loop | None, lanes: int, inside: dict[str, int]
) -> list[tuple[int, int]]:
    """The same, where every axis that moves the reference has one loop: the common case, made quick."""
    offsets, parts = [ref.offset], [(0, 1)]
    for loop in path:
        stride = ref.stride.get(loop.id, 0)
        if not stride:
            continue
        here = remaining(tree, inside, loop.axis)
        if loop is vector:
            parts = [(first * stride, min(lanes, here - first)) for first in range(0, here, lanes)]
        else:
            moves = range(0, -(-here // loop.step) * stride, stride)
            offsets = [offset + move for offset in offsets for move in moves]
    return [(offset + move, count) for offset in offsets for move, count in parts]


def instances(
    tree: LoopTree, nodes: tuple[Node, ...], inside: Mapping[str, int], lanes: int, cap: int
) -> int:
    """Count the vector operations of nodes when all is unrolled; counting ends above the cap."""
    total = 0
    for node in nodes:
        if isinstance(node, Leaf):
            total += 1
        elif any(isinstance(n, Loop) for n in node.body):
            here = remaining(tree, inside, node.axis)
            full, tail = divmod(here, node.step)
            if full:
                total += full * instances(tree, node.body, {**inside, node.axis: node.step}, lanes, cap)
            if tail and total <= cap:
                total += instances(tree, node.body, {**inside, node.axis: tail}, lanes, cap)
        else:
            total += len(node.body) * -(-remaining(tree, inside, node.axis) // lanes)
        if total > cap:
            break
    return total
