"""Compilers that run modules: XLA through jaxlib, and IREE to cross-check.

XLA is called by the bindings of jaxlib, without JAX. IREE is slower to compile than XLA, and independent of
it. The checks of arguments and the cache of compiled modules are the same for both.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from jaxlib import _jax, xla_client  # type: ignore[attr-defined]
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.levels.hlo.ir.mlir import TensorType
from planish.levels.hlo.machine import versions
from planish.sandbox.shared_cache import shared_cache

DeviceArray = Any
"""An array where the back end keeps it; of no use to another one."""


class BackendError(Exception):
    """A compiler refused a module, or a run of it ended with an error."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


Executable = Callable[[Sequence[DeviceArray]], Sequence[DeviceArray]]
"""Runs a compiled function, and waits for its end; raises BackendError where it fails.

Shapes and types of the arguments are not looked at: XLA checks the bytes alone, and would take others of the
same number. `planish.levels.hlo.backend.compute` does.
"""


class HloBackend(Protocol):
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
        what = f"arguments and results of type {element} are not supported"
        raise ProgramError(what, f"Known: {', '.join(_TYPES)}.")
    return np.dtype(_TYPES[element])


def compute(
    backend: HloBackend, executable: Executable, types: Sequence[TensorType], arrays: Sequence[NDArray[Any]]
) -> list[NDArray[Any]]:
    """Run a compiled function once.

    Raises:
        ProgramError: they are more or fewer, or of other shapes or types.
        BackendError: the run failed.
    """
    return [backend.get(each) for each in executable(device_arguments(backend, types, arrays))]


def device_arguments(
    backend: HloBackend, types: Sequence[TensorType], arrays: Sequence[NDArray[Any]]
) -> list[DeviceArray]:
    """Copy arguments to the back end; raises ProgramError where they are not of these types."""
    if len(arrays) != len(types):
        raise ProgramError(f"{len(arrays)} arguments are given, the function takes {len(types)}")
    return [
        device_argument(backend, t, array, i) for i, (t, array) in enumerate(zip(types, arrays, strict=True))
    ]


def device_argument(
    backend: HloBackend, type_: TensorType, array: NDArray[Any], position: int
) -> DeviceArray:
    """Copy an argument to the back end; raises ProgramError where it is not of this type."""
    if array.shape != type_.shape or array.dtype != numpy_type(type_.element):
        given = f"{array.dtype} {list(array.shape)}"
        what = f"argument {position} is {given}, the function takes {type_}"
        raise ProgramError(what, "Give such an array.")
    return backend.put(array)


_DIGEST = sha256().digest_size
CAPACITY = 256 << 20
"""Bytes of compiled modules: some 300 of MobileNet's size."""


