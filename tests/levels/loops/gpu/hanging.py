"""Kernels that never end, and devices that are lost, in a module that workers can import."""

from __future__ import annotations

import os
from dataclasses import dataclass

from planish.core import Candidate, DeviceLostError, Measured, Outcome, StageClock
from planish.levels.loops.gpu import evaluator
from planish.levels.loops.gpu.dialect import Dialect
from planish.levels.loops.gpu.evaluator import GpuEvaluator, GpuEvaluatorSpec
from planish.levels.loops.gpu.kernels import GpuProgram
from planish.levels.loops.gpu.source import kernel_source


@dataclass(frozen=True)
class Hanging(GpuEvaluatorSpec):
    """Makes an evaluator of kernels that wait for a flag which is never set, where blocks share memory."""

    def __call__(self) -> GpuEvaluator:
        def hanging(kernels: GpuProgram, dialect: Dialect) -> str:
            source = kernel_source(kernels, dialect)
            wait = "while (((volatile __global const float *)t_A)[0] != 1e30f) {}"
            return (
                source.replace("const int thread =", f"{wait} const int thread =")
                if "__local" in source
                else source
            )

        evaluator.__dict__["kernel_source"] = hanging  # of the worker
        return super().__call__()


@dataclass(frozen=True)
class Losing:
    """Makes an evaluator that measures its process, and whose device is lost by candidates without steps."""

    def __call__(self) -> Losing:
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Measure the process; fail as CUDA's driver does after a kernel that left its memory."""
        with clock("run"):
            if not candidate.steps:
                raise DeviceLostError("cuEventSynchronize: an illegal memory access was encountered (700)")
        return Measured({"time_s": float(os.getpid())})
