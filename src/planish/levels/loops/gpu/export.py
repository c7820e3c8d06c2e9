"""Exports of GPU schedules: kernels and grids, a host program in C that launches them, and a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, PlanishError, ProgramError, Target, Task, content_hash
from planish.core.documents import versioned
from planish.levels.loops.evaluator import refuse_wrong
from planish.levels.loops.export import can_name_function
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.evaluator import compiled_for
from planish.levels.loops.gpu.kernels import GpuKernel, GpuProgram, shared_bytes
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.gpu.source import DIALECTS, OPENCL, kernel_source
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
        what = f"{kernel.groups} blocks of {kernel.group} threads over {threads or 'nothing'}"
    else:
        blocks = ", ".join(f"{loop_text(loop)}: {n}" for loop, n in kernel.blocks)
        what = f"{kernel.groups} blocks ({blocks}) of {kernel.group} threads ({threads})"
    own = [f"{b.name}: {b.size} of {b.dtype}" for b in kernel.private]
    shared = [f"{b.name}: {b.size} of {b.dtype}" for b in kernel.shared]
    parts = [f"{kernel.name}: {what}"]
    parts += [f"each thread has {', '.join(own)}"] * bool(own)
    parts += [f"each block shares {', '.join(shared)}, {shared_bytes(kernel)} bytes"] * bool(shared)
    return "; ".join(parts)


def describe_gpu(program: Program, candidate: Candidate, target: Target) -> Mapping[str, Any]:
    """Show a candidate: its kernels' grids and memory, their source, and the steps."""
    gpu = Gpu.of(target)
    kernels = gpu_program_of(program, candidate, gpu.flat_group)
    dialect = DIALECTS[target.toolchain["backend"].partition(":")[0]]
    return {
        "kernels": grids_text(kernels),
        "source": kernel_source(kernels, dialect),
        "steps": "\n".join(map(str, candidate.steps)) or "(unchanged)",
    }


# Files


def export_gpu(task: Task[Program], candidate: Candidate, path: Path, name: str = "") -> Sequence[Path]:
    """Write NAME.cl, NAME.c, a host program that launches and checks it, and NAME.json.

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
    name = name or f"kernel_{content_hash(program.text + candidate.text)[:8]}"
    if not can_name_function(name):
        raise ProgramError(f"'{name}' cannot name a C function", "Use letters, digits and underscores.")
    kernels = gpu_program_of(program, candidate, Gpu.of(task.target).flat_group)
    source = kernel_source(kernels, OPENCL)
    refuse_wrong(compiled_for(program, kernels, source, task.target))
    record = {
        "name": name,
        "level": task.level,
        "level_version": task.level_version,
        "program": program.text,
        "target": json.loads(task.target.text),
        "steps": [step.to_json() for step in candidate.steps],
        "kernels": [_launch_record(kernel) for kernel in (*kernels.ahead, *kernels.kernels)],
        "temporaries": {b.name: b.size * DTYPES[b.dtype] for b in kernels.temporaries},
    }
    title = f"/* {program.text.replace('*/', '* /')}\n * Made by planish for {task.target.processor}. */\n"
    texts = {
        "cl": title + source,
        "c": title + host_program(name, program, kernels),
        "json": json.dumps(versioned(record), indent=2) + "\n",
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        for suffix, text in texts.items():
            (path / f"{name}.{suffix}").write_text(text)
    except OSError as error:
        raise PlanishError(f"cannot write to '{path}': {error.strerror}", "Choose another folder.") from error
    return [path / f"{name}.{suffix}" for suffix in texts]


def _launch_record(kernel: GpuKernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "blocks": kernel.groups,
        "threads": kernel.group,
        "arguments": [*kernel.inputs, *kernel.outputs],
        "shared_bytes": shared_bytes(kernel),
    }


_HOST = """
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Build: cc {name}.c -lOpenCL -o {name}
 * {name} [N] launches the kernels of {name}.cl N times on the first device, with inputs of small integers,
 * prints the microseconds of a call, and the sum of each output. */

