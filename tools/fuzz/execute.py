"""Execution of compiled code by the calling convention alone, on poisoned memory between guard pages."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.levels.loops.codegen.kernel import ALIGNMENT, Entry, MachineCode
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.element_types import numpy_type

PAGE = mmap.PAGESIZE
_FAILED = ctypes.c_void_p(-1).value
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@dataclass
class Block:
    """Some bytes at the end of their pages, or at the start; what is left of the pages must stay as it is.

    Args:
        pages: all bytes between the guards.
        start: of those in use.
        size: how many are in use.
    """

    pages: NDArray[np.uint8]
    start: int
    size: int

    @property
    def address(self) -> int:
        """Where the bytes in use are."""
        return self.pages.ctypes.data + self.start

    @property
    def bytes(self) -> NDArray[np.uint8]:
        """The bytes in use."""
        return self.pages[self.start : self.start + self.size]

    def around(self) -> bytes:
        """The bytes that are not in use."""
        return self.pages[: self.start].tobytes() + self.pages[self.start + self.size :].tobytes()


@dataclass
class Arena:
    """Memory for blocks, each between two guard pages; after `clear` the same ones are used again."""

    _free: dict[int, list[NDArray[np.uint8]]] = field(default_factory=dict[int, list[Any]])
    _used: list[NDArray[np.uint8]] = field(default_factory=list[Any])

    def block(self, size: int, *, at_end: bool, align: int, fill: NDArray[np.uint8]) -> Block:
        """Return a block.

        Args:
            size: in bytes.
            at_end: whether it ends at a guard page, as nearly as its alignment lets it.
            align: its address is a multiple of this.
            fill: what its pages hold, repeated.
        """
        count = max(1, -(-size // PAGE))
        known = self._free.setdefault(count, [])
        pages = known.pop() if known else _mapped(count)
        self._used.append(pages)
        pages[:] = np.resize(fill, pages.size)
        start = (pages.size - size) // align * align if at_end else 0
        return Block(pages, start, size)

    def clear(self) -> None:
        """Take all blocks back."""
        for pages in self._used:
            self._free[pages.size // PAGE].append(pages)
        self._used.clear()


def _mapped(count: int) -> NDArray[np.uint8]:
    size = (count + 2) * PAGE
    access = mmap.PROT_READ | mmap.PROT_WRITE
    address = _libc.mmap(None, size, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    assert address is not None
    assert address != _FAILED, "no memory"
    for guard in (address, address + size - PAGE):
        assert _libc.mprotect(guard, PAGE, 0) == 0
    memory = (ctypes.c_uint8 * (count * PAGE)).from_address(address + PAGE)
    return np.ctypeslib.as_array(memory)


Array = NDArray[Any]
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_arena = Arena()


class Fault(Exception):  # noqa: N818 - a fault of the kernel
    """A kernel wrote where it must not."""


def execute(
    tree: LoopTree, code: MachineCode, inputs: Mapping[str, Array], cores: int, *, again: bool
) -> dict[str, Array]:
    """Run a kernel's ahead part and then its body.

    Args:
        tree: what was compiled.
        code: what that gave.
        inputs: by name.
        cores: how many threads, each with a private workspace, divide parallel loops.
        again: False: arrays end at a guard page, and all that is not input holds NaN. True: arrays begin
            behind a guard page, the rest holds large numbers, and the body runs twice.

    Returns:
        The outputs, flat.

    Raises:
        Fault: an input, or what is around an array, has changed.
    """
    fill = np.frombuffer(np.full(2, -3e19, "f4").tobytes() if again else b"\xff" * 8, np.uint8)

    def block(size: int, align: int) -> Block:
        return _arena.block(size, at_end=not again, align=align, fill=fill)

    blocks: dict[str, Block] = {}
    for b in tree.buffers:
        if b.kind != "temporary":
            item = numpy_type(b.dtype).itemsize
            blocks[b.name] = block(b.size * item, ALIGNMENT if b.kind == "ahead" else item)
    for name, values in inputs.items():
        blocks[name].bytes[:] = np.frombuffer(values.tobytes(), np.uint8)
    layout = code.layout
    work = [block(layout.shared_bytes, ALIGNMENT)]
    work += [block(layout.private_bytes, ALIGNMENT) for _ in range(cores)]
    words = [b.address for b in blocks.values()] + [work[0].address]
    lanes = [(ctypes.c_void_p * (len(words) + 1))(*words, mine.address) for mine in work[1:]]
    everything = [*blocks.values(), *work]
    before = [b.around() for b in everything]
    for entry in (*code.ahead_entries, *code.entries, *(code.entries if again else ())):
        run_entry(entry, lanes)
    _check(tree, inputs, blocks)
    if before != [b.around() for b in everything]:
        raise Fault("what is beside an array was written")
    made = [b for b in tree.buffers if b.kind == "output"]
    outputs = {b.name: blocks[b.name].bytes.copy().view(numpy_type(b.dtype)) for b in made}
    _arena.clear()
    return outputs


def _check(tree: LoopTree, inputs: Mapping[str, Array], blocks: Mapping[str, Block]) -> None:
    for b in tree.buffers:
        if b.kind == "input" and blocks[b.name].bytes.tobytes() != inputs[b.name].tobytes():
            raise Fault(f"input {b.name} was written")


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count)


def run_entry(entry: Entry, lanes: list[Any]) -> None:
    """Run a function of a kernel, a parallel one on as many threads as there are lanes."""
    function, n = _ENTRY(entry.address), len(lanes)
    if not entry.parallel:
        function(lanes[0], 0, 0)
        return
    parts = [
        (mine, entry.iterations * i // n, entry.iterations * (i + 1) // n) for i, mine in enumerate(lanes)
    ]
    parts = [part for part in parts if part[1] < part[2]]
    if len(parts) == 1:
        function(*parts[0])
    else:
        list(_threads(n).map(function, *zip(*parts, strict=True)))
