"""Loop trees built by hand, and what runs compiled trees by the calling convention alone."""

import ctypes
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from planish.levels.loops.codegen.kernel import Entry, MachineCode
from planish.levels.loops.ir.tree import Buffer, Call, Leaf, Loop, LoopId, LoopTree, Node, Ref
from planish.levels.loops.lang.program import Const

Array = NDArray[Any]
_Kind = Literal["input", "output", "ahead", "temporary"]
Kind = tuple[_Kind, int] | tuple[_Kind, int, int]
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def ref(buffer: str, offset: int = 0, **strides: int) -> Ref:
    """Refer to an element; `i=3` moves three elements an iteration of (i, 1), `i_8=3` those of (i, 8)."""
    return Ref(buffer, offset, tuple((_loop(name), s) for name, s in strides.items() if s))


def _loop(name: str) -> LoopId:
    axis, _, step = name.partition("_")
    return axis, int(step or 1)


def buffers(dtype: str = "float64", **kinds: Kind) -> tuple[Buffer, ...]:
    """Make buffers from (kind, size) or (kind, size, scope)."""
    made = [Buffer(name, dtype, kind[1], kind[0], *kind[2:]) for name, kind in kinds.items()]
    order = ["input", "output", "ahead", "temporary"]
    return tuple(sorted(made, key=lambda b: order.index(b.kind)))


def matmul(m: int, n: int, k: int, order: tuple[str, ...], dtype: str = "float32") -> LoopTree:
    """C[m, n] += A[m, k] * B[k, n] with loops such as ("m_8", "n_32", "k", "m", "n"), set to zero first."""
    loops = [_loop(name) for name in order]

    def access(buffer: str, **strides: int) -> Ref:
        return Ref(buffer, 0, tuple((x, strides[x[0]] * x[1]) for x in loops if x[0] in strides))

    first = next(i for i, x in enumerate(loops) if x[0] == "k")
    target = access("C", m=n, n=1)
    zero: Node = Leaf(target, None, Const(0.0))
    update: Node = Leaf(target, "add", Call("mul", (access("A", m=k, k=1), access("B", k=n, n=1))))
    for axis, step in reversed(loops[first:]):
        update = Loop(axis, step, (update,))
        zero = zero if axis == "k" else Loop(axis, step, (zero,))
    body = (zero, update)
    for axis, step in reversed(loops[:first]):
        body = (Loop(axis, step, body),)
    kinds = buffers(dtype, A=("input", m * k), B=("input", k * n), C=("output", m * n))
    return LoopTree(body, (), kinds, (("k", k), ("m", m), ("n", n)))


def integers(tree: LoopTree, seed: int = 0) -> dict[str, Array]:
    """Fill the inputs with small integers."""
    random = np.random.default_rng(seed)
    return {b.name: random.integers(-3, 4, b.size).astype(b.dtype) for b in tree.buffers if b.kind == "input"}


def execute(
    tree: LoopTree, code: MachineCode, inputs: Mapping[str, Array], lanes: int = 1
) -> dict[str, Array]:
    """Run compiled code once, parallel entries in parts with a private workspace for each.

    All memory that is not input is filled with 0xff first, so NaN. It has guards of 64 bytes around it,
    which must not change.
    """
    memory: list[Array] = []

    def guarded(size: int) -> int:
        block = np.full(size + 192, 0xFF, np.uint8)
        start = -block.ctypes.data % 64 + 64
        memory.append(block[start - 64 : start])
        memory.append(block[start + size : start + size + 64])
        return block.ctypes.data + start

    place = code.layout
    addresses = {b.name: guarded(b.size * np.dtype(b.dtype).itemsize) for b in tree.buffers}
    for name, values in inputs.items():
        ctypes.memmove(addresses[name], values.ctypes.data, values.nbytes)
    words = [addresses[b.name] for b in tree.buffers if b.kind != "temporary"] + [guarded(place.shared_bytes)]
    args = [(ctypes.c_void_p * (len(words) + 1))(*words, guarded(place.private_bytes)) for _ in range(lanes)]
    for entry in (*code.ahead_entries, *code.entries):
        _run(entry, args)
    assert all((guard == 0xFF).all() for guard in memory), "written outside a buffer"
    kinds = {"float32": ctypes.c_float, "float64": ctypes.c_double}
    return {
        b.name: np.ctypeslib.as_array((kinds[b.dtype] * b.size).from_address(addresses[b.name])).copy()
        for b in tree.buffers
        if b.kind == "output"
    }


def _run(entry: Entry, args: list[Any]) -> None:
    function = ENTRY(entry.address)
    if not entry.parallel:
        function(args[0], 0, 0)
        return
    for lane, mine in reversed(list(enumerate(args))):
        function(mine, entry.iterations * lane // len(args), entry.iterations * (lane + 1) // len(args))
