"""The memory of interpreters: exact, and strict about what a tree may do to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.loops.ir.annotated import MEMORY, REGISTERS, STACK
from planish.loops.ir.tree import Loop, LoopTree, Ref, leaves
from planish.loops.lang.numpy_types import numpy_type
from planish.loops.lang.program import ARITHMETIC
from planish.loops.lang.whole import WHOLE, nearest_whole
from planish.loops.reference.bounds import VALUES

UNWRITTEN = -0x21524111
"""What whole numbers are that nothing has written: 0 may be right by chance, and this hardly ever is."""


class TreeFault(Exception):  # noqa: N818 - a fault of the tree, not of the user
    """A tree breaks the rules of `planish.loops.ir.tree`, or its annotations those of their module."""


def looked_up(base: Ref, index: Any, stride: float, extent: float) -> Ref:
    """Give what a "gather" reads: `index` strides behind its reference, brought into range."""
    # As all code generators do it: an index that leaves its range must be harmless, and the same everywhere.
    whole = np.nan_to_num(np.trunc(index), nan=0.0)
    return replace(base, offset=base.offset + int(stride) * int(np.clip(whole, 0, extent - 1)))


class Storage:
    """The buffers of a tree, element by element: in float64, or in int32 where all are whole numbers.

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
        whole = any(ARITHMETIC[b.dtype] == WHOLE for b in tree.buffers if b.kind != "input")
        self.number: Callable[[Any], Any] = (lambda x: np.int32(nearest_whole(x))) if whole else np.float64
        self.parallel: int | None = None
        self._values: dict[str, list[Any]] = {b.name: [None] * b.size for b in tree.buffers}
        for b in tree.buffers:
            if b.kind == "input":
                elements = np.asarray(arrays[b.name]).reshape(b.size).tolist()
                self._values[b.name] = list(map(self.number, elements))
        self._toucher: dict[tuple[str, int], tuple[int, bool]] = {}
        """Element to the parallel iteration that touched it (-1 for several), and whether it wrote it."""

    def array(self, name: str) -> NDArray[Any]:
        """Give a buffer in its own type; NaN, or `UNWRITTEN`, where nothing was written."""
        missing = np.nan if self.number is np.float64 else UNWRITTEN
        values = [missing if v is None else v for v in self._values[name]]
        return np.array(values, type(self.number(0))).astype(numpy_type(self.tree.buffer[name].dtype))

    def outputs(self) -> dict[str, NDArray[Any]]:
        """Give all outputs, flat."""
        return {b.name: self.array(b.name) for b in self.tree.buffers if b.kind == "output"}

    def read(self, name: str, element: int) -> Any:
        """Give an element, which was written before."""
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
        # Reading side by side is no race.
        if owner != iteration and (write or written):
            raise TreeFault(f"parallel iterations {owner} and {iteration} share {name}[{element}]")
        self._toucher[name, element] = (iteration if owner == iteration else -1, write or written)
