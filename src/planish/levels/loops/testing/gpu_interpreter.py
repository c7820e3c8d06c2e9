"""Interpreter of GPU kernels: blocks and threads one by one, with a check for races and missed barriers.

Threads of a block go from barrier to barrier. It refuses that a kernel leaves a buffer; that threads touch an
element of shared memory between two barriers, or of global memory in one kernel, which another of them
writes; and that some threads of a block wait at a barrier where others end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.levels.loops.gpu.kernels import (
    Barrier,
    Compute,
    Condition,
    Cooperative,
    Counts,
    GpuKernel,
    GpuProgram,
    Item,
    Mma,
    Pipelined,
    Serial,
    Single,
)
from planish.levels.loops.ir.tree import Call, Leaf, LoopId, Ref, Value
from planish.levels.loops.lang.element_types import INTEGER, nearest_integer, numpy_type
from planish.levels.loops.lang.program import ARITHMETIC, Const
from planish.levels.loops.reference.bounds import VALUES
from planish.levels.loops.testing.interpreter import UNWRITTEN, TreeFault, looked_up

At = Mapping[LoopId, int]
"""Iteration of each loop."""
_ON_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}
"""Functions that Python's numbers have themselves: NumPy's take 10 times as long for one."""


def execute(program: GpuProgram, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Execute kernels in order.

    Args:
        program: what is executed; what fills buffers ahead comes first.
        arrays: input to its elements, in any shape of the right size.

    Returns:
        Output to its elements, flat and in its own type; NaN, or `UNWRITTEN`, where nothing was written.

    Raises:
        TreeFault: a kernel breaks a rule.
    """
    machine = _Machine(program, arrays)
    with np.errstate(all="ignore"):
        for kernel in (*program.ahead, *program.kernels):
            machine.run(kernel)
    return machine.outputs()


class _Memory:
    """A buffer, element by element, and which thread touched what since the last barrier."""

    def __init__(self, name: str, values: list[Any]) -> None:
        self.name, self.values = name, values
        self.touched: dict[int, tuple[int, bool]] = {}

    def check(self, element: int, thread: int | None, *, write: bool) -> None:
        """Refuse to leave the buffer, and to touch what another thread writes."""
        if not 0 <= element < len(self.values):
            raise TreeFault(f"{self.name}[{element}] is outside its {len(self.values)} elements")
        if thread is None:
            return
        before = self.touched.get(element)
        if before is None:
            self.touched[element] = (thread, write)
            return
        owner, written = before
        if owner != thread and (write or written):
            raise TreeFault(f"threads {owner} and {thread} race for {self.name}[{element}]")
        if owner not in (thread, -1) or (write and not written):
            self.touched[element] = (thread if owner == thread else -1, write or written)


def _iterations(loops: Counts) -> Iterator[dict[LoopId, int]]:
    """List the iterations of nested loops."""
    names = [loop for loop, _ in loops]
    return (dict(zip(names, at, strict=True)) for at in product(*(range(count) for _, count in loops)))


