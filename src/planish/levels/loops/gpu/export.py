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
from planish.levels.loops.gpu.kernels import (
    GpuKernel,
    GpuProgram,
    TensorMap,
    dynamic_bytes,
    shared_bytes,
    tensor_maps,
)
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
        what += f", and {kernel.copying} that copy" * (kernel.copying > 0)
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
        "threads": kernel.launched,
        "arguments": [*kernel.inputs, *kernel.outputs],
        **({"tensor_maps": [asdict(each) for each in tensor_maps(kernel)]} if kernel.copying else {}),
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


_TABLES = """
struct buffer {{ const char *name; size_t bytes; int kind; }}; /* 0 input, 1 output, 2 temporary */
static const struct buffer buffers[] = {{
{buffers}
}};
enum {{ BUFFERS = sizeof buffers / sizeof buffers[0] }};


struct launch {{ const char *name; size_t blocks, threads; int shared, once, count, arguments[{most}]; }};
static const struct launch launches[] = {{
{launches}
}};
enum {{ LAUNCHES = sizeof launches / sizeof launches[0] }};

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
"""
_OPENCL = """
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
"""
_OPENCL_MAIN = """
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
            size_t threads = launches[i].threads, total = launches[i].blocks * threads;
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
_CUDA = """
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Build: cc {name}.c -lcuda -o {name}
 * {name} [N] launches the kernels of {name}.cubin N times on the first GPU, with inputs of small integers,
 * prints the microseconds of a call, and the sum of each output. */

#define CHECK(call) do {{ \\
    CUresult e = (call); \\
    if (e) {{ fprintf(stderr, "%s: error %d\\n", #call, (int)e); exit(1); }} \\
}} while (0)
"""
_CUDA_MAIN = """
int main(int argc, char **argv)
{{
    int times = argc > 1 ? atoi(argv[1]) : 10;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUevent begin, end;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoad(&module, "{name}.cubin"));
    CHECK(cuEventCreate(&begin, 0));
    CHECK(cuEventCreate(&end, 0));
    CUdeviceptr memory[BUFFERS];
    CUtensorMap maps[{maps_most}];
    (void)maps;
    for (int i = 0; i < BUFFERS; ++i) {{
        CHECK(cuMemAlloc(&memory[i], buffers[i].bytes));
        void *data = calloc(1, buffers[i].bytes);
        if (buffers[i].kind == 0) fill(i, data);
        CHECK(cuMemcpyHtoD(memory[i], data, buffers[i].bytes));
        free(data);
    }}
{maps}
    for (int call = 0; call <= times; ++call) {{
        if (call == 1) CHECK(cuEventRecord(begin, NULL));
        for (int i = 0; i < LAUNCHES; ++i) {{
            if (launches[i].once && call) continue;
            CUfunction kernel;
            void *arguments[{most}];
            CHECK(cuModuleGetFunction(&kernel, module, launches[i].name));
            for (int a = 0; a < launches[i].count; ++a) {{
                int at = launches[i].arguments[a];
                arguments[a] = at < BUFFERS ? (void *)&memory[at] : (void *)&maps[at - BUFFERS];
            }}
            if (launches[i].shared)
                CHECK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         launches[i].shared));
            CHECK(cuLaunchKernel(kernel, launches[i].blocks, 1, 1, launches[i].threads, 1, 1,
                                 launches[i].shared, NULL,
                                 arguments, NULL));
        }}
    }}
    CHECK(cuEventRecord(end, NULL));
    CHECK(cuEventSynchronize(end));
    float milliseconds;
    CHECK(cuEventElapsedTime(&milliseconds, begin, end));
    printf("%.3f us a call\\n", milliseconds / times * 1e3);
    for (int i = 0; i < BUFFERS; ++i) {{
        if (buffers[i].kind != 1) continue;
        void *data = malloc(buffers[i].bytes);
        CHECK(cuMemcpyDtoH(data, memory[i], buffers[i].bytes));
        printf("%s: sum %.9g\\n", buffers[i].name, sum(i, data));
        free(data);
    }}
    return 0;
}}
"""
_MAP = """    {{
        cuuint64_t extents[] = {{{extents}}}, strides[] = {{{strides}}};
        cuuint32_t box[] = {{{box}}}, steps[] = {{{steps}}};
        CHECK(cuTensorMapEncodeTiled(&maps[{number}], CU_TENSOR_MAP_DATA_TYPE_UINT16, {rank},
                                     (void *)memory[{source}], extents, strides, box, steps,
                                     CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle){swizzle},
                                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    }}"""
_HOSTS = {"opencl": _OPENCL + _TABLES + _OPENCL_MAIN, "cuda": _CUDA + _TABLES + _CUDA_MAIN}
_C_TYPES = {
    "float32": "float",
    "tf32": "float",
    "float64": "double",
    "int32": "int",
    "int8": "signed char",
    "int64": "long long",
}
_HALVES = {"float16": "{0x3c00, 0x4000, 0x4200}", "bfloat16": "{0x3f80, 0x4000, 0x4040}"}
"""The bits of 1, 2 and 3."""


def host_program(name: str, program: Program, kernels: GpuProgram, kind: str) -> str:
    """Write a C program that launches kernels.

    Args:
        name: of its files.
        program: what the kernels compute.
        kernels: what is launched.
        kind: "opencl" or "cuda".
    """
    kinds = {**dict.fromkeys(program.inputs, 0), **dict.fromkeys(program.outputs, 1)}
    types = {n: (program.type[n].size, program.type[n].dtype, kind) for n, kind in kinds.items()}
    types |= {b.name: (b.size, b.dtype, 2) for b in kernels.temporaries}
    number = {n: i for i, n in enumerate(types)}
    every = [(k, 1) for k in kernels.ahead] + [(k, 0) for k in kernels.kernels]
    rows, maps = list[str](), list[str]()
    for k, once in every:
        arguments = [str(number[n]) for n in (*k.inputs, *k.outputs)]
        for each in tensor_maps(k) if kind == "cuda" else ():
            arguments.append(str(len(number) + len(maps)))
            maps.append(_map_code(each, len(maps), number[each.source]))
        numbers = f"{k.grid_size}, {k.launched}, {dynamic_bytes(k)}, {once}, {len(arguments)}"
        row = f'"{k.name}", {numbers}, {{{", ".join(arguments)}}}'
        rows.append(f"    {{{row}}},")
    return _HOSTS[kind].format(
        name=name,
        buffers="\n".join(
            f'    {{"{n}", {size * DTYPES[t]}, {kind}}},' for n, (size, t, kind) in types.items()
        ),
        most=max(len((*k.inputs, *k.outputs, *tensor_maps(k))) for k, _ in every),
        maps="\n".join(maps),
        maps_most=max(1, len(maps)),
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


def _map_code(tensor: TensorMap, number: int, source: int) -> str:
    extents, strides, box = (
        ", ".join(map(str, each)) for each in (tensor.extents, tensor.strides, tensor.box)
    )
    rank = len(tensor.extents)
    return _MAP.format(
        extents=extents,
        strides=strides,
        box=box,
        steps=", ".join("1" * rank),
        number=number,
        source=source,
        rank=rank,
        swizzle=tensor.swizzle,
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