#define CHECK(call) do {{ \\
    cl_int e = (call); \\
    if (e) {{ fprintf(stderr, "%s: error %d\\n", #call, e); exit(1); }} \\
}} while (0)

struct buffer {{ const char *name; size_t bytes; int kind; }}; /* 0 input, 1 output, 2 temporary */
static const struct buffer buffers[] = {{
{buffers}
}};
enum {{ BUFFERS = sizeof buffers / sizeof buffers[0] }};

struct launch {{ const char *name; size_t groups, threads; int once, count, arguments[{most}]; }};
static const struct launch launches[] = {{
{launches}
}};
enum {{ LAUNCHES = sizeof launches / sizeof launches[0] }};

static char *text_of(const char *path)
{{
    FILE *file = fopen(path, "rb");
    if (!file) {{ perror(path); exit(1); }}
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = calloc(size + 1, 1);
    if (fread(text, 1, size, file) != (size_t)size) exit(1);
    fclose(file);
    return text;
}}

/* Fill an input with 1, 2, 3, 1, 2, 3, ... */
static void fill(int index, void *data)
{{
    switch (index) {{
{fills}
    }}
}}

static double sum(int index, const void *data)
{{
    double total = 0;
    switch (index) {{
{sums}
    }}
    return total;
}}

int main(int argc, char **argv)
{{
    int times = argc > 1 ? atoi(argv[1]) : 10;
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    CHECK(clGetPlatformIDs(1, &platform, NULL));
    CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    CHECK(error);
    cl_command_queue queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &error);
    CHECK(error);
    const char *source = text_of("{name}.cl");
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    CHECK(error);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_mem memory[BUFFERS];
    for (int i = 0; i < BUFFERS; ++i) {{
        memory[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, buffers[i].bytes, NULL, &error);
        CHECK(error);
        void *data = calloc(1, buffers[i].bytes);
        if (buffers[i].kind == 0) fill(i, data);
        CHECK(clEnqueueWriteBuffer(queue, memory[i], CL_TRUE, 0, buffers[i].bytes, data, 0, NULL, NULL));
        free(data);
    }}
    double nanoseconds = 0;
    for (int call = 0; call < times; ++call)
        for (int i = 0; i < LAUNCHES; ++i) {{
            if (launches[i].once && call) continue;
            cl_kernel kernel = clCreateKernel(program, launches[i].name, &error);
            CHECK(error);
            for (int a = 0; a < launches[i].count; ++a)
                CHECK(clSetKernelArg(kernel, a, sizeof(cl_mem), &memory[launches[i].arguments[a]]));
            size_t threads = launches[i].threads, total = launches[i].groups * threads;
            cl_event event;
            CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &total, &threads, 0, NULL, &event));
            CHECK(clFinish(queue));
            cl_ulong begin, end;
            CHECK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL));
            CHECK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
            if (!launches[i].once) nanoseconds += end - begin;
            clReleaseEvent(event);
            clReleaseKernel(kernel);
        }}
    printf("%.3f us a call\\n", nanoseconds / times / 1e3);
    for (int i = 0; i < BUFFERS; ++i) {{
        if (buffers[i].kind != 1) continue;
        void *data = malloc(buffers[i].bytes);
        CHECK(clEnqueueReadBuffer(queue, memory[i], CL_TRUE, 0, buffers[i].bytes, data, 0, NULL, NULL));
        printf("%s: sum %.9g\\n", buffers[i].name, sum(i, data));
        free(data);
    }}
    return 0;
}}
"""
_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int8": "signed char",
    "int64": "long long",
}
_HALVES = {"float16": "{0x3c00, 0x4000, 0x4200}", "bfloat16": "{0x3f80, 0x4000, 0x4040}"}
"""The bits of 1, 2 and 3."""


def host_program(name: str, program: Program, kernels: GpuProgram) -> str:
    """Write a C program that launches kernels by OpenCL: the code to copy, and a first test."""
    kinds = {**dict.fromkeys(program.inputs, 0), **dict.fromkeys(program.outputs, 1)}
    types = {n: (program.type[n].size, program.type[n].dtype, kind) for n, kind in kinds.items()}
    types |= {b.name: (b.size, b.dtype, 2) for b in kernels.temporaries}
    number = {n: i for i, n in enumerate(types)}
    every = [(k, 1) for k in kernels.ahead] + [(k, 0) for k in kernels.kernels]
    rows: list[str] = []
    for k, once in every:
        arguments = [str(number[n]) for n in (*k.inputs, *k.outputs)]
        row = f'"{k.name}", {k.groups}, {k.group}, {once}, {len(arguments)}, {{{", ".join(arguments)}}}'
        rows.append(f"    {{{row}}},")
    return _HOST.format(
        name=name,
        buffers="\n".join(
            f'    {{"{n}", {size * DTYPES[t]}, {kind}}},' for n, (size, t, kind) in types.items()
        ),
        most=max(len((*k.inputs, *k.outputs)) for k, _ in every),
        launches="\n".join(rows),
        fills="\n".join(
            f"    case {number[n]}: {_loop(t, size, fill=True)} break;"
            for n, (size, t, k) in types.items()
            if k == 0
        ),
        sums="\n".join(
            f"    case {number[n]}: {_loop(t, size, fill=False)} break;"
            for n, (size, t, k) in types.items()
            if k == 1
        ),
    )


def _loop(dtype: str, size: int, *, fill: bool) -> str:
    head = f"for (size_t i = 0; i < {size}; ++i)"
    if dtype in _HALVES:
        if fill:
            values = f"static const unsigned short v[] = {_HALVES[dtype]};"
            return f"{{ {values} {head} ((unsigned short *)data)[i] = v[i % 3]; }}"
        return f"{head} total += ((const unsigned short *)data)[i]; /* of the bits */"
    kind = _C_TYPES[dtype]
    return (
        f"{head} (({kind} *)data)[i] = i % 3 + 1;" if fill else f"{head} total += ((const {kind} *)data)[i];"
    )


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
        kernels = gpu_program_of(program, candidate, Gpu.of(target).flat_group)
        compiled = compiled_for(program, kernels, kernel_source(kernels, OPENCL), target)
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
