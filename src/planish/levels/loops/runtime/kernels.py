"""Execution of compiled kernels on NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, TargetError, did_you_mean
from planish.levels.loops.codegen.kernel import ALIGNMENT, Entry, MachineCode
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import DTYPES, Program, TensorType

Arrays = Mapping[str, NDArray[Any]]
Bytes = NDArray[np.uint8]

_ROOM = 4 * ALIGNMENT
"""Bytes on either side of a kernel's own memory."""
MOST_ITERATIONS = (1 << 31) - 1
"""Iterations of a loop that threads share; see the ranges of `planish.levels.loops.runtime.threads`."""
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class KernelMemory(NamedTuple):
    """Memory of a kernel.

    Args:
        ahead: by name, the buffers of prepacked constants, which are filled once.
        shared: the workspace of all threads.
        private: that of each.
    """

    ahead: Mapping[str, Bytes]
    shared: Bytes
    private: Sequence[Bytes]


class Kernel:
    """A compiled program.

    Args:
        program: what it computes; its inputs and outputs are the kernel's.
        tree: what was compiled.
        code: what that gave.
        cores: how many threads run parallel loops, the calling one included.
    """

    def __init__(self, program: Program, tree: LoopTree, code: MachineCode, cores: int = 1) -> None:
        self.program = program
        self.tree = tree
        self.code = code
        self.cores = cores

    def bind(self, inputs: Arrays, outputs: Arrays) -> BoundKernel:
        """Attach the kernel to arrays, and run its ahead part, which packs the constant inputs.

        Later changes of a constant input have no effect until the kernel is bound again or prepared.

        Args:
            inputs: tensor to array, of the program's shapes and types, C-contiguous.
            outputs: likewise, writeable; they share no memory with each other or with inputs.

        Raises:
            ProgramError: an array is missing, unknown, or not as it must be.
            TargetError: there is no memory for the buffers.
        """
        _check_names("input", inputs, self.program.inputs)
        _check_names("output", outputs, self.program.outputs)
        for name, array in (*inputs.items(), *outputs.items()):
            _check(name, array, self.program.type[name])
        _check_outputs(inputs, outputs)
        return BoundKernel(self, {**inputs, **outputs})

    def allocate(self) -> KernelMemory:
        """Make the memory that belongs to the kernel; raises TargetError where there is not so much."""
        layout = self.code.layout
        ahead = {b.name: b.size * DTYPES[b.dtype] for b in self.tree.buffers if b.kind == "ahead"}
        return KernelMemory(
            {name: _aligned(size) for name, size in ahead.items()},
            _aligned(layout.shared_bytes),
            [_aligned(layout.private_bytes) for _ in range(self.cores)],
        )

    def thread_arguments(self, arrays: Arrays) -> tuple[list[Any], list[NDArray[np.uint8]]]:
        """Make the array of arguments of every thread, and the memory that belongs to the kernel.

        Args:
            arrays: of inputs and outputs; the addresses of those that are missing are to be filled in.
        """
        ahead, shared, private = self.allocate()
        given = dict.fromkeys((*self.program.inputs, *self.program.outputs), 0)
        given |= {n: a.ctypes.data for n, a in (*arrays.items(), *ahead.items())}
        order = [given[b.name] for b in self.tree.buffers if b.kind != "temporary"]
        rows = [[*order, shared.ctypes.data, own.ctypes.data] for own in private]
        lanes = [(ctypes.c_void_p * len(words))(*words) for words in rows]
        return lanes, [*ahead.values(), shared, *private]


class BoundKernel:
    """A kernel with its arrays; a call computes the outputs from what the inputs hold now.

    It is made by `Kernel.bind`. Calls from several threads at once are not safe, for they share the outputs.
    """

    def __init__(self, kernel: Kernel, arrays: Arrays) -> None:
        self.kernel = kernel
        self.arrays = dict(arrays)
        self._lanes, self._owned = kernel.thread_arguments(arrays)
        self.prepare()
        self._launch = LaunchRecord(kernel.code.entries, self._lanes)
        self._once: Callable[[], object] = self._launch.once()

    def prepare(self) -> None:
        """Run the ahead part, which packs the constant inputs as they are now."""
        if self.kernel.code.ahead_entries:
            LaunchRecord(self.kernel.code.ahead_entries, self._lanes).run(1)

    def poison(self, byte: int = 0xFF) -> None:
        """Fill the kernel's own memory with a byte, and what is around it, and run the ahead part.

        Args:
            byte: by default all bits are set: a NaN in every type of floats.
        """
        for memory in self._owned:
            (memory if memory.base is None else memory.base).fill(byte)
        self.prepare()

    def __call__(self) -> None:
        """Run the kernel once."""
        self._once()

    def repeat(self, times: int) -> None:
        """Run the kernel many times; native code counts, and the GIL is released once."""
        self._launch.run(times)


