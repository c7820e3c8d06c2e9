"""CUDA's driver: loading of cubins, launches, and times by events, on the first GPU of this machine."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from planish.core import DeviceLostError, TargetError
from planish.levels.loops.gpu.kernels import TensorMap
from planish.levels.loops.gpu.running import MARGIN, Launch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR, _L2_BYTES = 75, 76, 38
"""Attributes of a device: its compute capability, and the size of its last cache."""
_DYNAMIC_SHARED = 8
"""Attribute of a function: bytes of shared memory that it may be launched with."""


_MAP_BYTES, _BITS_16 = 128, 1
"""Of a description of a tensor, which begins at a multiple of 64; and its type of elements."""


_LOST = frozenset({46, 214, 700, 702, 709, 710, *range(714, 720), 999})
"""Errors after which a process can use the device no more: of memory, of a launch, of the device itself."""
_HINTS: Mapping[int, str] = {
    2: "Free memory of the GPU, or give smaller sizes.",
    34: "The library is a stub: install NVIDIA's driver.",
    35: "Update NVIDIA's driver.",
    100: "Check nvidia-smi, and CUDA_VISIBLE_DEVICES.",
    200: "Compile it again: the file is damaged, or newer than the driver.",
    209: "Compile it for the GPU of this machine.",
    218: "Compile it for the GPU of this machine, or update NVIDIA's driver.",
    222: "Update NVIDIA's driver, or compile with an older CUDA.",
    803: "Restart the machine: the driver and its library have different versions.",
    804: "Update NVIDIA's driver.",
}
"""Error to what the user can do."""


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
            DeviceLostError: it reports an error after which the process cannot use the device.
            TargetError: it reports another error, or is too old to have the function.
        """
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise TargetError(f"the driver has no function {name}", "Update NVIDIA's driver.") from error
        code = function(*args)
        if not code:
            return
        text = ctypes.c_char_p()
        self._library.cuGetErrorString(code, ctypes.byref(text))
        what = f"{name}: {(text.value or b'unknown error').decode()} ({code})"
        if code in _LOST:
            raise DeviceLostError(
                what, "The kernel is to blame, or the GPU: look at dmesg if others fail, too."
            )
        raise TargetError(what, _HINTS.get(code, ""))


@cache
def open_driver() -> Driver:
    """Load and start the driver; raises TargetError where there is no driver, or no GPU."""
    try:
        driver = Driver(ctypes.CDLL(_LIBRARY))
    except OSError as error:
        raise TargetError(f"this machine has no CUDA GPU: {_LIBRARY} is not installed") from error
    count = ctypes.c_int()
    try:
        driver("cuInit", 0)
        driver("cuDeviceGetCount", ctypes.byref(count))
    except TargetError as error:
        raise TargetError(f"this machine has no CUDA GPU that can be used: {error}") from error
    if not count.value:
        raise TargetError("this machine has no CUDA GPU: the driver finds none")
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
        self._maps: dict[tuple[int, TensorMap], tuple[ctypes.c_void_p, Any]] = {}
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
        for function, launch in zip(functions, launches, strict=True):
            _, grid_size, block_size, arguments, shared, maps = launch
            addresses = [ctypes.cast(ctypes.pointer(each), ctypes.c_void_p) for each in arguments]
            addresses += [self._map(memory, each) for memory, each in maps]
            listed = (ctypes.c_void_p * len(addresses))(*addresses)
            sizes = (grid_size, 1, 1, block_size, 1, 1, shared)
            self._driver("cuLaunchKernel", function, *sizes, None, listed, None)
        self._driver("cuEventRecord", self._end, None)
        self._driver("cuEventSynchronize", self._end)
        milliseconds = ctypes.c_float()
        self._driver("cuEventElapsedTime", ctypes.byref(milliseconds), self._begin, self._end)
        return round(milliseconds.value * 1e6)

    def _map(self, memory: Any, tensor: TensorMap) -> ctypes.c_void_p:
        """Describe a tensor for copies in boxes; raises TargetError where the driver cannot."""
        key = memory.value, tensor
        if key not in self._maps:
            rank = len(tensor.extents)
            space = ctypes.create_string_buffer(2 * _MAP_BYTES)
            begin = ctypes.c_void_p(-(-ctypes.addressof(space) // _MAP_BYTES) * _MAP_BYTES)
            extents, strides = (
                (ctypes.c_uint64 * max(1, len(each)))(*each) for each in (tensor.extents, tensor.strides)
            )
            box, steps = (ctypes.c_uint32 * rank)(*tensor.box), (ctypes.c_uint32 * rank)(*[1] * rank)
            # Elements are bits of 2 bytes; no interleaving; reads of 256 bytes for L2; zeros outside.
            numbers = (0, tensor.swizzle, 3, 0)
            self._driver(
                "cuTensorMapEncodeTiled",
                begin,
                _BITS_16,
                rank,
                memory,
                extents,
                strides,
                box,
                steps,
                *numbers,
            )
            self._maps[key] = begin, space
        return self._maps[key][0]

    def _function(self, name: str, shared: int) -> ctypes.c_void_p:
        """Find a kernel, and allow it a number of bytes of shared memory."""
        if name not in self._functions:
            function = ctypes.c_void_p()
            self._driver("cuModuleGetFunction", ctypes.byref(function), self._module, name.encode())
            if shared:
                self._driver("cuFuncSetAttribute", function, _DYNAMIC_SHARED, shared)
            self._functions[name] = function
        return self._functions[name]
