"""Runs compiled code by the calling convention alone, on poisoned memory between guard pages."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.guarded import Arena, Block
from planish.levels.loops.codegen.kernel import ALIGNMENT, Entry, MachineCode
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.element_types import numpy_type

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
    place = code.layout
    work = [block(place.shared_bytes, ALIGNMENT)]
    work += [block(place.private_bytes, ALIGNMENT) for _ in range(cores)]
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