class LaunchRecord:
    """Launch record of a kernel, which `planish.levels.loops.runtime.threads` reads.

    Args:
        entries: of a kernel.
        lanes: the arguments of each thread.

    Attributes:
        parallel: whether several threads run it.
    """

    def __init__(self, entries: Sequence[Entry], lanes: Sequence[Any]) -> None:
        self._entries = entries
        self._lanes = lanes
        n, width = len(entries), len(lanes)
        # In integers, so that the ranges of neighbouring threads meet, and lengths differ by one at most.
        range_limits = [e.iterations * lane // width for e in entries for lane in range(width + 1)]
        tables = [
            (ctypes.c_void_p * width)(*(ctypes.addressof(a) for a in lanes)),
            (ctypes.c_void_p * n)(*(e.address for e in entries)),
            (ctypes.c_int64 * n)(*map(_is_shared, entries)),
            (ctypes.c_int64 * len(range_limits))(*range_limits),
        ]
        # The record has only their addresses.
        self._tables = tables
        self._words = (ctypes.c_int64 * 6)(n, width, *map(ctypes.addressof, tables))
        self._record = ctypes.c_void_p(ctypes.addressof(self._words))
        self.parallel = width > 1 and any(map(_is_shared, entries))

    def once(self) -> Callable[[], object]:
        """Return a function that runs it once with the least overhead."""
        if len(self._entries) == 1 and not self.parallel:
            arguments = ctypes.c_void_p(ctypes.addressof(self._lanes[0]))
            entry = self._entries[0]
            return partial(_ENTRY(entry.address), arguments, 0, entry.iterations)
        return self.run_once

    def run_once(self) -> None:
        """Run it once, with the addresses that are in the threads' arguments now."""
        self.run(1)

    def run(self, times: int) -> None:
        """Run it many times in a row."""
        if self.parallel:
            from planish.levels.loops.runtime.threads import thread_team

            thread_team(len(self._lanes)).run(self._record, times)
        else:
            from planish.levels.loops.runtime.threads import native

            native().repeat(self._record, times)


def _is_shared(entry: Entry) -> bool:
    """Return whether threads share an entry: its iterations are several, and not more than can be counted."""
    return entry.parallel and 1 < entry.iterations <= MOST_ITERATIONS


def _aligned(size: int) -> NDArray[np.uint8]:
    try:
        # NumPy's memory need not begin at a multiple of the alignment. And a kernel that leaves its own
        # memory is to find there what it was filled with.
        memory = np.empty(size + 2 * _ROOM + ALIGNMENT, np.uint8)
    except MemoryError as error:
        raise TargetError(f"no memory for a buffer of {size} bytes", "Choose smaller sizes.") from error
    return memory[_ROOM + -memory.ctypes.data % ALIGNMENT :][:size]


def _check_names(kind: str, arrays: Arrays, wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in arrays:
            others = ", ".join(arrays) or "none"
            raise ProgramError(f"{kind} '{name}' is missing", f"Pass an array for it beside {others}.")
    for name in arrays:
        if name not in wanted:
            raise ProgramError(f"the program has no {kind} '{name}'", did_you_mean(name, wanted))


def _check(name: str, array: NDArray[Any], wanted: TensorType) -> None:
    if array.shape != wanted.shape:
        raise ProgramError(f"{name} has shape {array.shape}, the program says {wanted.shape}")
    if array.dtype != numpy_type(wanted.dtype):
        hint = f"Convert it: {name}.astype('{wanted.dtype}')."
        raise ProgramError(f"{name} is of type {array.dtype}, the program says {wanted.dtype}", hint)
    if not array.flags.c_contiguous:
        hint = f"Copy it: numpy.ascontiguousarray({name})."
        raise ProgramError(f"{name} is not contiguous in memory", hint)
    if not array.flags.aligned:
        what = f"{name} does not begin at a multiple of {array.itemsize} bytes, as its elements should"
        raise ProgramError(what, f"Copy it: {name}.copy().")


def _check_outputs(inputs: Arrays, outputs: Arrays) -> None:
    for name, array in outputs.items():
        if not array.flags.writeable:
            raise ProgramError(f"output {name} is read-only", f"Copy it: {name}.copy().")
        # Both are contiguous: that their bounds are apart decides.
        for other, shared in (*inputs.items(), *outputs.items()):
            if other != name and np.may_share_memory(array, shared):
                raise ProgramError(f"output {name} shares memory with {other}", f"Copy it: {name}.copy().")
