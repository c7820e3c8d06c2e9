"""Exports of GPU schedules: kernels and grids, a host program in C that launches them, and a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, Target, Task
from planish.levels.loops.evaluator import refuse_wrong
from planish.levels.loops.export import kernel_name, kernel_record, write_kernel
from planish.levels.loops.gpu.cuda import compile_cuda
from planish.levels.loops.gpu.devices import Gpu, kind_and_name
from planish.levels.loops.gpu.evaluator import compiled_for, has_device, source_for
from planish.levels.loops.gpu.host import host_program
from planish.levels.loops.gpu.kernels import GpuKernel, GpuProgram, shared_bytes
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.ir.schedule import loop_text
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import DTYPES, Program
from planish.levels.loops.runtime.dispatch import ArraySpec, check_operands, results_of


def grids_text(kernels: GpuProgram) -> str:
    """Write a line for each kernel: its grid, its threads, and what it has in which memory."""
    return "\n".join(map(_grid_text, (*kernels.ahead, *kernels.kernels)))


def _grid_text(kernel: GpuKernel) -> str:
    threads = ", ".join(f"{loop_text(loop)}: {n}" for loop, n in kernel.threads)
    if kernel.flat:
        what = f"{kernel.grid_size} blocks of {kernel.block_size} threads over {threads or 'nothing'}"
    else:
        blocks = ", ".join(f"{loop_text(loop)}: {n}" for loop, n in kernel.blocks)
        what = f"{kernel.grid_size} blocks ({blocks}) of {kernel.block_size} threads ({threads})"
    own = [f"{b.name}: {b.size} of {b.dtype}" for b in kernel.private]
    shared = [f"{b.name}: {b.size} of {b.dtype}" for b in kernel.shared]
    parts = [f"{kernel.name}: {what}"]
    parts += [f"each thread has {', '.join(own)}"] * bool(own)
    parts += [f"each block shares {', '.join(shared)}, {shared_bytes(kernel)} bytes"] * bool(shared)
    return "; ".join(parts)


def describe_gpu(program: Program, candidate: Candidate, target: Target) -> Mapping[str, Any]:
    """Show a candidate: its kernels' grids and memory, their source, and the steps."""
    gpu = Gpu.of(target)
    kernels = gpu_program_of(program, candidate, gpu.flat_block_size)
    return {
        "kernels": grids_text(kernels),
        "source": source_for(kernels, target),
        "steps": "\n".join(map(str, candidate.steps)) or "(unchanged)",
    }


# Files


def export_gpu(task: Task[Program], candidate: Candidate, path: Path, name: str = "") -> Sequence[Path]:
    """Write NAME.cl, or NAME.cu and NAME.cubin; NAME.c, a host program that launches it; and NAME.json.

    A kernel for a GPU that is not here is compiled, and cannot be verified.

    Args:
        task: of a program of this level, for a device.
        candidate: a schedule.
        path: the folder; it is made if it is not there.
        name: of the files; by default `kernel_` and eight hexadecimal digits, which state the program and the
            schedule.

    Returns:
        The files.

    Raises:
        PlanishError: the kernel gives a wrong answer on this machine, or a file cannot be written.
    """
    program = task.program
    name = kernel_name(name, program, candidate)
    kernels = gpu_program_of(program, candidate, Gpu.of(task.target).flat_block_size)
    kind, arch = kind_and_name(task.target)
    source = source_for(kernels, task.target)
    cubin = compile_cuda(source, arch) if kind == "cuda" else None
    if cubin is None or has_device(task.target):
        refuse_wrong(compiled_for(program, kernels, source, task.target))
    record = {
        **kernel_record(name, task, candidate),
        "kernels": [_launch_record(kernel) for kernel in (*kernels.ahead, *kernels.kernels)],
        "temporaries": {b.name: b.size * DTYPES[b.dtype] for b in kernels.temporaries},
        **({"statistics": {n: asdict(found) for n, found in cubin.statistics.items()}} if cubin else {}),
    }
    title = f"/* {program.text.replace('*/', '* /')}\n * Made by planish for {task.target.processor}. */\n"
    texts = {
        "cu" if cubin else "cl": (title + source).encode(),
        **({"cubin": cubin.cubin} if cubin else {}),
        "c": (title + host_program(name, program, kernels, kind)).encode(),
        "json": (json.dumps(record, indent=2) + "\n").encode(),
    }
    return write_kernel(path, name, texts)


def _launch_record(kernel: GpuKernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "blocks": kernel.grid_size,
        "threads": kernel.block_size,
        "arguments": [*kernel.inputs, *kernel.outputs],
        "shared_bytes": shared_bytes(kernel),
    }


# Functions


class GpuFunction:
    """Takes operands and returns new arrays, computed on a device; pickled, it is compiled again.

    Args:
        program: what is computed.
        candidate: by what.
        target: on which device.
    """

    def __init__(self, program: Program, candidate: Candidate, target: Target) -> None:
        self._made_of = program, candidate, target
        kernels = gpu_program_of(program, candidate, Gpu.of(target).flat_block_size)
        compiled = compiled_for(program, kernels, source_for(kernels, target), target)
        refuse_wrong(compiled)
        types = program.type
        self._inputs, self._outputs = (
            {name: np.zeros(types[name].shape, numpy_type(types[name].dtype)) for name in names}
            for names in (program.inputs, program.outputs)
        )
        self._specs = [ArraySpec.row_major(a.shape, types[n].dtype) for n, a in self._inputs.items()]
        self._runs = compiled.bind(self._inputs, self._outputs)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return GpuFunction, self._made_of

    def __call__(self, *operands: NDArray[Any]) -> Any:
        check_operands(list(self._inputs), self._specs, operands)
        for array, operand in zip(self._inputs.values(), operands, strict=True):
            np.copyto(array, operand)
        self._runs.prepare()
        self._runs.repeat(1)
        return results_of([array.copy() for array in self._outputs.values()])


def gpu_function(program: Program, candidate: Candidate, target: Target) -> GpuFunction:
    """Make what computes a program by a candidate; raises PlanishError where its kernel is wrong."""
    return GpuFunction(program, candidate, target)
