"""One run with arrays whose shapes and types are checked, which the compilers do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from planish.core import ProgramError
from planish.hlo.backend.element_types import numpy_type
from planish.hlo.backend.protocol import Backend, Executable, Held
from planish.hlo.ir import TensorType


def compute(
    backend: Backend, executable: Executable, types: Sequence[TensorType], arrays: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    """Run a compiled function once.

    Args:
        backend: which compiled it.
        executable: the function.
        types: of its arguments.
        arrays: the arguments.

    Raises:
        ProgramError: they are more or fewer, or of other shapes or types.
        BackendError: the run failed.
    """
    results = executable.run(held_arguments(backend, types, arrays))
    return [backend.get(result) for result in results]


def held_arguments(
    backend: Backend, types: Sequence[TensorType], arrays: Sequence[NDArray[Any]]
) -> list[Held]:
    """Copy arguments to the back end; raises ProgramError where they are not of these types."""
    if len(arrays) != len(types):
        raise ProgramError(f"{len(arrays)} arguments are given, the function takes {len(types)}")
    return [
        held_argument(backend, t, array, i) for i, (t, array) in enumerate(zip(types, arrays, strict=True))
    ]


def held_argument(backend: Backend, type_: TensorType, array: NDArray[Any], place: int) -> Held:
    """Copy an argument to the back end; raises ProgramError where it is not of this type."""
    if array.shape != type_.shape or array.dtype != numpy_type(type_.element):
        given = f"{array.dtype} {list(array.shape)}"
        raise ProgramError(f"argument {place} is {given}, the function takes {type_}", "Give such an array.")
    return backend.put(array)
