"""Execution of kernels on a device: buffers with margins, launches, and the time that the device takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from planish.core import PlanishError
from planish.levels.loops.gpu.kernels import GpuKernel, GpuProgram, TensorMap, dynamic_bytes, tensor_maps
from planish.levels.loops.lang.element_types import numpy_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planish.levels.loops.lang.program import Program

Arrays = Mapping[str, "NDArray[Any]"]

MARGIN = 4096
"""Bytes on either side of each buffer, which no kernel may change."""


class Launch(NamedTuple):
    """A launch of a kernel.

    Args:
        name: of its function.
        grid_size: blocks.
        block_size: threads of a block.
        arguments: the memory of its buffers, in order.
        shared: bytes of shared memory that are not in the kernel itself.
        maps: memory and description of the tensors that are copied in boxes: further arguments in CUDA.
    """

    name: str
    grid_size: int
    block_size: int
    arguments: tuple[Any, ...]
    shared: int = 0
    maps: tuple[tuple[Any, TensorMap], ...] = ()


class Device(Protocol):
    """A device that has compiled kernels."""

    def allocate(self, size: int) -> tuple[Any, Any]:
        """Allocate bytes with `MARGIN` more on either side; return the whole, and where the bytes begin."""
        ...

    def free(self, memory: Any) -> None:
        """Free what was allocated as a whole."""
        ...

    def upload(self, memory: Any, host: NDArray[np.uint8]) -> None:
        """Copy from the host, the margins too."""
        ...

    def download(self, host: NDArray[np.uint8], memory: Any) -> None:
        """Copy to the host, the margins too."""
        ...

    def run(self, launches: Sequence[Launch]) -> int:
        """Execute kernels one after the other; return nanoseconds that the device was busy with them."""
        ...

    def flush(self) -> None:
        """Leave nothing of the buffers in the last cache."""
        ...

    def close(self) -> None:
        """Unload the kernels."""
        ...


class _Buffer:
    """A buffer with margins on the device, and its copy on the host."""

    def __init__(self, device: Device, size: int) -> None:
        self.host = np.zeros(size + 2 * MARGIN, np.uint8)
        self.memory, self.inner = device.allocate(size)
        self.content = self.host[MARGIN : MARGIN + size]

    def surround(self, byte: int) -> None:
        """Fill the margins."""
        self.host[:MARGIN] = byte
        self.host[-MARGIN:] = byte

    def is_surrounded(self, byte: int) -> bool:
        """Return whether the margins are as they were."""
        return bool((self.host[:MARGIN] == byte).all() and (self.host[-MARGIN:] == byte).all())


class CompiledKernels:
    """Kernels, compiled for a device; see `planish.levels.loops.backends.Executable`.

    Args:
        program: what they compute.
        kernels: how they are launched.
        device: that has compiled them.
    """

    def __init__(self, program: Program, kernels: GpuProgram, device: Device) -> None:
        self.program, self.kernels, self.device = program, kernels, device

    def allocate(self) -> None:
        """Make no memory: each binding has its own."""

    def bind(self, inputs: Arrays, outputs: Arrays) -> KernelRun:
        """Attach them to arrays."""
        return KernelRun(self.kernels, self.device, inputs, outputs)

    def close(self) -> None:
        """Unload them; runs that were bound are closed before."""
        self.device.close()


class KernelRun:
    """Kernels with their arrays; see `planish.levels.loops.backends.BoundKernel`.

    Args:
        kernels: how they are launched.
        device: that has compiled them.
        inputs: tensor to array.
        outputs: likewise.

    Attributes:
        device_ns: nanoseconds that the device was busy with kernels so far.
        damaged: beside which buffer memory was written; empty where it was not.

    Raises:
        PlanishError: the device has too little memory, or kernels that prepare constants are wrong.
    """

    def __init__(self, kernels: GpuProgram, device: Device, inputs: Arrays, outputs: Arrays) -> None:
        self.device_ns, self.damaged = 0, ""
        self._device, self._arrays = device, {**inputs, **outputs}
        sizes = {name: array.nbytes for name, array in self._arrays.items()}
        sizes |= {b.name: b.size * numpy_type(b.dtype).itemsize for b in kernels.temporaries}
        self._buffers: dict[str, _Buffer] = {}
        self._byte = 0
        try:
            for name, size in sizes.items():
                self._buffers[name] = _Buffer(device, size)
            self._ahead, self._launches = (
                [self._launch(kernel) for kernel in found] for found in (kernels.ahead, kernels.kernels)
            )
            self.poison()
        except PlanishError:
            # Else the memory is missing to the candidates that follow in this process.
            self.close()
            raise

    def _launch(self, kernel: GpuKernel) -> Launch:
        arguments = tuple(self._buffers[name].inner for name in (*kernel.inputs, *kernel.outputs))
        shared = dynamic_bytes(kernel)
        maps = tuple((self._buffers[each.source].inner, each) for each in tensor_maps(kernel))
        return Launch(kernel.name, kernel.grid_size, kernel.launched, arguments, shared, maps)

    def close(self) -> None:
        """Free the device's memory."""
        for buffer in self._buffers.values():
            self._device.free(buffer.memory)
        self._buffers = {}

    def prepare(self) -> None:
        """Compute what does not change from call to call."""
        if self._ahead:
            self._upload()
            self._device.run(self._ahead)
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
        """Execute the kernels a number of times, with the arrays as they are.

        Raises:
            PlanishError: memory beside a buffer has changed.
        """
        self._upload()
        for _ in range(times):
            self._device.flush()
            self.device_ns += self._device.run(self._launches)
        self._download()

    def _upload(self) -> None:
        for name, buffer in self._buffers.items():
            if name in self._arrays:
                buffer.content[...] = self._arrays[name].reshape(-1).view(np.uint8)
            self._device.upload(buffer.memory, buffer.host)

    def _download(self) -> None:
        for name, buffer in self._buffers.items():
            self._device.download(buffer.host, buffer.memory)
            if not buffer.is_surrounded(self._byte):
                self.damaged = f"memory beside {name} is written"
                raise PlanishError(self.damaged, "Tune anew: the kernel is wrong.")
            if name in self._arrays:
                self._arrays[name].reshape(-1).view(np.uint8)[...] = buffer.content
