"""Nest that a GPU kernel computes: how often its loops are repeated, and which iterations are independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.core import ScheduleError
from planish.levels.loops.gpu.edges import Edges, Path
from planish.levels.loops.gpu.layout import Bindings
from planish.levels.loops.ir.schedule import loop_text
from planish.levels.loops.ir.tree import Leaf, Loop, LoopId, LoopTree, Node, Ref, leaves, refs


class Nest:
    """Nest of loops of one kernel.

    Args:
        tree: the whole program.
        bindings: what its loops stand for; empty where nothing is bound.
        copies: buffers that are filled by copying alone.
        root: the node.

    Attributes:
        leaves: what it computes.
        refs: buffer to all references to it.
        written: buffers that it writes.
        types: buffer to its type of elements.
        trips: loop to its iterations at most.
        edges: what remains of axes inside its loops.
        around: leaf, by identity, to the loops around it.
    """

    def __init__(self, tree: LoopTree, bindings: Bindings, copies: frozenset[str], root: Node) -> None:
        self.tree, self.bindings, self.copies, self.root = tree, bindings, copies, root
        self.leaves = leaves((root,))
        self.refs: dict[str, list[Ref]] = {}
        for ref in (ref for leaf in self.leaves for ref in leaf.refs):
            self.refs.setdefault(ref.buffer, []).append(ref)
        self.written = {leaf.target.buffer for leaf in self.leaves}
        self.types = {name: tree.buffer[name].dtype for name in self.refs}
        self.trips: dict[LoopId, int] = {}
        self.edges = Edges(tree, self.trips)
        self.around: dict[int, tuple[LoopId, ...]] = {}
        self._measure((root,), Path())

    def _measure(self, nodes: Sequence[Node], path: Path) -> None:
        """Count the iterations of all loops at most, and note what is around each leaf."""
        for node in nodes:
            if isinstance(node, Leaf):
                self.around[id(node)] = tuple(level.loop for level in path.levels)
                continue
            extent = self.edges.extent(node.axis, path)
            self.trips[node.id] = max(self.trips.get(node.id, 1), -(-extent // node.step))
            self._measure(node.body, path.into(node.id, extent, min(node.step, extent), guarded=False))

    def kind(self, loop: Loop) -> str:
        """Return what a loop stands for: "block", "thread" or "serial"."""
        return "serial" if self.is_copy(loop) else self.bindings.get(loop.id, "serial")

    def is_copy(self, node: Node) -> bool:
        """Return whether a node fills copies alone."""
        return all(leaf.target.buffer in self.copies for leaf in leaves((node,)))

    def size(self, axis: str) -> int:
        """Count the elements of an axis that an outermost loop over it walks."""
        return self.edges.extent(axis, Path())

    def touching(self, name: str) -> Iterator[Leaf]:
        """Return the leaves that read or write a buffer."""
        return (leaf for leaf in self.leaves if any(ref.buffer == name for ref in leaf.refs))

    def is_read(self, name: str) -> bool:
        """Return whether a buffer is read."""
        return any(ref.buffer == name for leaf in self.leaves for ref in refs(leaf.value))

    def require_independent(self, loop: Loop, depth: int) -> None:
        """Raise ScheduleError where a loop is not independent; see `is_independent`."""
        if not self.is_independent(loop, depth):
            what = f"loop '{loop_text(loop.id)}' cannot stand for threads or blocks: its iterations meet"
            raise ScheduleError(what, "Bind loops over axes of the result alone.")

    def is_independent(self, loop: Loop, depth: int) -> bool:
        """Return whether each iteration of a loop touches only what it wrote itself.

        Args:
            loop: of the nest.
            depth: loops around it.
        """
        found = leaves(loop.body)
        touched: dict[str, list[Ref]] = {}
        for ref in (ref for leaf in found for ref in leaf.refs):
            touched.setdefault(ref.buffer, []).append(ref)
        for name in {leaf.target.buffer for leaf in found}:
            buffer = self.tree.buffer[name]
            if buffer.kind == "temporary" and buffer.scope > depth:
                continue  # each iteration has its own
            if name in self.copies and not any(r.buffer == name for leaf in found for r in refs(leaf.value)):
                # What is copied, and the edges beside it, are different elements.
                if all(loop.id in ref.stride for ref in touched[name]):
                    continue
                return False
            if not same_element(touched[name]) or loop.id not in touched[name][0].stride:
                return False
            if not self._is_injective(touched[name][0]):
                return False
        return True

    def _is_injective(self, ref: Ref) -> bool:
        """Return whether it is plain to see that no two combinations of axes reach one element."""
        units: dict[str, int] = {}
        for (axis, step), stride in ref.strides:
            if stride % step or units.setdefault(axis, stride // step) != stride // step:
                return self._is_panels(ref)
        reach = 0
        for axis, unit in sorted(units.items(), key=lambda item: item[1]):
            if unit <= reach:
                return self._is_panels(ref)
            reach += unit * (self.size(axis) - 1)
        return True

    def _is_panels(self, ref: Ref) -> bool:
        """Return whether each loop moves beyond all that those of smaller strides reach."""
        reach = 0
        for loop, stride in sorted(ref.strides, key=lambda item: item[1]):
            if stride <= reach:
                return False
            reach += stride * (self.trips[loop] - 1)
        return True


def same_element(found: Sequence[Ref]) -> bool:
    """Return whether references are to the same element."""
    return len({(ref.offset, frozenset(ref.strides)) for ref in found}) == 1