class CompiledFiles:
    """Cache of compiled modules, which worker processes share; it ends with the object that made it.

    To read a module takes a twentieth of the time that compiling it takes, and at the end of a run each
    finalist is timed in several fresh processes.

    Args:
        capacity: bytes that it holds at most; the oldest go.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._cache = shared_cache(capacity)

    @property
    def folder(self) -> Path:
        """Return the folder with a file for each module."""
        return self._cache.folder

    def find(self, text: str, cores: int) -> bytes | None:
        """Return the executable of a text for a number of cores; None where it is missing or damaged."""
        content = self._cache.get(_key(text, cores)) or b""
        digest, code = content[:_DIGEST], content[_DIGEST:]
        # XLA ends the process where code is damaged.
        return code if sha256(code).digest() == digest else None

    def keep(self, text: str, cores: int, code: bytes) -> None:
        """Keep what a text was compiled to; a folder that is full, or gone, keeps nothing."""
        self._cache.put(_key(text, cores), sha256(code).digest() + code)


def _key(text: str, cores: int) -> str:
    return f"{sha256(f'{cores} {text}'.encode()).hexdigest()}.xla"


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
    """XLA in this process."""

    name = "xla"

    def __init__(self, cores: int = 1, files: CompiledFiles | None = None) -> None:
        with _threads(cores):
            client: Any = xla_client.make_cpu_client(asynchronous=False)
        self._client = client
        self._device = client.local_devices()[0]
        self._sharding = _OneDevice(self._device)
        self._cores, self._files = cores, files
        # The first result has jaxlib import JAX, where it is installed: that is not part of a measurement.
        self.compile(_NOTHING)([])

    def compile(self, text: str) -> Executable:
        """Compile the `main` of a module; raises BackendError where it is refused."""
        known = self._files.find(text, self._cores) if self._files else None
        if known is not None:
            with suppress(_jax.JaxRuntimeError):  # it is of no use: it is compiled
                return _xla_executable(self._loaded(self._client.deserialize_executable, known))
        try:
            loaded = self._loaded(self._client.compile_and_load, text.encode())
        except _jax.JaxRuntimeError as error:
            raise BackendError(_first_line(error)) from error
        if self._files:
            with suppress(_jax.JaxRuntimeError):  # XLA cannot write it down
                self._files.keep(text, self._cores, self._client.serialize_executable(loaded))
        return _xla_executable(loaded)

    def _loaded(self, load: Any, code: bytes) -> Any:
        return load(code, _jax.DeviceList((self._device,)), xla_client.CompileOptions())

    def put(self, array: NDArray[Any]) -> DeviceArray:
        """Copy an array to the back end."""
        aval = _Aval(array.shape, array.dtype)
        return _put(aval, self._sharding, [array], [self._device], True, False, _COPY, True)

    def get(self, array: DeviceArray) -> NDArray[Any]:
        """Return an array of the back end, not to be written to."""
        return array_of(_to_dlpack(array))


def _xla_executable(loaded: Any) -> Executable:
    execute = loaded.execute_sharded

    def run(arguments: Sequence[DeviceArray]) -> Sequence[DeviceArray]:
        try:
            results = execute(arguments).disassemble_into_single_device_arrays()
        except (_jax.JaxRuntimeError, ValueError) as error:
            raise BackendError(_first_line(error)) from error
        return [one for (one,) in results]

    return run


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


# --iree-opt-level=O2 and O3 make 3.13 refuse whole training steps.
# Without the second one, what is f64 becomes f32.
_IREE_OPTIONS = ("--iree-llvmcpu-target-cpu=host", "--iree-input-demote-f64-to-f32=false")


class IreeBackend:
    """IREE in this process; its compiler is another program."""

    name = "iree"

    def __init__(self, cores: int = 1) -> None:
        self._config = _iree_config(cores)

    def compile(self, text: str) -> Executable:
        """Compile the `main` of a module; raises BackendError where it is refused."""
        from iree import compiler, runtime

        try:
            code: Any = compiler.compile_str(
                text, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=list(_IREE_OPTIONS)
            )
        except compiler.CompilerToolError as error:
            lines = str(error).strip().splitlines()
            reasons = [*(line for line in lines if "error:" in line), *lines, "it failed"]
            raise BackendError(reasons[0].strip()) from error
        context = runtime.SystemContext(config=self._config)
        module = runtime.VmModule.copy_buffer(context.instance, code)
        context.add_vm_module(module)
        function: Any = getattr(context.modules, module.name)["main"]

        def run(arguments: Sequence[DeviceArray]) -> Sequence[DeviceArray]:
            try:
                results = function(*arguments)
            except (RuntimeError, ValueError) as error:
                raise BackendError(_first_line(error)) from error
            return results if isinstance(results, tuple | list) else [results]

        return run

    def put(self, array: NDArray[Any]) -> DeviceArray:
        """Copy an array to the back end."""
        from iree.runtime import asdevicearray

        return asdevicearray(self._config.device, array)

    def get(self, array: DeviceArray) -> NDArray[Any]:
        """Return an array of the back end, not to be written to."""
        return np.asarray(array.to_host())


@cache
def _iree_config(cores: int) -> Any:
    """Open the device, once in a process: its number of threads is a flag of the whole process."""
    from iree import runtime
    from iree.runtime import flags

    if cores == 1:
        return runtime.Config("local-sync")
    flags.parse_flags(f"--task_topology_group_count={cores}")
    return runtime.Config("local-task")


def open_backend(name: str = "", cores: int = 1, files: CompiledFiles | None = None) -> HloBackend:
    """Open a back end.

    Args:
        name: one of `planish.levels.hlo.machine.BACKENDS`; empty for the first.
        cores: that its code may use.
        files: where XLA leaves what it compiled, for other processes; None: nowhere.

    Raises:
        TargetError: there is none of this name, or it is not installed.
    """
    if versions(name)["backend"] == "xla":
        return XlaBackend(cores, files)

    return IreeBackend(cores)
