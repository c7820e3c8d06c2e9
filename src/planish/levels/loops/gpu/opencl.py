"""OpenCL devices: discovery, compilation and launch of kernels, by pyopencl."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from planish.core import PlanishError, Target, TargetError
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.kernels import GpuKernel, GpuProgram, require_fit
from planish.levels.loops.lang.element_types import numpy_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planish.levels.loops.lang.program import Program

Arrays = Mapping[str, "NDArray[Any]"]

MARGIN = 4096
"""Bytes on either side of each buffer, which no kernel may change."""
_INSTALL = "Install a device's driver, or: pip install 'planish[opencl]'."
_SIMULATOR = "oclgrind"
_SOFTWARE = "cl_khr_fp64"


def _environment(cores: int) -> None:
    """Have PoCL use so many threads, and keep no files of kernels beyond this process."""
    os.environ["PYOPENCL_NO_CACHE"] = "1"
    os.environ["POCL_MAX_PTHREAD_COUNT"] = str(cores)
    # Not the parent's: a worker may write to its own scratch alone.
    folder = os.environ["POCL_CACHE_DIR"] = tempfile.mkdtemp(prefix="planish-pocl-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


@cache
def all_devices(cores: int) -> tuple[Any, ...]:
    """List the devices: cards first, then processors, simulators last.

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
        simulated = _SIMULATOR in device.platform.name.lower()
        return 2 if simulated else int(not device.type & cl.device_type.GPU)

    return tuple(sorted(found, key=rank))


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
        group=device.max_work_group_size,
        shared=device.local_mem_size,
        lanes=device.native_vector_width_float,
        warp=1 if processor else 32,
        processor=processor,
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


class OpenClProgram:
    """Kernels, compiled for a device.

    Args:
        program: what they compute.
        kernels: what is compiled.
        source: of the kernels.
        device: by a part of its name.
        cores: of the processor, where the device is one.

    Raises:
        TargetError: the device refuses them; or they need more threads or shared memory than it has.
    """

    def __init__(
        self, program: Program, kernels: GpuProgram, source: str, device: str = "", cores: int = 1
    ) -> None:
        import pyopencl as cl

        self.program, self.kernels = program, kernels
        self.device = find_device(device, cores)
        require_fit(kernels, self.device.max_work_group_size, self.device.local_mem_size)
        self.context = cl.Context([self.device])
        # Divisions and roots of float32 are rounded correctly where the device can do it.
        exact = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        options = ["-cl-fp32-correctly-rounded-divide-sqrt"] if self.device.single_fp_config & exact else []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # compilers print what no user can change
                self.built = cl.Program(self.context, source).build(options=options)
        except cl.Error as error:
            raise TargetError(f"the device refuses the kernel: {str(error).splitlines()[0]}") from error

    def allocate(self) -> None:
        """Make no memory: each binding has its own."""

    def bind(self, inputs: Arrays, outputs: Arrays) -> OpenClRun:
        """Attach it to arrays; see `planish.levels.loops.backends.Executable`."""
        return OpenClRun(self, inputs, outputs)


class _DeviceBuffer:
    """A buffer with margins on the device, and its copy on the host."""

    def __init__(self, context: Any, size: int) -> None:
        import pyopencl as cl

        self.host = np.zeros(size + 2 * MARGIN, np.uint8)
        self.memory = cl.Buffer(context, cl.mem_flags.READ_WRITE, self.host.nbytes)
        self.inner = self.memory.get_sub_region(MARGIN, max(size, 1))
        self.content = self.host[MARGIN : MARGIN + size]

    def surround(self, byte: int) -> None:
        """Fill the margins."""
        self.host[:MARGIN] = byte
        self.host[-MARGIN:] = byte

    def is_surrounded(self, byte: int) -> bool:
        """Return whether the margins are as they were."""
        return bool((self.host[:MARGIN] == byte).all() and (self.host[-MARGIN:] == byte).all())


class OpenClRun:
    """Kernels with their arrays; see `planish.levels.loops.backends.BoundKernel`.

    Attributes:
        device_ns: nanoseconds that the device was busy with kernels so far.
        damaged: beside which buffer memory was written; empty where it was not.
    """

    def __init__(self, compiled: OpenClProgram, inputs: Arrays, outputs: Arrays) -> None:
        import pyopencl as cl

        self.device_ns, self.damaged = 0, ""
        self._arrays = {**inputs, **outputs}
        self._kernels = compiled.kernels
        profiled = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(compiled.context, properties=profiled)
        sizes = {name: array.nbytes for name, array in self._arrays.items()}
        sizes |= {b.name: b.size * numpy_type(b.dtype).itemsize for b in compiled.kernels.temporaries}
        self._buffers = {name: _DeviceBuffer(compiled.context, size) for name, size in sizes.items()}
        self._ahead, self._launches = (
            [self._launch(compiled, kernel) for kernel in kernels]
            for kernels in (compiled.kernels.ahead, compiled.kernels.kernels)
        )
        self._byte = 0
        self.poison()

    def _launch(self, compiled: OpenClProgram, kernel: GpuKernel) -> tuple[Any, int, int]:
        import pyopencl as cl

        made = cl.Kernel(compiled.built, kernel.name)
        made.set_args(*(self._buffers[name].inner for name in (*kernel.inputs, *kernel.outputs)))
        return made, kernel.groups * kernel.group, kernel.group

    def prepare(self) -> None:
        """Compute what does not change from call to call."""
        if self._ahead:
            self._upload()
            self._run(self._ahead)
            self._download()

    def poison(self, byte: int = 0xFF) -> None:
        """Fill temporaries and margins with a byte, and prepare."""
        self._byte = byte
        for name, buffer in self._buffers.items():
            buffer.surround(byte)
            if name not in self._arrays:
                buffer.content[...] = byte
        self.prepare()

    def repeat(self, times: int) -> None:
        """Execute the kernels so many times, with the arrays as they are.

        Raises:
            PlanishError: memory beside a buffer has changed.
        """
        self._upload()
        for _ in range(times):
            self._run(self._launches)
        self._download()

    def _run(self, launches: list[tuple[Any, int, int]]) -> None:
        import pyopencl as cl

        events = [
            cl.enqueue_nd_range_kernel(self._queue, kernel, (total,), (group,))
            for kernel, total, group in launches
        ]
        self._queue.finish()
        self.device_ns += sum(event.profile.end - event.profile.start for event in events)

    def _upload(self) -> None:
        import pyopencl as cl

        for name, buffer in self._buffers.items():
            if name in self._arrays:
                buffer.content[...] = self._arrays[name].reshape(-1).view(np.uint8)
            cl.enqueue_copy(self._queue, buffer.memory, buffer.host)

    def _download(self) -> None:
        import pyopencl as cl

        for name, buffer in self._buffers.items():
            cl.enqueue_copy(self._queue, buffer.host, buffer.memory)
            if not buffer.is_surrounded(self._byte):
                self.damaged = f"memory beside {name} is written"
                raise PlanishError(self.damaged, "Tune anew: the kernel is wrong.")
            if name in self._arrays:
                self._arrays[name].reshape(-1).view(np.uint8)[...] = buffer.content
