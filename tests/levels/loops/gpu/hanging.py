"""Kernels that never end, in a module that workers can import."""

from __future__ import annotations

from dataclasses import dataclass

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
