"""CUDA's driver: loading of cubins, launches, and times by events, on the first GPU of this machine."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from planish.core import TargetError
from planish.levels.loops.gpu.running import MARGIN, Launch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR, _L2_BYTES = 75, 76, 38
"""Attributes of a device: its compute capability, and the size of its last cache."""
_DYNAMIC_SHARED = 8
"""Attribute of a function: bytes of shared memory that it may be launched with."""


class Driver:
    """The driver's functions, each of which raises where it reports an error.

    Args:
        library: the driver's library.
    """

    def __init__(self, library: Any) -> None:
        self._library = library

    def __call__(self, name: str, *args: Any) -> None:
        """Call a function.

        Raises:
            TargetError: it reports an error.
        """
        code = getattr(self._library, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(code, ctypes.byref(text))
            raise TargetError(f"{name}: {(text.value or b'unknown error').decode()} ({code})")


@cache
def open_driver() -> Driver:
    """Load and start the driver.

    Raises:
        TargetError: there is no driver, or no GPU.
    """
    try:
        driver = Driver(ctypes.CDLL(_LIBRARY))
        driver("cuInit", 0)
        count = ctypes.c_int()
        driver("cuDeviceGetCount", ctypes.byref(count))
    except (OSError, TargetError) as error:
        raise TargetError("this machine has no CUDA GPU") from error
    if not count.value:
        raise TargetError("this machine has no CUDA GPU")
    return driver


def gpu_architecture() -> str:
    """Return the architecture of the first GPU, such as "sm_90"; raises TargetError where there is none."""
    driver, device = open_driver(), ctypes.c_int()
    driver("cuDeviceGet", ctypes.byref(device), 0)
    return f"sm_{_attribute(driver, device, _MAJOR)}{_attribute(driver, device, _MINOR)}"


def _attribute(driver: Driver, device: ctypes.c_int, attribute: int) -> int:
    value = ctypes.c_int()
    driver("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
    return value.value


class CudaDevice:
    """The first GPU, with the kernels of a cubin; see `planish.levels.loops.gpu.running.Device`.

    Args:
        cubin: the kernels.
        driver: CUDA's.
    """

    def __init__(self, cubin: bytes, driver: Driver | None = None) -> None:
        self._driver = driver or open_driver()
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._driver("cuDeviceGet", ctypes.byref(device), 0)
        self._driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._driver("cuCtxSetCurrent", context)
        self._module = ctypes.c_void_p()
        self._driver("cuModuleLoadData", ctypes.byref(self._module), cubin)
        self._begin, self._end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (self._begin, self._end):
            self._driver("cuEventCreate", ctypes.byref(event), 0)
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._scratch: ctypes.c_uint64 | None = None
        self._scratch_bytes = _attribute(self._driver, device, _L2_BYTES)

    def close(self) -> None:
        """Unload the kernels."""
        if self._scratch:
            self.free(self._scratch)
        for event in (self._begin, self._end):
            self._driver("cuEventDestroy_v2", event)
        self._driver("cuModuleUnload", self._module)

    def free(self, memory: Any) -> None:
        """Free what was allocated as a whole."""
        self._driver("cuMemFree_v2", memory)

    def flush(self) -> None:
        """Write as many bytes as the last cache has."""
        if self._scratch is None:
            self._scratch = self._allocated(self._scratch_bytes)
        self._driver("cuMemsetD8_v2", self._scratch, 0, ctypes.c_size_t(self._scratch_bytes))

    def allocate(self, size: int) -> tuple[Any, Any]:
        """Allocate bytes with margins."""
        memory = self._allocated(size + 2 * MARGIN)
        return memory, ctypes.c_uint64(memory.value + MARGIN)

    def _allocated(self, size: int) -> ctypes.c_uint64:
        memory = ctypes.c_uint64()
        self._driver("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        return memory

    def upload(self, memory: Any, host: NDArray[np.uint8]) -> None:
        """Copy from the host."""
        self._driver(
            "cuMemcpyHtoD_v2", memory, ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(host.nbytes)
        )

    def download(self, host: NDArray[np.uint8], memory: Any) -> None:
        """Copy to the host."""
        self._driver(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(host.ctypes.data), memory, ctypes.c_size_t(host.nbytes)
        )

    def run(self, launches: Sequence[Launch]) -> int:
        """Execute kernels one after the other; return nanoseconds between two events around them."""
        functions = [self._function(launch.name, launch.shared) for launch in launches]
        self._driver("cuEventRecord", self._begin, None)
        for function, (_, grid_size, block_size, arguments, shared) in zip(functions, launches, strict=True):
            addresses = [ctypes.cast(ctypes.pointer(each), ctypes.c_void_p) for each in arguments]
            listed = (ctypes.c_void_p * len(addresses))(*addresses)
            sizes = (grid_size, 1, 1, block_size, 1, 1, shared)
            self._driver("cuLaunchKernel", function, *sizes, None, listed, None)
        self._driver("cuEventRecord", self._end, None)
        self._driver("cuEventSynchronize", self._end)
        milliseconds = ctypes.c_float()
        self._driver("cuEventElapsedTime", ctypes.byref(milliseconds), self._begin, self._end)
        return round(milliseconds.value * 1e6)

    def _function(self, name: str, shared: int) -> ctypes.c_void_p:
        """Find a kernel, which may then be launched with so many bytes of shared memory."""
        if name not in self._functions:
            function = self._functions[name] = ctypes.c_void_p()
            self._driver("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
            if shared:
                self._driver("cuFuncSetAttribute", function, _DYNAMIC_SHARED, shared)
        return self._functions[name]
