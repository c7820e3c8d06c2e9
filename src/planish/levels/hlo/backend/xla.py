"""XLA for CPUs by the bindings of jaxlib, without JAX.

Results come as DLPack; NumPy does not read bfloat16 from it, so those arrays are read as unsigned integers.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from jaxlib import _jax, xla_client  # type: ignore[attr-defined]
from numpy.typing import NDArray

from planish.levels.hlo.backend.compiler import BackendError, CompiledFiles, DeviceArray

_CPU = 1
_UNSIGNED, _BFLOAT = 1, 4


class _Tensor(ctypes.Structure):
    """The beginning of DLPack's `DLTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
    ]


class _Exchanged:
    """A capsule in the form that NumPy asks for."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_asked: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0)


def array_of(capsule: Any) -> NDArray[Any]:
    """Return the array of a DLPack capsule on the CPU; its memory is shared, and not to be written to."""
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(read(capsule, b"dltensor"))
    if tensor.code != _BFLOAT:
        return np.from_dlpack(_Exchanged(capsule))
    tensor.code = _UNSIGNED  # the same bits, of a type that NumPy knows
    return np.from_dlpack(_Exchanged(capsule)).view(ml_dtypes.bfloat16)


# What jaxlib has no public names for is asked of it in this file alone.
_Sharding: Any = _jax.SingleDeviceSharding  # type: ignore[attr-defined]
_put: Any = _jax.batched_device_put  # type: ignore[attr-defined]
_to_dlpack: Any = _jax.buffer_to_dlpack_managed_tensor  # type: ignore[attr-defined]
_COPY: Any = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL  # type: ignore[attr-defined]
_NOTHING = """
func.func @main() -> tensor<f32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  return %0 : tensor<f32>
}
"""


class XlaBackend:
    """XLA in this process.

    Args:
        cores: threads that compiled code may use.
        files: where compiled modules are found and left; None: nowhere.
    """

    name = "xla"

    def __init__(self, cores: int = 1, files: CompiledFiles | None = None) -> None:
        with _threads(cores):
            client: Any = xla_client.make_cpu_client(asynchronous=False)
        self._client = client
        self._device = client.local_devices()[0]
        self._sharding = _OneDevice(self._device)
        self._cores, self._files = cores, files
        # The first result has jaxlib import JAX, where it is installed: that is no part of a measurement.
        self.compile(_NOTHING).run([])

    def compile(self, text: str) -> XlaExecutable:
        """Compile the `main` of a module; raises BackendError where it is refused."""
        known = self._files.find(text, self._cores) if self._files else None
        if known is not None:
            with suppress(_jax.JaxRuntimeError):  # it is of no use: it is compiled
                return XlaExecutable(self._loaded(self._client.deserialize_executable, known))
        try:
            loaded = self._loaded(self._client.compile_and_load, text.encode())
        except _jax.JaxRuntimeError as error:
            raise BackendError(_first_line(error)) from error
        if self._files:
            with suppress(_jax.JaxRuntimeError):  # XLA cannot write it down
                self._files.keep(text, self._cores, self._client.serialize_executable(loaded))
        return XlaExecutable(loaded)

    def _loaded(self, load: Any, code: bytes) -> Any:
        return load(code, _jax.DeviceList((self._device,)), xla_client.CompileOptions())

    def put(self, array: NDArray[Any]) -> DeviceArray:
        """Copy an array to the back end."""
        aval = _Aval(array.shape, array.dtype)
        return _put(aval, self._sharding, [array], [self._device], True, False, _COPY, True)

    def get(self, array: DeviceArray) -> NDArray[Any]:
        """Return an array of the back end, not to be written to."""
        return array_of(_to_dlpack(array))


class XlaExecutable:
    """A compiled function.

    Args:
        loaded: as jaxlib gives it.
    """

    def __init__(self, loaded: Any) -> None:
        self._execute = loaded.execute_sharded

    def run(self, arguments: Sequence[DeviceArray]) -> Sequence[DeviceArray]:
        """Run it, and wait for its end; raises BackendError where it fails."""
        try:
            results = self._execute(arguments).disassemble_into_single_device_arrays()
        except (_jax.JaxRuntimeError, ValueError) as error:
            raise BackendError(_first_line(error)) from error
        return [one for (one,) in results]


class _OneDevice(_Sharding):
    """The sharding of one device, with what jaxlib asks of it when JAX has not filled it in."""

    memory_kind = None

    def _to_xla_hlo_sharding(self, _dimensions: int) -> Any:
        return xla_client.HloSharding.replicate()


@dataclass(frozen=True)
class _Aval:
    """The type of an array, as jaxlib asks for it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak_type: bool = False


@contextmanager
def _threads(cores: int) -> Generator[None]:
    """Set the threads of a client that is made meanwhile; XLA reads them from the environment alone."""
    before = {name: os.environ.get(name) for name in ("NPROC", "PJRT_NPROC")}
    os.environ.update(dict.fromkeys(before, str(cores)))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
