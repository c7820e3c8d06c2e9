"""A slow and exact executor of loop trees: the reference for code generators, and a check of the tree.

It walks the tree point by point, in float64 or with whole numbers in int32, and refuses whatever a tree may
not do: to leave a buffer, to read what was not written, to let parallel iterations share what one writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.loops.ir.extent import Remaining, iterations, within
from planish.loops.ir.storage import Storage, TreeFault, looked_up
from planish.loops.ir.tree import Call, Leaf, Loop, LoopId, LoopTree, Node, Ref, Value, refs
from planish.loops.lang.program import Const


def interpret(tree: LoopTree, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Execute a tree.

    Args:
        tree: the whole kernel; its ahead part is executed first.
        arrays: input to its elements, in any shape of the right size.

    Returns:
        Output to its elements, flat and in its own type; NaN, or `planish.loops.ir.storage.UNWRITTEN`, where
        nothing was written.

    Raises:
        TreeFault: the tree breaks a rule; the message names the loop or the buffer.
    """
    machine = _Machine(tree, arrays)
    with np.errstate(all="ignore"):
        for node in (*tree.ahead, *tree.body):
            machine.node(node, {})
    return machine.storage.outputs()


class _Machine:
    def __init__(self, tree: LoopTree, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.tree = tree
        self.storage = Storage(tree, arrays)
        self.at: dict[LoopId, int] = {}

    def node(self, node: Node, inside: Remaining) -> None:
        if isinstance(node, Leaf):
            self._leaf(node, inside)
        else:
            self._loop(node, inside)

    def _loop(self, loop: Loop, inside: Remaining) -> None:
        # Threads start and meet at the root alone, where a function of its own is made of the loop.
        if loop.id in self.at or (loop.concurrent and self.at):
            raise TreeFault(f"loop {loop.id} is inside itself, or parallel and not at the root")
        full, tail = iterations(self.tree, inside, loop)
        if not self.at:
            self.storage.begin_root()
        for i in range(full + (tail > 0)):
            self.at[loop.id] = i
            if loop.concurrent:
                self.storage.parallel = i
            self.storage.begin(loop, len(self.at))
            for child in loop.body:
                self.node(child, within(inside, loop.axis, loop.step if i < full else tail))
        self.at.pop(loop.id, None)
        if loop.concurrent:
            self.storage.parallel = None

    def _leaf(self, leaf: Leaf, inside: Remaining) -> None:
        if unfinished := self._unfinished(leaf, inside):
            raise TreeFault(f"a leaf has no loop of step 1 over {', '.join(sorted(unfinished))}")
        value = self._value(leaf.value)
        if leaf.reduce is not None:
            value = self.storage.applied(leaf.reduce, self._value(leaf.target), value)
        self.storage.write(leaf.target.buffer, self._element(leaf.target), value)

    def _unfinished(self, leaf: Leaf, inside: Remaining) -> set[str]:
        """Axes that move the leaf and of which several elements remain, but for those that a window walks."""
        moving = {axis for ref in (leaf.target, *refs(leaf.value)) for (axis, _), _ in ref.strides}
        windows = {axis for name, terms in self.tree.derived if name in inside for axis, _ in terms}
        return {axis for axis, n in inside.items() if n != 1 and axis in moving - windows}

    def _value(self, value: Value) -> Any:
        match value:
            case Const():
                return self.storage.number(value.value)
            case Ref():
                return self.storage.read(value.buffer, self._element(value))
            case Call("gather", (Ref() as base, index, Const(stride), Const(extent))):
                return self._value(looked_up(base, self._value(index), stride, extent))
            case _:
                return self.storage.applied(value.function, *map(self._value, value.args))

    def _element(self, ref: Ref) -> int:
        missing = [loop for loop, _ in ref.strides if loop not in self.at]
        if missing:
            raise TreeFault(f"{ref.buffer} moves with {missing[0]}, which does not enclose it")
        return ref.offset + sum(stride * self.at[loop] for loop, stride in ref.strides)
