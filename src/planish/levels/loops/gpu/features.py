"""Features of GPU schedules for cost models.

They describe the kernel that does most of the work: its grid, what threads and blocks hold, how often each
memory is touched, and how the threads of a warp meet in it. Global memory is touched best where neighboring
threads touch neighboring elements, and shared memory where they touch different banks, or one element
together. All is read off the kernels but the registers that a thread takes, which a compiler alone knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd, prod
from typing import TYPE_CHECKING

import numpy as np

from planish.core import FeatureSchema
from planish.levels.loops.gpu.cuda import CompiledCuda, compile_all
from planish.levels.loops.gpu.devices import MOST_REGISTERS, Gpu, KernelStatistics
from planish.levels.loops.gpu.dialect import CUDA
from planish.levels.loops.gpu.kernels import (
    Barrier,
    Compute,
    Cooperative,
    GpuKernel,
    GpuProgram,
    Item,
    Mma,
    Pipelined,
    Serial,
    Single,
    shared_bytes,
)
from planish.levels.loops.gpu.source import kernel_source
from planish.levels.loops.ir.tree import LoopId, Ref, refs
from planish.levels.loops.lang.program import DTYPES

if TYPE_CHECKING:
    from numpy.typing import NDArray

BANKS = 32
"""Of shared memory, of 4 bytes each."""
SCHEMA = FeatureSchema(
    "loops/gpu",
    4,
    (
        "kernels",  # no logarithm; the others are logarithms where nothing else is said
        "blocks",
        "threads of a block",
        "blocks for each unit",
        "idle threads",  # share of the last warp's; no logarithm
        "private elements",
        "shared bytes",
        "share of the shared memory",  # no logarithm
        "elements computed by a thread",
        "vector",  # lanes; no logarithm
        "barriers passed by a thread",
        "tested",  # share of elements whose conditions are tested; no logarithm
        "loops repeated",  # by unrolling: copies of the innermost body
        "global elements touched by a thread",
        "global elements in sequence",  # share touched by neighboring threads; no logarithm
        "global elements together",  # share that all threads of a warp touch; no logarithm
        "shared elements touched by a thread",
        "threads that meet in a bank",  # mean over shared elements
        "computed for each global element",
        "stages",  # of pipelined copies; no logarithm
        "elements copied at once",  # no logarithm
        "by tensor cores",  # share of elements; no logarithm
        "raster",
        "resident blocks",  # that were asked for; no logarithm
        "registers of a thread",  # of CUDA by its compiler, else estimated; so are the following
        "bytes spilled by a thread",
        "share of the threads at once",  # occupancy, by these registers; no logarithm
    ),
)
_BESIDE_SUMS = 36
"""Registers of addresses, counters and operands beside what a thread sums up: about, by `ptxas` for sm_90."""


@dataclass
class _Counted:
    """Counts of what one thread executes."""

    computed: float = 0.0
    tested: float = 0.0
    lanes: int = 1
    barriers: float = 0.0
    copies: int = 1
    in_global: float = 0.0
    sequence: float = 0.0
    together: float = 0.0
    in_shared: float = 0.0
    meeting: float = 0.0
    stages: int = 1
    copied: int = 1
    in_tensor: float = 0.0
    shared: frozenset[str] = field(default_factory=frozenset[str])
    private: frozenset[str] = field(default_factory=frozenset[str])

    def items(self, items: Sequence[Item], times: float, fastest: LoopId | None, kernel: GpuKernel) -> None:
        """Count operations that are executed a number of times.

        Args:
            items: of the kernel's body.
            times: by a thread.
            fastest: the loop that neighboring threads differ in.
            kernel: whose items these are.
        """
        for item in items:
            match item:
                case Compute():
                    self._compute(item, times, fastest, kernel)
                case Mma():
                    self._multiply(item, times)
                case Pipelined():
                    count = times * (item.last - item.first)
                    self.stages, self.barriers = max(self.stages, item.stages), self.barriers + count
                    self.items((*item.copies, *item.body), count, fastest, kernel)
                case Serial():
                    count = item.last - item.first
                    self.copies = max(self.copies, count if item.unrolled else 1)
                    self.items(item.body, times * count, fastest, kernel)
                case Cooperative(loops, body):
                    turns = -(-prod(n for _, n in loops) // kernel.block_size)
                    self.items(body, times * turns, loops[-1][0] if loops else None, kernel)
                case Single(_, body):
                    self.items(body, times / kernel.block_size, fastest, kernel)
                case Barrier():
                    self.barriers += times

    def _compute(self, item: Compute, times: float, fastest: LoopId | None, kernel: GpuKernel) -> None:
        width = item.lanes[1] if item.lanes else 1
        if item.aligned:
            self.copied = max(self.copied, width)
        else:
            self.lanes = max(self.lanes, width)
        self.computed += times * width
        self.tested += times * width * bool(item.conditions)
        for ref in _touched(item):
            stride = ref.stride.get(fastest, 0) if fastest else 0
            if ref.buffer in self.private:
                continue
            if ref.buffer in self.shared:
                self.in_shared += times * width
                # Threads a multiple of the banks apart meet; those that read one element do not.
                meet = gcd(stride, BANKS) if stride else 1
                if arranged := kernel.arranged.get(ref.buffer):
                    meet = max(1, meet >> arranged.bits)
                self.meeting += times * width * meet
                continue
            self.in_global += times * width
            self.sequence += times * width * (stride == (width if item.aligned else 1))
            self.together += times * width * (stride == 0)

    def _multiply(self, item: Mma, times: float) -> None:
        """Count a product by tensor cores, whose rows meet in no bank."""
        depth, rows, columns = (prod(n for _, n in each) for each in (item.depth, item.rows, item.columns))
        computed = times * depth * rows * columns * 4 * prod(n for _, n in item.inner)
        read = times * depth * (rows * 8 + columns * 4)
        self.computed += computed
        self.in_tensor += computed
        self.copies = max(self.copies, depth * rows * columns)
        self.in_shared += read
        self.meeting += read


def _touched(item: Compute) -> Iterator[Ref]:
    yield item.leaf.target
    yield from refs(item.leaf.value)


def gpu_features(programs: Sequence[GpuProgram], gpu: Gpu, arch: str = "") -> NDArray[np.float32]:
    """Describe kernels; (programs, width of `SCHEMA`).

    Args:
        programs: the kernels of candidates.
        gpu: the device.
        arch: such as "sm_90", to compile the kernels; empty to estimate what they take.
    """
    found = np.zeros((len(programs), SCHEMA.width), np.float32)
    sources = [kernel_source(program, CUDA) for program in programs] if arch else [""] * len(programs)
    compiled = compile_all(sources, arch) if arch else {}
    for row, (program, source) in enumerate(zip(programs, sources, strict=True)):
        made = compiled.get(source)
        found[row] = _row(program, gpu, made.statistics if isinstance(made, CompiledCuda) else {})
    return found


def estimate_statistics(kernel: GpuKernel, gpu: Gpu) -> KernelStatistics:
    """Estimate what a kernel takes, where no compiler says it.

    Args:
        kernel: what a thread has for itself is in registers, as far as they suffice.
        gpu: the device.
    """
    words = sum(-(-b.size * DTYPES[b.dtype] // 4) for b in kernel.private)
    most = MOST_REGISTERS
    if gpu.registers:
        most = min(most, gpu.registers // (kernel.launched * max(1, kernel.resident)) // 8 * 8)
    needed = words + _BESIDE_SUMS
    spilled = 4 * max(0, needed - most)
    return KernelStatistics(min(needed, most), spilled, spilled, shared_bytes(kernel))


def _row(program: GpuProgram, gpu: Gpu, statistics: Mapping[str, KernelStatistics]) -> list[float]:
    counted = [(_count(kernel), kernel) for kernel in program.kernels]
    main, kernel = max(counted, key=lambda one: one[0].computed * one[1].grid_size * one[1].block_size)
    private = sum(b.size for b in kernel.private)
    taken = estimate_statistics(kernel, gpu)
    if compiled := statistics.get(kernel.name):
        # The compiler does not see memory that is asked for by the launch.
        taken = replace(compiled, shared=taken.shared)
    accessed = max(main.in_global, 1e-9)
    warps = -(-kernel.block_size // gpu.warp)
    return [
        len(program.kernels),
        _log(kernel.grid_size),
        _log(kernel.block_size),
        _log(kernel.grid_size / gpu.units),
        1 - kernel.block_size / (warps * gpu.warp),
        _log(private),
        _log(taken.shared),
        taken.shared / max(1, gpu.shared),
        _log(main.computed),
        main.lanes,
        _log(main.barriers),
        main.tested / max(main.computed, 1e-9),
        _log(main.copies),
        _log(main.in_global),
        main.sequence / accessed,
        main.together / accessed,
        _log(main.in_shared),
        _log(main.meeting / main.in_shared if main.in_shared else 0),
        _log(main.computed / max(1.0, main.in_global)),
        main.stages,
        main.copied,
        main.in_tensor / max(main.computed, 1e-9),
        _log(kernel.raster),
        kernel.resident,
        _log(taken.registers),
        _log(taken.spills),
        taken.occupancy(kernel.launched, gpu),
    ]


def _count(kernel: GpuKernel) -> _Counted:
    shared, private = (frozenset(b.name for b in found) for found in (kernel.shared, kernel.private))
    found = _Counted(shared=shared, private=private)
    fastest = kernel.threads[-1][0] if kernel.threads else None
    found.items(kernel.body, 1.0, fastest, kernel)
    return found


def _log(x: float) -> float:
    return float(np.log2(1 + x))
