"""Dialects of kernels in C: OpenCL and CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """A language of kernels.

    Args:
        name: "opencl" or "cuda".
        kernel: begins a kernel's function; `{0}` stands for the threads of a block.
        function: begins any other function.
        memory: memory to the word that begins a pointer to it or an array in it.
        restrict: the word for pointers that share no memory.
        block: the number of the block.
        thread: the number of the thread in its block.
        barrier: waits for the threads of a block.
        types: element type to the type that its elements have in memory.
        aligned: ends an array that begins at a multiple of the largest vector.
        vectors: whether there is arithmetic on vectors.
    """

    name: str
    kernel: str
    function: str
    memory: Mapping[str, str]
    restrict: str
    block: str
    thread: str
    barrier: str
    types: Mapping[str, str]
    aligned: str
    vectors: bool


_TYPES = {"float32": "float", "float64": "double", "int32": "int", "bfloat16": "ushort", "tf32": "float"}
OPENCL = Dialect(
    "opencl",
    "__kernel __attribute__((reqd_work_group_size({0}, 1, 1))) void",
    "static inline",
    {"global": "__global ", "shared": "__local "},
    "restrict",
    "(int)get_group_id(0)",
    "(int)get_local_id(0)",
    "barrier(CLK_LOCAL_MEM_FENCE);",
    {**_TYPES, "float16": "half", "int8": "char", "int64": "long"},
    " __attribute__((aligned(64)))",
    vectors=True,
)
CUDA = Dialect(
    "cuda",
    'extern "C" __global__ void __launch_bounds__({0})',
    "static __device__ __forceinline__",
    {"global": "", "shared": "__shared__ __align__(16) "},
    "__restrict__",
    "(int)blockIdx.x",
    "(int)threadIdx.x",
    "__syncthreads();",
    {**_TYPES, "float16": "ushort", "int8": "signed char", "int64": "long long"},
    "",
    vectors=False,
)
DIALECTS = {dialect.name: dialect for dialect in (OPENCL, CUDA)}
CUDA_COPIES = """static __device__ __forceinline__ void p_commit()
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}""" + "".join(
    f"""

static __device__ __forceinline__ void p_copy_{size}(void *to, const void *from)
{{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.{cache}.shared.global [%0], [%1], {size};"
    :: "r"((uint)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
  *({kind} *)to = *(const {kind} *)from;
#endif
}}"""
    for size, kind, cache in ((4, "uint", "ca"), (8, "uint2", "ca"), (16, "uint4", "cg"))
)
"""Copies from global to shared memory that go on while a thread does other work."""
