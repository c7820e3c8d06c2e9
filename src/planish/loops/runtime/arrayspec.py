"""How an array that a caller passes lies in memory, beside the row-major tensor of a program."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.loops.lang.numpy_types import numpy_type
from planish.loops.lang.program import DTYPES, TensorType

Array = NDArray[Any]


@dataclass(frozen=True)
class ArraySpec:
    """Shape, element type and strides of an array without gaps, its dimensions in any order.

    Args:
        shape: the extents as the caller sees them.
        strides: bytes between neighbours along each dimension.
        dtype: the element type's name.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @staticmethod
    def of(array: Array) -> ArraySpec:
        """Describe an array.

        Raises:
            ProgramError: its elements do not fill a block of memory, each once.
        """
        spec = ArraySpec(array.shape, array.strides, array.dtype.name)
        if not array.transpose(spec.order).flags.c_contiguous:
            raise ProgramError(f"an array of strides {array.strides}", "Supported: arrays without gaps.")
        return spec

    @staticmethod
    def row_major(shape: tuple[int, ...], dtype: str) -> ArraySpec:
        """Describe a row-major array."""
        return ArraySpec(shape, tuple(DTYPES[dtype] * s for s in TensorType(shape).strides()), dtype)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The dimensions from the slowest to the fastest: transposed so, the array is row-major."""
        wide = [d for d, extent in enumerate(self.shape) if extent > 1]
        slowest_first = sorted(wide, key=lambda d: -self.strides[d])
        if slowest_first == wide:
            return tuple(range(len(self.shape)))
        # An extent of 1 may have any stride, so these come first, where they change nothing.
        return (*(d for d in range(len(self.shape)) if d not in wide), *slowest_first)

    @property
    def tensor(self) -> TensorType:
        """The row-major tensor that it is."""
        return TensorType(tuple(self.shape[d] for d in self.order), self.dtype)

    def empty(self) -> Array:
        """Allocate an array of this kind."""
        rows = np.empty([self.shape[d] for d in self.order], numpy_type(self.dtype))
        return rows.transpose(sorted(range(len(self.order)), key=self.order.__getitem__))

    def fits(self, array: object) -> bool:
        """Whether something is an array of this kind; strides along extents of 1 do not matter."""
        return (
            # No subclass: its operators may mean something else.
            type(array) is np.ndarray
            and array.shape == self.shape
            and array.dtype == numpy_type(self.dtype)
            and array.dtype.isnative
            and array.flags.aligned
            and all(n == 1 or s == t for n, s, t in zip(self.shape, array.strides, self.strides, strict=True))
        )

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)} of strides {list(self.strides)}"
