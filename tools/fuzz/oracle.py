"""Whether a kernel is really wrong: on many finite inputs, on memory that holds anything."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fuzz.adversary import adversarial
from fuzz.answer import answer
from fuzz.case import differences
from fuzz.errors import Inexact
from fuzz.execute import run_entry
from planish.levels.loops.codegen.kernel import MachineCode
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import Program, TensorType
from planish.levels.loops.reference.inputs import aligned

Array = NDArray[Any]
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
