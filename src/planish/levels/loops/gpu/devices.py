"""GPUs as targets: what a device has, and how it is named.

A target is named `opencl`, `opencl:NAME` with a part of a platform's or device's name, or `cuda:sm_90`. What
schedules depend on is kept among the target's features, so that a stored target says it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from planish.core import Target


def kind_and_name(target: Target) -> tuple[str, str]:
    """Return a target's kind, one of `GPU_KINDS`, and the rest of its name: a device or an architecture."""
    kind, _, name = target.toolchain["backend"].partition(":")
    return kind, name


@dataclass(frozen=True)
class Gpu:
    """Resources of a device.

    Args:
        units: that execute blocks at the same time.
        block_size: threads of a block at most.
        shared: bytes that the threads of a block share.
        lanes: elements of float32 in a vector that a thread computes at once; 1 where threads are lanes.
        warp: threads that execute one instruction together.
        registers: of 32 bits, for all threads of a unit; 0 where that is not known.
        threads: of a unit at most; 0 where that is not known.
        processor: whether it is a processor that executes the threads of a block one after the other.
        tensor: whether it has tensor cores for float16 and bfloat16.
        groups: whether groups of four warps use them together: in code for Hopper alone.
        l2: bytes of the last cache; 0 where that is not known, as of the following.
        bandwidth: GB/s from memory.
        gflops: peak in float32.
        tensor_gflops: peak of the tensor cores in float16.
    """

    units: int = 1
    block_size: int = 1024
    shared: int = 48 << 10
    lanes: int = 1
    warp: int = 32
    registers: int = 0
    threads: int = 0
    processor: bool = False
    tensor: bool = False
    groups: bool = False
    l2: int = 0
    bandwidth: int = 0
    gflops: int = 0
    tensor_gflops: int = 0

    @property
    def features(self) -> frozenset[str]:
        """Return all as features of a target."""
        return frozenset(f"{field.name}={int(getattr(self, field.name))}" for field in fields(self))

    @property
    def flat_block_size(self) -> int:
        """Return how many threads a block has where a schedule says nothing."""
        return min(self.block_size, 64 if self.processor else 256)

    @staticmethod
    def of(target: Target) -> Gpu:
        """Read a target's features."""
        pairs = (feature.partition("=") for feature in target.features if "=" in feature)
        found: Mapping[str, int] = {name: int(value) for name, _, value in pairs if value.isdigit()}
        known = {field.name for field in fields(Gpu)}
        numbers: dict[str, Any] = {name: value for name, value in found.items() if name in known}
        flags = {name: bool(numbers.get(name)) for name in ("processor", "tensor", "groups")}
        return Gpu(**{**numbers, **flags})


REGISTERS, MOST_REGISTERS = 65536, 255
"""Of a multiprocessor of any CUDA GPU of the table, and of a thread."""


@dataclass(frozen=True)
class KernelStatistics:
    """Resources that a kernel takes: as its compiler says, or estimated.

    Args:
        registers: of a thread.
        spill_stores: bytes that a thread stores because registers do not suffice.
        spill_loads: bytes that it loads for that.
        shared: bytes of a block.
    """

    registers: int
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0

    @property
    def spills(self) -> int:
        """Return the bytes that a thread stores and loads because registers do not suffice."""
        return self.spill_stores + self.spill_loads

    def occupancy(self, block_size: int, gpu: Gpu) -> float:
        """Return the share of a multiprocessor's threads that run at the same time, from 0 to 1.

        Args:
            block_size: threads of a block.
            gpu: whose registers, threads and shared memory count; what is not known does not limit.
        """
        warps = -(-block_size // gpu.warp)
        # Registers are given to warps in pieces of 256.
        of_warp = -(-self.registers * gpu.warp // 256) * 256
        blocks = 32
        if gpu.threads:
            blocks = min(blocks, gpu.threads // (warps * gpu.warp))
        if gpu.registers:
            blocks = min(blocks, gpu.registers // max(1, of_warp * warps))
        if self.shared:
            blocks = min(blocks, gpu.shared // self.shared)
        return min(1.0, blocks * warps * gpu.warp / (gpu.threads or 32 * warps * gpu.warp))