class _Machine:
    def __init__(self, program: GpuProgram, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.tree = program.tree
        self.number: Callable[[Any], Any] = float
        if any(ARITHMETIC[b.dtype] == INTEGER for b in self.tree.buffers if b.kind != "input"):
            self.number = lambda x: np.int32(nearest_integer(x))
        self.missing = self.number(np.nan if self.number is float else UNWRITTEN)
        self.memory = {b.name: _Memory(b.name, [self.missing] * b.size) for b in self.tree.buffers}
        for name, array in arrays.items():
            self.memory[name].values[:] = map(self.number, np.asarray(array).reshape(-1).tolist())
        self.thread = 0
        self.made: dict[int, Callable[[At], None]] = {}

    def outputs(self) -> dict[str, NDArray[Any]]:
        """Return all outputs."""
        return {
            b.name: np.array(self.memory[b.name].values).astype(numpy_type(b.dtype))
            for b in self.tree.buffers
            if b.kind == "output"
        }

    def run(self, kernel: GpuKernel) -> None:
        """Launch a kernel."""
        self.kernel = kernel
        self.private = {b.name for b in kernel.private}
        self.made.clear()
        for memory in self.memory.values():
            memory.touched = {}
        for block in range(kernel.grid_size):
            self._block(kernel, block)

    def _block(self, kernel: GpuKernel, block: int) -> None:
        own = {b.name: _Memory(b.name, [self.missing] * b.size) for b in kernel.shared}
        threads = list[tuple[int, dict[str, _Memory], Generator[None]]]()
        for thread in range(kernel.launched):
            at = self._start(kernel, block, thread)
            if at is not None:
                private = {b.name: _Memory(b.name, [self.missing] * b.size) for b in kernel.private}
                number = block * kernel.launched + thread
                running = self._items(self._body(kernel, thread), at)
                threads.append((number, {**self.memory, **own, **private}, running))
        waiting = True
        while waiting and threads:
            met = set[bool]()
            for number, memory, running in threads:
                self.thread, self.here = number, memory
                met.add(next(running, self) is not self)
            if len(met) > 1:
                raise TreeFault(f"{kernel.name}: some threads wait at a barrier where others end")
            waiting = met.pop()
            for memory in own.values():
                memory.touched = {}

    def _body(self, kernel: GpuKernel, thread: int) -> tuple[Item, ...]:
        """Return what a thread executes: copying threads, copies alone, which the others leave to them."""
        if not kernel.copying:
            return kernel.body
        if thread < kernel.block_size:
            return tuple(replace(i, copies=()) if isinstance(i, Pipelined) else i for i in kernel.body)
        return tuple(replace(i, body=()) for i in kernel.body if isinstance(i, Pipelined))

    def _start(self, kernel: GpuKernel, block: int, thread: int) -> dict[LoopId, int] | None:
        """Return the iterations that a thread stands for; None where it has none."""
        pairs = [(kernel.threads, block * kernel.block_size + thread)] if kernel.flat else []
        numbers = (kernel.blocks, kernel.row_major(block)), (kernel.threads, thread % kernel.block_size)
        pairs = pairs or [*numbers]
        at: dict[LoopId, int] = {}
        for loops, number in pairs:
            for loop, count in reversed(loops):
                number, at[loop] = divmod(number, count)
            if number:
                return None
        return at

    def _items(self, items: tuple[Item, ...], at: dict[LoopId, int]) -> Generator[None]:
        for item in items:
            match item:
                case Barrier():
                    yield
                case Compute():
                    self._compute(item, at)
                case Mma():
                    compute = self._leaf(item.leaf)
                    for own in _iterations(item.walked):
                        compute({**at, **own})
                case Pipelined():
                    yield from self._pipelined(item, at)
                case Serial() | Single() | Cooperative():
                    for inside in self._inside(item, at):
                        yield from self._items(item.body, inside)

    def _inside(
        self, item: Serial | Single | Cooperative, at: dict[LoopId, int]
    ) -> Iterator[dict[LoopId, int]]:
        """List the iterations of a thread in an item's body."""
        match item:
            case Serial():
                yield from ({**at, item.loop: i} for i in range(item.first, item.last))
            case Single():
                first = self.thread % self.kernel.launched == 0
                if all(at[loop] == 0 for loop in item.loops) and (item.loops or first):
                    yield at
            case Cooperative():
                yield from ({**at, **own} for own in self._share_of(item))

    def _pipelined(self, item: Pipelined, at: dict[LoopId, int]) -> Generator[None]:
        ahead = item.ahead

        def inside(i: int) -> dict[LoopId, int]:
            return {**at, item.loop: i, item.tile: i % item.stages}

        for i in range(item.first, min(item.first + ahead, item.last)):
            yield from self._items(item.copies, inside(i))
        for i in range(item.first, item.last):
            yield
            if i + ahead < item.last:
                yield from self._items(item.copies, inside(i + ahead))
            yield from self._items(item.body, inside(i))

    def _share_of(self, item: Cooperative) -> Iterator[dict[LoopId, int]]:
        """List the iterations of this thread among those that all threads share."""
        own, sharing = self.thread % self.kernel.launched, self.kernel.block_size
        if self.kernel.copying:
            own, sharing = own - sharing, self.kernel.copying
        return islice(_iterations(item.loops), own, None, sharing)

    def _compute(self, item: Compute, at: At) -> None:
        if item.lanes:
            loop, width = item.lanes
            for i in range(width):
                self._compute(Compute(item.leaf, item.conditions), {**at, loop: i})
        elif all(self._holds(condition, at) for condition in item.conditions):
            self._leaf(item.leaf)(at)

    def _holds(self, condition: Condition, at: At) -> bool:
        return sum(stride * at[loop] for loop, stride in condition.terms) < condition.limit

    def _leaf(self, leaf: Leaf) -> Callable[[At], None]:
        """Return what computes a leaf: made once for each kernel, since it is executed thousands of times."""
        found = self.made.get(id(leaf))
        if found is None:
            found = self.made[id(leaf)] = self._store(leaf)
        return found

    def _store(self, leaf: Leaf) -> Callable[[At], None]:
        value = self._value(leaf.value)
        if leaf.reduce:
            value = self._applied(leaf.reduce, [self._value(leaf.target), value])
        element, name = self._element(leaf.target), leaf.target.buffer
        private = name in self.private

        def store(at: At) -> None:
            memory, computed, index = self.here[name], value(at), element(at)
            memory.check(index, None if private else self.thread, write=True)
            memory.values[index] = computed

        return store

    def _value(self, value: Value) -> Callable[[At], Any]:
        match value:
            case Const():
                constant = self.number(value.value)
                return lambda _: constant
            case Ref():
                return self._load(value)
            case Call("gather", (Ref() as base, index, Const(stride), Const(extent))):
                position = self._value(index)
                return lambda at: self._load(looked_up(base, position(at), stride, extent))(at)
            case Call(function, args):
                return self._applied(function, [self._value(arg) for arg in args])
        raise AssertionError(value)

    def _load(self, ref: Ref) -> Callable[[At], Any]:
        element, name, private = self._element(ref), ref.buffer, ref.buffer in self.private

        def load(at: At) -> Any:
            memory, index = self.here[name], element(at)
            memory.check(index, None if private else self.thread, write=False)
            return memory.values[index]

        return load

    def _applied(self, function: str, args: list[Callable[[At], Any]]) -> Callable[[At], Any]:
        if function in _ON_NUMBERS:
            apply, (one, other) = _ON_NUMBERS[function], args
            return lambda at: apply(one(at), other(at))
        number, compute = self.number, VALUES[function]
        return lambda at: number(compute(*[arg(at) for arg in args]))

    def _element(self, ref: Ref) -> Callable[[At], int]:
        arranged = self.kernel.arranged.get(ref.buffer)

        def element(at: At) -> int:
            found = ref.offset
            try:
                for loop, stride in ref.strides:
                    found += stride * at[loop]
            except KeyError as error:
                missing = error.args[0]
                raise TreeFault(f"{ref.buffer} moves with {missing}, which does not enclose it") from error
            return arranged.place(found) if arranged else found

        return element
