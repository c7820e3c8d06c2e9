"""OpenCL devices: discovery, compilation and launch of kernels, by pyopencl."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from planish.core import DeviceLostError, Target, TargetError
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.running import MARGIN, Launch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_INSTALL = "Install a device's driver, or: pip install 'planish[opencl]'."
_SIMULATOR = "oclgrind"
_SOFTWARE = "cl_khr_fp64"


def _environment(cores: int) -> None:
    """Have PoCL use a number of threads, and keep no files of kernels beyond this process."""
    os.environ["PYOPENCL_NO_CACHE"] = "1"
    os.environ["POCL_MAX_PTHREAD_COUNT"] = str(cores)
    # Not the parent's: a worker may write to its own scratch alone.
    folder = os.environ["POCL_CACHE_DIR"] = tempfile.mkdtemp(prefix="planish-pocl-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


@cache
def all_devices(cores: int) -> tuple[Any, ...]:
    """List the devices: GPUs first, then processors, simulators last.

    Raises:
        TargetError: pyopencl is not installed, or there are no devices.
    """
    _environment(cores)
    try:
        import pyopencl as cl
    except ImportError as error:
        raise TargetError("the target 'opencl' needs pyopencl, which is not installed", _INSTALL) from error
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise TargetError(f"OpenCL finds no devices: {error}", _INSTALL) from error
    if not found:
        raise TargetError("OpenCL finds no devices", _INSTALL)

    def rank(device: Any) -> int:
        return 2 if _is_simulator(device) else int(not device.type & cl.device_type.GPU)

    return tuple(sorted(found, key=rank))


def _is_simulator(device: Any) -> bool:
    return _SIMULATOR in device.platform.name.lower()


def _title(device: Any) -> str:
    return f"{device.platform.name.strip()}: {device.name.strip()}"


def find_device(name: str = "", cores: int = 1) -> Any:
    """Find the first device of which a part of the platform's and its own name is `name`.

    Raises:
        TargetError: there is none.
    """
    found = all_devices(cores)
    named = [device for device in found if name.lower() in _title(device).lower()]
    if not named:
        listed = ", ".join(map(_title, found))
        raise TargetError(f"there is no OpenCL device '{name}'", f"Known: {listed}.")
    return named[0]


def device_titles() -> list[str]:
    """List the devices of this machine by name; none where there are none."""
    try:
        return [_title(device) for device in all_devices(1)]
    except TargetError:
        return []


def opencl_target(name: str, cores: int) -> Target:
    """Describe a device; raises TargetError where there is none of this name."""
    import pyopencl as cl

    device = find_device(name, cores)
    processor = not device.type & cl.device_type.GPU
    gpu = Gpu(
        units=device.max_compute_units,
        block_size=device.max_work_group_size,
        shared=device.local_mem_size,
        lanes=device.native_vector_width_float,
        warp=1 if processor else 32,
        processor=processor,
        l2=device.global_mem_cache_size,
    )
    double = ["float64"] if _SOFTWARE in device.extensions else []
    toolchain = {
        "backend": f"opencl:{name}" if name else "opencl",
        "pyopencl": version("pyopencl"),
        "driver": f"{device.platform.version.strip()} {device.driver_version}",
    }
    return Target(_title(device), gpu.features | {"opencl", *double}, cores, toolchain)


def is_installed() -> bool:
    """Return whether pyopencl is installed."""
    try:
        version("pyopencl")
    except PackageNotFoundError:
        return False
    return True


class OpenClDevice:
    """A device with compiled kernels; see `planish.levels.loops.gpu.running.Device`.

    Args:
        source: of the kernels.
        name: a part of the device's name.
        cores: of the processor, where the device is one.

    Raises:
        TargetError: the device refuses the kernels.
    """

    def __init__(self, source: str, name: str = "", cores: int = 1) -> None:
        import pyopencl as cl

        self._cl = cl
        self.device = find_device(name, cores)
        self._context = cl.Context([self.device])
        profiled = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(self._context, properties=profiled)
        self._kernels: dict[str, Any] = {}
        self._scratch: Any = None
        # Divisions and roots of float32 are rounded correctly where the device can do it.
        exact = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        options = ["-cl-fp32-correctly-rounded-divide-sqrt"] if self.device.single_fp_config & exact else []
        if _is_simulator(self.device):
            options.append("-cl-opt-disable")  # Oclgrind does not execute all that its optimizer makes
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # compilers print what no user can change
                self._built = cl.Program(self._context, source).build(options=options)
        except cl.Error as error:
            raise TargetError(f"the device refuses the kernel: {str(error).splitlines()[0]}") from error

    def allocate(self, size: int) -> tuple[Any, Any]:
        """Allocate bytes with margins."""
        memory = self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size + 2 * MARGIN)
        return memory, memory.get_sub_region(MARGIN, max(size, 1))

    def upload(self, memory: Any, host: NDArray[np.uint8]) -> None:
        """Copy from the host."""
        self._cl.enqueue_copy(self._queue, memory, host)

    def download(self, host: NDArray[np.uint8], memory: Any) -> None:
        """Copy to the host."""
        self._cl.enqueue_copy(self._queue, host, memory)

    def free(self, memory: Any) -> None:
        """Free what was allocated as a whole."""
        memory.release()

    def flush(self) -> None:
        """Fill the cache of a GPU; processors are timed with warm caches, as by our other back ends."""
        if self.device.type & self._cl.device_type.GPU and not _is_simulator(self.device):
            if self._scratch is None:
                size = max(self.device.global_mem_cache_size, 1 << 20)
                self._scratch = self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, size)
            self._cl.enqueue_fill_buffer(self._queue, self._scratch, b"\0", 0, self._scratch.size)

    def close(self) -> None:
        """Unload the kernels."""
        self._kernels = {}

    def run(self, launches: Sequence[Launch]) -> int:
        """Execute kernels one after the other; return nanoseconds by the device's events.

        Raises:
            TargetError: the device cannot; as DeviceLostError where it answers no more.
        """
        cl, events = self._cl, list[Any]()
        try:
            for name, grid_size, block_size, arguments, *_ in launches:
                kernel = self._kernels.setdefault(name, None) or cl.Kernel(self._built, name)
                self._kernels[name] = kernel
                kernel.set_args(*arguments)
                sizes = (grid_size * block_size,), (block_size,)
                events.append(cl.enqueue_nd_range_kernel(self._queue, kernel, *sizes))
            self._queue.finish()
        except cl.Error as error:
            # Of NVIDIA's OpenCL the queue is what is invalid after a kernel that left its memory.
            lost = cl.status_code.DEVICE_NOT_AVAILABLE, cl.status_code.INVALID_COMMAND_QUEUE
            kind = DeviceLostError if error.code in lost else TargetError
            raise kind(f"the device cannot execute the kernel: {str(error).splitlines()[0]}") from error
        return sum(event.profile.end - event.profile.start for event in events)
