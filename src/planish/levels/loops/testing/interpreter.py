"""Interpreter of loop trees: the reference for code generators, and a check of the tree.

It walks the tree point by point, in float64 or with integers in int32, and refuses whatever a tree may
not do: to leave a buffer, to read what was not written, to let parallel iterations share what one writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.levels.loops.ir.annotated import MEMORY, REGISTERS, STACK
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
    within,
)
from planish.levels.loops.lang.element_types import INTEGER, nearest_integer, numpy_type
from planish.levels.loops.lang.program import ARITHMETIC, Const
from planish.levels.loops.reference.bounds import VALUES

UNWRITTEN = -0x21524111
"""Value of integers that nothing has written: 0 may be right by chance, and this hardly ever is."""


class TreeFault(Exception):  # noqa: N818 - a fault of the tree, not of the user
    """A tree breaks the rules of `planish.levels.loops.ir.tree`, or its annotations those of their module."""


def looked_up(base: Ref, index: Any, stride: float, extent: float) -> Ref:
    """Return the element that a "gather" reads: `index` strides after its reference, brought into range."""
    # As all code generators do it: an index that leaves its range must be harmless, and the same everywhere.
    integer = np.nan_to_num(np.trunc(index), nan=0.0)
    return replace(base, offset=base.offset + int(stride) * int(np.clip(integer, 0, extent - 1)))


class Storage:
    """The buffers of a tree, element by element: in float64, or in int32 where all are integers.

    Args:
        tree: the whole kernel.
        arrays: input to its elements, in any shape of the right size.
        spaces: where each buffer lives, as annotations say; None where there are none.

    Attributes:
        number: makes a number of the arithmetic.
        parallel: the iteration of the parallel loop that is being executed, if one is.
    """

    def __init__(
        self, tree: LoopTree, arrays: Mapping[str, NDArray[Any]], spaces: Mapping[str, str] | None = None
    ) -> None:
        self.tree = tree
        own = {b.name for b in tree.buffers if b.kind == "temporary" and b.scope > 0}
        self._spaces = spaces or {b.name: STACK if b.name in own else MEMORY for b in tree.buffers}
        # Inputs may be indices of another type than that of the arithmetic.
        self.number: Callable[[Any], Any] = np.float64
        if any(ARITHMETIC[b.dtype] == INTEGER for b in tree.buffers if b.kind != "input"):
            self.number = lambda x: np.int32(nearest_integer(x))
        self.parallel: int | None = None
        self._values: dict[str, list[Any]] = {b.name: [None] * b.size for b in tree.buffers}
        for b in tree.buffers:
            if b.kind == "input":
                elements = np.asarray(arrays[b.name]).reshape(b.size).tolist()
                self._values[b.name] = list(map(self.number, elements))
        self._toucher: dict[tuple[str, int], tuple[int, bool]] = {}
        """Element to the parallel iteration that touched it (-1 for several), and whether it wrote it."""

    def array(self, name: str) -> NDArray[Any]:
        """Return a buffer in its own type; NaN, or `UNWRITTEN`, where nothing was written."""
        missing = np.nan if self.number is np.float64 else UNWRITTEN
        values = [missing if v is None else v for v in self._values[name]]
        return np.array(values, type(self.number(0))).astype(numpy_type(self.tree.buffer[name].dtype))

    def outputs(self) -> dict[str, NDArray[Any]]:
        """Return all outputs, flat."""
        return {b.name: self.array(b.name) for b in self.tree.buffers if b.kind == "output"}

    def read(self, name: str, element: int) -> Any:
        """Return an element, which was written before."""
        self._check(name, element, write=False)
        found = self._values[name][element]
        if found is None:
            raise TreeFault(f"{name}[{element}] is read before it is written")
        return found

    def write(self, name: str, element: int, value: Any) -> None:
        """Set an element; not one of an input."""
        if self.tree.buffer[name].kind == "input":
            raise TreeFault(f"input {name} is written")
        self._check(name, element, write=True)
        self._values[name][element] = value

    def applied(self, function: str, *args: Any) -> Any:
        """Apply an element-wise function, or a reduction of two, to numbers."""
        return self.number(VALUES[function](*args))

    def begin_root(self) -> None:
        """Begin a loop of the root: what ran before has ended, and only iterations of one loop can race."""
        self._toucher = {}

    def begin(self, loop: Loop, depth: int) -> None:
        """Begin an iteration of a loop, at a depth that counts it, and the lives of its temporaries."""
        for name in {ref.buffer for leaf in leaves(loop.body) for ref in leaf.refs}:
            buffer = self.tree.buffer[name]
            if buffer.kind == "temporary" and buffer.scope == depth:
                # Forgotten: to read what an earlier iteration left there is a fault, though memory would
                # still have it.
                self._values[name] = [None] * buffer.size

    def _check(self, name: str, element: int, write: bool) -> None:
        size, space = self.tree.buffer[name].size, self._spaces[name]
        if not 0 <= element < size:
            raise TreeFault(f"{name}[{element}] is outside its {size} elements")
        if space == REGISTERS:
            raise TreeFault(f"{name} lives in registers, and is looked for in memory")
        if self.parallel is not None and space != STACK:
            self._share(name, element, self.parallel, write)

    def _share(self, name: str, element: int, iteration: int, write: bool) -> None:
        """Refuse that two parallel iterations touch an element that either of them writes."""
        owner, written = self._toucher.get((name, element), (iteration, False))
        # Reading side by side is not a race.
        if owner != iteration and (write or written):
            raise TreeFault(f"parallel iterations {owner} and {iteration} share {name}[{element}]")
        self._toucher[name, element] = (iteration if owner == iteration else -1, write or written)


def interpret(tree: LoopTree, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Execute a tree.

    Args:
        tree: the whole kernel; its ahead part is executed first.
        arrays: input to its elements, in any shape of the right size.

    Returns:
        Output to its elements, flat and in its own type; NaN, or `UNWRITTEN`, where
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
