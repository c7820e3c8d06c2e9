"""A slow and exact executor of loop trees: the reference for code generators, and a check of the tree.

It walks the tree point by point, in float64 or with whole numbers in int32, and refuses whatever a tree may
not do: to leave a buffer, to read what was not written, to let parallel iterations share what one writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.loops.ir.extent import Remaining, iterations, within
from planish.loops.ir.tree import Leaf, Loop, LoopId, LoopTree, Node, Ref, Value, leaves, refs
from planish.loops.lang.numpy_types import numpy_type
from planish.loops.lang.program import ARITHMETIC, Const
from planish.loops.lang.whole import WHOLE, nearest_whole
from planish.loops.reference.bounds import VALUES


class TreeFault(Exception):  # noqa: N818 - a fault of the tree, not of the user
    """A tree breaks the rules of `planish.loops.ir.tree`."""


def interpret(tree: LoopTree, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Execute a tree.

    Args:
        tree: the whole kernel; its ahead part is executed first.
        arrays: input to its elements, in any shape of the right size.

    Returns:
        Output to its elements, flat and in its own type; NaN, or 0 for whole numbers, where nothing was
        written.

    Raises:
        TreeFault: the tree breaks a rule; the message names the loop or the buffer.
    """
    machine = _Machine(tree, arrays)
    with np.errstate(all="ignore"):
        for node in (*tree.ahead, *tree.body):
            machine.node(node, {})
    return {b.name: machine.array(b.name) for b in tree.buffers if b.kind == "output"}


class _Machine:
    def __init__(self, tree: LoopTree, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.tree = tree
        whole = any(ARITHMETIC[b.dtype] == WHOLE for b in tree.buffers)
        self.number: Callable[[Any], Any] = (lambda x: np.int32(nearest_whole(x))) if whole else np.float64
        self.memory: dict[str, list[Any]] = {b.name: [None] * b.size for b in tree.buffers}
        for b in tree.buffers:
            if b.kind == "input":
                self.memory[b.name] = list(
                    map(self.number, np.asarray(arrays[b.name]).reshape(b.size).tolist())
                )
        self.at: dict[LoopId, int] = {}
        self.parallel: int | None = None
        """The iteration of the parallel loop that is being executed."""
        self.toucher: dict[tuple[str, int], tuple[int, bool]] = {}
        """Element to the parallel iteration that touched it (-1 for several), and whether it wrote it."""

    def array(self, name: str) -> NDArray[Any]:
        dtype = numpy_type(self.tree.buffer[name].dtype)
        missing = np.nan if self.number is np.float64 else 0
        values = [missing if v is None else v for v in self.memory[name]]
        return np.array(values, type(self.number(0))).astype(dtype)

    def node(self, node: Node, inside: Remaining) -> None:
        if isinstance(node, Leaf):
            self._leaf(node, inside)
        else:
            self._loop(node, inside)

    def _loop(self, loop: Loop, inside: Remaining) -> None:
        if loop.id in self.at or (loop.kind == "parallel" and self.at):
            raise TreeFault(f"loop {loop.id} is inside itself, or parallel and not at the root")
        full, tail = iterations(self.tree, inside, loop)
        # Nodes of the root run one after another: only iterations of one loop can race.
        self.toucher = {} if not self.at else self.toucher
        for i in range(full + (tail > 0)):
            self.at[loop.id] = i
            if loop.kind == "parallel":
                self.parallel = i
            self._forget(loop)
            for child in loop.body:
                self.node(child, within(inside, loop.axis, loop.step if i < full else tail))
        self.at.pop(loop.id, None)
        self.parallel = None if loop.kind == "parallel" else self.parallel

    def _forget(self, loop: Loop) -> None:
        """Begin the life of the temporaries that live in one iteration of this loop."""
        for name in {r.buffer for leaf in leaves(loop.body) for r in (leaf.target, *refs(leaf.value))}:
            buffer = self.tree.buffer[name]
            if buffer.kind == "temporary" and buffer.scope == len(self.at):
                self.memory[name] = [None] * buffer.size

    def _leaf(self, leaf: Leaf, inside: Remaining) -> None:
        if unfinished := self._unfinished(leaf, inside):
            raise TreeFault(f"a leaf has no loop of step 1 over {', '.join(sorted(unfinished))}")
        value = self._value(leaf.value)
        if leaf.reduce is not None:
            value = self.number(VALUES[leaf.reduce](self._value(leaf.target), value))
        if self.tree.buffer[leaf.target.buffer].kind == "input":
            raise TreeFault(f"input {leaf.target.buffer} is written")
        self.memory[leaf.target.buffer][self._element(leaf.target, write=True)] = value

    def _unfinished(self, leaf: Leaf, inside: Remaining) -> set[str]:
        """Axes that move the leaf and of which several elements remain, but for those that a window walks."""
        moving = {axis for ref in (leaf.target, *refs(leaf.value)) for (axis, _), _ in ref.strides}
        windows = {axis for name, terms in self.tree.derived if name in inside for axis, _ in terms}
        return {axis for axis, n in inside.items() if n != 1 and axis in moving - windows}

    def _value(self, value: Value) -> Any:
        match value:
            case Const():
                return self.number(value.value)
            case Ref():
                element = self._element(value, write=False)
                found = self.memory[value.buffer][element]
                if found is None:
                    raise TreeFault(f"{value.buffer}[{element}] is read before it is written")
                return found
            case _:
                return self.number(VALUES[value.function](*map(self._value, value.args)))

    def _element(self, ref: Ref, write: bool) -> int:
        missing = [loop for loop, _ in ref.strides if loop not in self.at]
        if missing:
            raise TreeFault(f"{ref.buffer} moves with {missing[0]}, which does not enclose it")
        element = ref.offset + sum(stride * self.at[loop] for loop, stride in ref.strides)
        buffer = self.tree.buffer[ref.buffer]
        if not 0 <= element < buffer.size:
            raise TreeFault(f"{ref.buffer}[{element}] is outside its {buffer.size} elements at {self.at}")
        if self.parallel is not None and not (buffer.kind == "temporary" and buffer.scope > 0):
            self._share(ref.buffer, element, write)
        return element

    def _share(self, name: str, element: int, write: bool) -> None:
        """Refuse that two parallel iterations touch an element that either of them writes."""
        assert self.parallel is not None
        owner, written = self.toucher.get((name, element), (self.parallel, False))
        if owner != self.parallel and (write or written):
            raise TreeFault(f"parallel iterations {owner} and {self.parallel} share {name}[{element}]")
        self.toucher[name, element] = (self.parallel if owner == self.parallel else -1, write or written)
