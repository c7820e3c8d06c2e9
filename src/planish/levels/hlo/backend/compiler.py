"""Interface of a compiler, checked runs of its code, and files of compiled modules."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.levels.hlo.ir.mlir import TensorType
from planish.sandbox.scratch import shared_cache

DeviceArray = Any
"""An array where the back end keeps it; of no use to another one."""


class BackendError(Exception):
    """A compiler refused a module, or a run of it ended with an error.

    Args:
        message: in one line.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Executable(Protocol):
    """A compiled function."""

    def run(self, arguments: Sequence[DeviceArray]) -> Sequence[DeviceArray]:
        """Run it, and wait for its end.

        Shapes and types of the arguments are not looked at: XLA checks the bytes alone, and would take others
        of the same number. `planish.levels.hlo.backend.compute` does.

        Raises:
            BackendError: it failed.
        """
        ...


class Backend(Protocol):
    """Compiles and runs, in this process, which it may crash or let hang."""

    @property
    def name(self) -> str:
        """As in `backend=NAME`."""
        ...

    def compile(self, text: str) -> Executable:
        """Compile the `main` of a module; raises BackendError where it is refused."""
        ...

    def put(self, array: NDArray[Any]) -> DeviceArray:
        """Copy an array to the back end."""
        ...

    def get(self, array: DeviceArray) -> NDArray[Any]:
        """Return an array of the back end, not to be written to."""
        ...


_TYPES: dict[str, Any] = {
    "i1": np.bool_,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}


def numpy_type(element: str) -> np.dtype[Any]:
    """Return NumPy's type; raises ProgramError where it has none that arrays are exchanged in."""
    if element not in _TYPES:
        raise ProgramError(
            f"arguments and results of type {element} are not supported", f"Known: {', '.join(_TYPES)}."
        )
    return np.dtype(_TYPES[element])


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
    results = executable.run(device_arguments(backend, types, arrays))
    return [backend.get(result) for result in results]


def device_arguments(
    backend: Backend, types: Sequence[TensorType], arrays: Sequence[NDArray[Any]]
) -> list[DeviceArray]:
    """Copy arguments to the back end; raises ProgramError where they are not of these types."""
    if len(arrays) != len(types):
        raise ProgramError(f"{len(arrays)} arguments are given, the function takes {len(types)}")
    return [
        device_argument(backend, t, array, i) for i, (t, array) in enumerate(zip(types, arrays, strict=True))
    ]


def device_argument(backend: Backend, type_: TensorType, array: NDArray[Any], position: int) -> DeviceArray:
    """Copy an argument to the back end; raises ProgramError where it is not of this type."""
    if array.shape != type_.shape or array.dtype != numpy_type(type_.element):
        given = f"{array.dtype} {list(array.shape)}"
        raise ProgramError(
            f"argument {position} is {given}, the function takes {type_}", "Give such an array."
        )
    return backend.put(array)


_DIGEST = sha256().digest_size
ROOM = 256 << 20
"""Bytes of compiled modules: some 300 of MobileNet's size."""


class CompiledFiles:
    """Cache of compiled modules, which worker processes share; it ends with the object that made it.

    To read a module takes a twentieth of the time that compiling it takes, and at the end of a run each
    finalist is timed in several fresh processes.

    Args:
        room: bytes that it holds at most; the oldest go.

    Attributes:
        folder: with a file for each module.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._cache = shared_cache(room)
        self.folder = self._cache.folder

    def find(self, text: str, cores: int) -> bytes | None:
        """Return what a text was compiled to, for so many cores; None where it is not there, or damaged."""
        content = self._cache.get(_key(text, cores)) or b""
        digest, code = content[:_DIGEST], content[_DIGEST:]
        # XLA ends the process where code is damaged.
        return code if sha256(code).digest() == digest else None

    def keep(self, text: str, cores: int, code: bytes) -> None:
        """Keep what a text was compiled to; a folder that is full, or gone, keeps nothing."""
        self._cache.put(_key(text, cores), sha256(code).digest() + code)


def _key(text: str, cores: int) -> str:
    return f"{sha256(f'{cores} {text}'.encode()).hexdigest()}.xla"
