"""Arrays with room around them, which shows kernels that leave their arrays."""

from __future__ import annotations

from functools import cache

import numpy as np

from planish.loops.lang.element_types import numpy_type
from planish.loops.lang.program import TensorType
from planish.loops.reference.inputs import ALIGNMENT
from planish.loops.reference.views import Array

ROOM = 64 * ALIGNMENT
"""Bytes on either side."""


class Surrounded:
    """An array that starts at a cache line, in memory of its own.

    Args:
        kind: its shape and element type.

    Attributes:
        array: of arbitrary content.
    """

    def __init__(self, kind: TensorType) -> None:
        dtype = numpy_type(kind.dtype)
        size = kind.size * dtype.itemsize
        memory = np.empty(size + 2 * ROOM + ALIGNMENT, np.uint8)
        start = ROOM + -memory.ctypes.data % ALIGNMENT
        self.array: Array = memory[start : start + size].view(dtype).reshape(kind.shape)
        self._around = memory[start - ROOM : start], memory[start + size : start + size + ROOM]

    def surround(self, byte: int) -> None:
        """Fill what is around the array."""
        for part in self._around:
            part.fill(byte)

    def surrounded_by(self, byte: int) -> bool:
        """Whether that is what is still around it."""
        # As bytes: to compare so few by NumPy takes several times as long.
        return all(part.tobytes() == _filled(byte) for part in self._around)


@cache
def _filled(byte: int) -> bytes:
    return bytes([byte]) * ROOM
