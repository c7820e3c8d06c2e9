"""Random operands of every kind that `numpy.einsum` takes, and of some that it refuses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]


class Labeled(np.ndarray[Any, Any]):
    """A subclass, as users make."""


class Duck:
    """No array, but NumPy asks it what its functions are to do."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> str:
        return f"{function.__name__} of {len(types)} types, {len(args)} arguments, {sorted(kwargs)}"


class Convertible:
    """No array, but NumPy can make one of it."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        del copy
        return self.array if dtype is None else self.array.astype(dtype)


def values(rng: Generator, shape: Shape, dtype: str) -> Array:
    """Return a row-major array; floats are normal, a few of them not a number or infinite."""
    kind = np.dtype(dtype).kind
    if kind in "iub":
        return np.asarray(rng.integers(0, 2 if kind == "b" else 5, shape)).astype(dtype)
    array = np.asarray(np.asarray(rng.standard_normal(shape)).astype(dtype))
    if kind == "c":
        array = np.asarray((array + 1j * np.asarray(rng.standard_normal(shape))).astype(dtype))
    if kind == "f" and array.size and rng.random() < 0.03:
        array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf])
    return array


def turned(rng: Generator, shape: Shape, dtype: str) -> Array:
    """Return an array without gaps, its dimensions in another order."""
    order = rng.permutation(len(shape))
    return values(rng, tuple(shape[d] for d in order), dtype).transpose(np.argsort(order))


def strided(rng: Generator, shape: Shape, dtype: str) -> Array:
    """Return a part of a larger array."""
    whole = np.asarray(values(rng, tuple(2 * n + 1 for n in shape), dtype))
    return whole[(..., *(slice(int(rng.integers(2)), None, 2) for _ in shape))][(..., *map(slice, shape))]


def backwards(rng: Generator, shape: Shape, dtype: str) -> Array:
    return values(rng, shape, dtype)[(..., *(slice(None, None, -1) for _ in shape))]


def repeated(rng: Generator, shape: Shape, dtype: str) -> Array:
    return np.broadcast_to(values(rng, shape[1:], dtype), shape)


def unaligned(rng: Generator, shape: Shape, dtype: str) -> Array:
    array = values(rng, shape, dtype)
    if array.dtype == object:
        return array
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    memory[:] = np.frombuffer(array.tobytes(), np.uint8)
    return memory.view(dtype).reshape(shape)


def swapped(rng: Generator, shape: Shape, dtype: str) -> Array:
    array = values(rng, shape, dtype)
    return array.astype(array.dtype.newbyteorder())


def read_only(rng: Generator, shape: Shape, dtype: str) -> Array:
    array = values(rng, shape, dtype)
    array.flags.writeable = False
    return array


def labeled(rng: Generator, shape: Shape, dtype: str) -> Array:
    return values(rng, shape, dtype).view(Labeled)


def masked(rng: Generator, shape: Shape, dtype: str) -> Any:
    array = values(rng, shape, dtype)
    return np.ma.MaskedArray(array, mask=rng.random(shape) < 0.3)


def matrix(rng: Generator, shape: Shape, dtype: str) -> Any:
    array = values(rng, shape, dtype)
    if len(shape) != 2:
        return array
    with warnings.catch_warnings(action="ignore"):  # NumPy would rather have no matrices
        return np.asmatrix(array)


def listed(rng: Generator, shape: Shape, dtype: str) -> Any:
    return values(rng, shape, dtype).tolist()


def duck(_: Generator, shape: Shape, dtype: str) -> Any:
    del dtype
    return Duck(shape)


def convertible(rng: Generator, shape: Shape, dtype: str) -> Any:
    return Convertible(values(rng, shape, dtype))


Maker = Callable[[Generator, Shape, str], Any]
PLAIN: tuple[Maker, ...] = (values, values, turned)
ODD: tuple[Maker, ...] = (
    strided, backwards, repeated, unaligned, swapped, read_only,
    labeled, masked, matrix, listed, duck, convertible,
)  # fmt: skip
FLOATS = ("float32", "float64")
DTYPES = (
    "float16",
    "longdouble",
    "int8",
    "int32",
    "int64",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "object",
)
