"""Oracle: whether a kernel is really wrong, on many finite inputs, on memory that holds anything."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from fuzz.answer import Inexact, answer
from fuzz.case import differences
from fuzz.draw import chance, pick
from fuzz.execute import run_entry
from planish.core import rng
from planish.levels.loops.codegen.kernel import MachineCode
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.draft import index_ranges
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import Program, TensorType
from planish.levels.loops.reference.inputs import aligned

Array = NDArray[Any]
LOOKS = ("plain", "one sign", "one sign", "small", "large", "wide", "ties", "sparse", "edge", "edge", "point")
_SIZES = (1, -1, 1, -1, 8, -8, 1 / 8, -1 / 8)
_NUMBERS = (0.0, 1.0, -1.0, 0.25, 0.75, -0.75, 0.5, 1.5, 2.0, -2.0)
"""Those of random programs, so that comparisons have equals."""


def adversarial(program: Program, seed: int, number: int) -> Mapping[str, Array]:
    """Make the inputs of a set: all of one look, or each of its own.

    Args:
        program: whose.
        seed: of all sets.
        number: of the set.
    """
    random = rng(seed, number, 1 << 21)
    common = pick(random, LOOKS) if chance(random, 0.6) else ""
    ranges = index_ranges(program)
    made: dict[str, Array] = {}
    for name in program.inputs:
        kind = program.type[name]
        if name in ranges:
            values = random.integers(-2, ranges[name] + 2, kind.shape).astype(np.float64)
        else:
            values = _looking(random, kind, common or pick(random, LOOKS))
        made[name] = _stored(values, kind, whole=program.arithmetic == "int32" and name not in ranges)
    return made


def _stored(values: Array, kind: TensorType, *, whole: bool) -> Array:
    """Round to the type of a tensor; integers are a few times as large, lest all be 0."""
    values = np.round(values * 8) if whole else values
    if kind.dtype.startswith("int"):
        ends = np.iinfo(kind.dtype)
        return np.clip(values, max(ends.min, -(2**30)), min(ends.max, 2**30)).astype(kind.dtype)
    return np.clip(values, -60000, 60000).astype(numpy_type(kind.dtype))


def _looking(random: Generator, kind: TensorType, look: str) -> Array:
    size = np.asarray(0.5 + 1.5 * random.random(kind.shape))
    sign = np.where(random.random(kind.shape) < 0.5, -1.0, 1.0)
    match look:
        case "one sign":
            made = size * pick(random, _SIZES)
        case "small" | "large":
            made = size * sign * (2.0**-7 if look == "small" else 2.0**7)
        case "wide":
            made = sign * 2.0 ** random.uniform(-10, 10, kind.shape)
        case "ties":
            made = random.choice(_NUMBERS, kind.shape)
        case "sparse":
            made = np.where(random.random(kind.shape) < 0.2, size * sign, 0.0)
        case "edge" | "point":
            made = _peaked(random, size, look)
        case _:
            made = size * sign
    return np.asarray(made)


def _peaked(random: Generator, size: Array, look: str) -> Array:
    """Let what is at an edge, or a single element, be larger or smaller than all others, of any sign."""
    base = np.asarray(size * pick(random, (-1, 1, 1 / 64, -1 / 64, 0)))
    peak = pick(random, (-64.0, 64.0, 8.0, -8.0, 1 / 64, -1 / 64, 0.0))
    part: list[Any] = [slice(None)] * size.ndim
    for d in range(size.ndim):
        if look == "point" or chance(random, 1 / size.ndim):
            part[d] = pick(random, (0, -1, int(random.integers(size.shape[d]))))
    base[tuple(part)] = size[tuple(part)] * peak
    return base


ROOM = 1 << 14
"""Bytes around each array: a kernel that leaves it a little finds there what memory holds."""
_FILLS = (b"\xff" * 8, np.float32(-3e19).tobytes(), np.float32(3e19).tobytes(), bytes(8))
"""What memory holds at first: NaN, numbers that are below or above all others, and 0."""


class Asked(NamedTuple):
    """A set of inputs and its answer."""

    inputs: Mapping[str, Array]
    answer: Mapping[str, Inexact]


class Found(NamedTuple):
    """What was found.

    Args:
        message: what is wrong with an answer; empty where none is.
        beside: whether memory beside an array was written.
    """

    message: str
    beside: bool


@dataclass
class Oracle:
    """Judges kernels of a program.

    Args:
        program: whose.
        right: a tree and code that are right: where they seem not to be, a set is left out.
        seed: of the inputs.

    Attributes:
        doubtful: how many sets were left out.
    """

    program: Program
    right: tuple[LoopTree, MachineCode]
    seed: int
    doubtful: int = 0
    _asked: list[Asked] = field(default_factory=list[Asked])
    _tried: int = 0

    def __post_init__(self) -> None:
        self._right = Judged(*self.right)

    def sets(self, count: int) -> Sequence[Asked]:
        """Return so many sets, or fewer where some were left out; they are kept."""
        while self._tried < count:
            inputs = adversarial(self.program, self.seed, self._tried)
            asked = Asked(inputs, answer(self.program, inputs))
            self._tried += 1
            if self._right.on([asked]).message:
                self.doubtful += 1
            else:
                self._asked.append(asked)
        return self._asked


class Judged:
    """A kernel in memory of its own, which has room around each array.

    Args:
        tree: what was compiled.
        code: what that gave.
    """

    def __init__(self, tree: LoopTree, code: MachineCode) -> None:
        self._tree, self._code = tree, code
        given = [b for b in tree.buffers if b.kind != "temporary"]
        sizes = [b.size * numpy_type(b.dtype).itemsize for b in given]
        sizes += [code.layout.shared_bytes, code.layout.private_bytes]
        starts = [ROOM]
        for size in sizes:
            starts.append((starts[-1] + size + 2 * ROOM) // ROOM * ROOM)
        self._memory = aligned(TensorType((starts[-1],), "int8")).view(np.uint8)
        self._free = np.ones(self._memory.size, bool)
        parts = [slice(start, start + size) for start, size in zip(starts, sizes, strict=False)]
        for part in parts:
            self._free[part] = False
        self._part = {b.name: self._memory[part] for b, part in zip(given, parts, strict=False)}
        address = self._memory.ctypes.data
        self._lanes = [(ctypes.c_void_p * len(parts))(*(address + part.start for part in parts))]

    def on(self, sets: Sequence[Asked]) -> Found:
        """Run the kernel on sets of inputs, until an answer is wrong.

        Every other run finds in memory what the one before left there.
        """
        beside = False
        for number, asked in enumerate(sets):
            if number % 2 == 0:
                pattern = np.frombuffer(_FILLS[number // 2 % len(_FILLS)], np.uint8)
                self._memory[:] = np.resize(pattern, self._memory.size)
            before = self._memory[self._free].tobytes()
            message = differences(self._outputs(asked.inputs), asked.answer)
            beside = beside or before != self._memory[self._free].tobytes()
            if message:
                return Found(message, beside)
        return Found("", beside)

    def _outputs(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        for name, values in inputs.items():
            self._part[name][:] = np.frombuffer(values.tobytes(), np.uint8)
        for entry in (*self._code.ahead_entries, *self._code.entries):
            run_entry(entry, self._lanes)
        made = [b for b in self._tree.buffers if b.kind == "output"]
        return {b.name: self._part[b.name].copy().view(numpy_type(b.dtype)) for b in made}
