"""Products by tensor cores: computed right, refused where they cannot be, and compiled."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from planish.core import (
    Candidate,
    PlanishError,
    ProgramError,
    ScheduleError,
    Step,
    Target,
    TargetError,
    rng,
)
from planish.levels.loops.gpu import opencl
from planish.levels.loops.gpu.cuda import compile_cuda, find_nvrtc
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.dialect import CUDA, OPENCL
from planish.levels.loops.gpu.kernels import (
    Arrangement,
    Mma,
    computations,
    require_fit,
    shared_bytes,
    tensor_maps,
)
from planish.levels.loops.gpu.opencl import OpenClDevice
from planish.levels.loops.gpu.running import CompiledKernels
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.gpu.source import kernel_source
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.gpu.steps import (
    BlockTile,
    BulkCopies,
    LaunchBounds,
    PipelineCopies,
    ReduceTile,
    SharedTile,
    TensorTile,
    VectorLanes,
)
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.testing.gpu_interpreter import execute

SIZES = {"m": 30, "n": 18, "k": 32}
PLAIN = "C[m,n] += A[m,k] * B[k,n]"
SHARED = (ReduceTile("k", 16), SharedTile("A", 8), SharedTile("B", 8))
TILE = TensorTile("m", "n", "k", 2, 1, 1, 2)
GROUP = TensorTile("m", "n", "k", 4, 1, 1, 2, "wgmma")
SWIZZLED = (SharedTile("A", swizzle=True), SharedTile("B", swizzle=True))
compiles = pytest.mark.skipif(
    not (find_nvrtc() or shutil.which("nvcc")), reason="neither NVRTC nor nvcc is installed"
)


def program_of(text: str = PLAIN, dtype: str = "float16", sizes: Mapping[str, int] = SIZES) -> Program:
    known = {**SIZES, **sizes}
    return parse(
        text, {name: known[name] for name in known if f"{name}," in text or f"{name}]" in text}, dtype=dtype
    )


CASES: list[tuple[str, dict[str, int], tuple[Step, ...]]] = [
    (PLAIN, {}, (*SHARED, TILE)),
    (PLAIN, {"m": 13, "n": 23}, (*SHARED, TensorTile("m", "n", "k", 2, 2, 1, 1))),
    (PLAIN, {"n": 20, "k": 48}, (*SHARED, TILE, PipelineCopies(3))),
    (PLAIN, {"k": 80}, (ReduceTile("k", 32), *SHARED[1:], TILE, PipelineCopies(2))),
    ("C[m,n] += A[m,k] * B[n,k]", {}, (*SHARED, TILE)),
    ("C[m,n] += A[k,m] * B[k,n]", {}, (*SHARED, TILE)),
    ("C[n,m] += A[k,m] * B[n,k]", {}, (*SHARED, TensorTile("n", "m", "k", 1, 2, 1, 1))),
    ("C[b,m,n] += A[b,m,k] * B[b,k,n]", {"b": 2}, (*SHARED, TILE, BlockTile("b", 1))),
    ("C[b,m,n] += A[b,m,k] * B[k,n]", {"b": 3, "m": 40}, (*SHARED, TILE, BlockTile("b", 1, 2))),
    (f"{PLAIN}; D[m,n] = relu(C[m,n] + v[n])", {}, (*SHARED, TILE)),
    # Groups of warps, with operands that lie along the reduction or across it.
    (PLAIN, {"m": 60}, (*SHARED, GROUP)),
    (
        "C[m,n] += A[m,k] * B[n,k]",
        {"m": 60, "k": 80},
        (ReduceTile("k", 32), *SHARED[1:], GROUP, PipelineCopies(2)),
    ),
    (
        "C[m,n] += A[k,m] * B[k,n]",
        {"m": 60, "n": 12},
        (*SHARED, TensorTile("m", "n", "k", 4, 1, 1, 1, "wgmma")),
    ),
    (
        "C[n,m] += A[k,m] * B[n,k]",
        {"n": 70, "m": 20},
        (*SHARED, TensorTile("n", "m", "k", 4, 2, 2, 1, "wgmma")),
    ),
    # Chunks that exchange places: rows of 16 and of 32 elements, and those of tiles in several stages.
    (PLAIN, {"n": 32}, (SHARED[0], *SWIZZLED, TILE)),
    (
        "C[m,n] += A[m,k] * B[n,k]",
        {"k": 80},
        (ReduceTile("k", 32), *SWIZZLED, TILE, PipelineCopies(3)),
    ),
    # Copies in boxes: operands along the reduction and across it, in rows of one panel and of several.
    ("C[m,n] += A[m,k] * B[n,k]", {"m": 60}, (*SHARED, GROUP, BulkCopies(2))),
]
LARGE_CASES: list[tuple[str, dict[str, int], tuple[Step, ...]]] = [
    (
        PLAIN,
        {"m": 70, "n": 144, "k": 64},
        (*SHARED, TensorTile("m", "n", "k", 4, 1, 1, 16, "wgmma"), BulkCopies(3, 1)),
    ),
    (
        "C[m,n] += A[k,m] * B[n,k]",
        {"m": 136, "n": 40, "k": 96},
        (ReduceTile("k", 32), *SHARED[1:], TensorTile("m", "n", "k", 4, 2, 1, 2, "wgmma"), BulkCopies(2)),
    ),
    (
        "C[b,m,n] += A[b,m,k] * B[b,k,n]; D[b,m,n] = relu(C[b,m,n])",
        {"b": 2, "m": 72, "n": 32, "k": 128},
        (
            *(ReduceTile("k", 64), *SHARED[1:], BlockTile("b", 1)),
            *(TensorTile("m", "n", "k", 4, 1, 1, 2, "wgmma"), BulkCopies(2)),
        ),
    ),
]
TF32_CASES: list[tuple[str, dict[str, int], tuple[Step, ...]]] = [
    (PLAIN, {}, (ReduceTile("k", 8), *SHARED[1:], TILE)),
    ("C[m,n] += A[k,m] * B[n,k]", {"k": 40}, (*SHARED[:1], *SWIZZLED[1:], SharedTile("A", 4), TILE)),
    ("C[n,m] += A[m,k] * B[n,k]", {}, (*SHARED, TensorTile("n", "m", "k", 1, 2, 1, 1), PipelineCopies(2))),
]


@pytest.mark.slow(after=8)
@pytest.mark.parametrize(("text", "sizes", "steps"), CASES)
def test_products_are_computed(text: str, sizes: dict[str, int], steps: tuple[Step, ...]) -> None:
    program = program_of(text, sizes=sizes)
    assert interpreted(program, steps) is None


@pytest.mark.parametrize(("text", "sizes", "steps"), TF32_CASES)
def test_products_of_tf32_are_computed(text: str, sizes: dict[str, int], steps: tuple[Step, ...]) -> None:
    assert interpreted(program_of(text, "tf32", sizes), steps) is None


def interpreted(program: Program, steps: tuple[Step, ...]) -> str | None:
    """Describe what is wrong with the kernels, by the interpreter."""
    kernels = gpu_program_of(program, Candidate(steps))
    assert any(isinstance(each, Mma) for kernel in kernels.kernels for each in computations(kernel.body))
    inputs = make_inputs(program)
    found = execute(kernels, inputs)
    shaped = {name: found[name].reshape(program.type[name].shape) for name in program.outputs}
    return check(program, shaped, reference(program, inputs))


def on_device(program: Program, steps: tuple[Step, ...], name: str) -> str | None:
    """Describe what is wrong with the kernels of OpenCL on a device."""
    kernels = gpu_program_of(program, Candidate(steps))
    inputs = make_inputs(program)
    outputs = {n: np.empty(program.type[n].shape, numpy_type(program.type[n].dtype)) for n in program.outputs}
    device = OpenClDevice(kernel_source(kernels, OPENCL), name)
    run = CompiledKernels(program, kernels, device).bind(inputs, outputs)
    run.repeat(1)
    return check(program, outputs, reference(program, inputs))


def needs(name: str) -> None:
    pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    if not any(name.lower() in title.lower() for title in opencl.device_titles()):
        pytest.skip(f"{name} is not installed")


ON_DEVICE = [*[CASES[i] for i in (1, 2, 5, 6)], *CASES[10:], *LARGE_CASES]


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        *((case, "float16") for case in ON_DEVICE),
        (CASES[1], "bfloat16"),
        (CASES[16], "bfloat16"),
        *(
            # Instructions exchange 16 bits, whatever they mean.
            pytest.param(case, "bfloat16", marks=pytest.mark.slow)
            for case in ON_DEVICE
            if case not in (CASES[1], CASES[16])
        ),
    ],
)
def test_fragments_are_exchanged_as_the_instructions_do(
    case: tuple[str, dict[str, int], tuple[Step, ...]], dtype: str
) -> None:
    needs("portable")
    text, sizes, steps = case
    assert on_device(program_of(text, dtype, sizes), steps, "portable") is None


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("case", range(3))
def test_fragments_of_tf32_are_exchanged(case: int) -> None:
    needs("portable")
    text, sizes, steps = TF32_CASES[case]
    assert on_device(program_of(text, "tf32", sizes), steps, "portable") is None


def test_numbers_of_tf32_are_rounded_to_the_nearest() -> None:
    needs("portable")
    program = program_of("C[m,n] += A[m,k] * B[n,k]", "tf32")
    ones, rest = np.ones((30, 32), np.float32), np.ones((18, 32), np.float32)
    rest[:, 0] = 1 + 2.0**-11  # half a unit more: away from zero
    rest[:, 1] = 1 + 2.0**-12
    kernels = gpu_program_of(program, Candidate(TF32_CASES[0][2]))
    found = np.empty((30, 18), np.float32)
    device = OpenClDevice(kernel_source(kernels, OPENCL), "portable")
    run = CompiledKernels(program, kernels, device).bind({"A": ones, "B": rest}, {"C": found})
    run.repeat(1)
    assert (found == 32 + 2.0**-10).all()


def test_tf32_is_for_inputs_on_gpus_alone() -> None:
    assert program_of(dtype="tf32").type["C"].dtype == "float32"
    with pytest.raises(ProgramError, match="C is written, so it cannot be tf32: inputs alone are"):
        program_of(dtype="C=tf32")
    with pytest.raises(TargetError, match=r"of GPUs. Choose the target cuda:sm_80"):
        LoopsLevel().target(program_of(dtype="tf32"), 1)


def test_the_simulator_executes_fragments(capfd: pytest.CaptureFixture[str]) -> None:
    needs("oclgrind")
    program = program_of(sizes={"m": 16, "n": 16, "k": 32})
    assert on_device(program, (*SHARED, TensorTile("m", "n", "k")), "oclgrind") is None
    assert "race" not in capfd.readouterr().err


CONVOLUTION = "O[k,y,x] += pad(I[c,y,x+s-1], 0) * W[k,c,s]"


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("width", [14, 16])
def test_a_convolution_is_a_product_for_each_element_of_its_window(width: int) -> None:
    program = parse(CONVOLUTION, {}, {"I": (32, 2, width), "W": (17, 32, 3)}, "float16")
    tiles = (ReduceTile("s", 1), ReduceTile("c", 16), BlockTile("y", 1))
    steps = (*tiles, SharedTile("I", 8), SharedTile("W", 8), TensorTile("k", "x", "c", 1, 1, 1, 2))
    kernels = gpu_program_of(program, Candidate(steps))
    inputs = make_inputs(program)
    found = execute(kernels, inputs)["O"].reshape(program.type["O"].shape)
    assert check(program, {"O": found}, reference(program, inputs)) is None


@pytest.mark.slow(after=2)
@compiles
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_compile_without_spills(arch: str, dtype: str) -> None:
    program = program_of(dtype=dtype, sizes={"m": 1024, "n": 1024, "k": 1024})
    steps = (ReduceTile("k", 32), *SHARED[1:], TensorTile("m", "n", "k", 2, 2, 4, 8), PipelineCopies(3))
    source = kernel_source(gpu_program_of(program, Candidate(steps)), CUDA)
    assert "mma.sync.aligned.m16n8k16" in source
    assert "cp.async" in source
    assert compile_cuda(source, arch).spills == 0


@compiles
@pytest.mark.parametrize("text", [CASES[0][0], CASES[4][0]])
def test_groups_of_warps_compile_for_hopper(text: str) -> None:
    program = program_of(text, sizes={"m": 1024, "n": 1024, "k": 1024})
    steps = (
        ReduceTile("k", 64),
        *SHARED[1:],
        TensorTile("m", "n", "k", 8, 1, 1, 16, "wgmma"),
        PipelineCopies(3),
    )
    source = kernel_source(gpu_program_of(program, Candidate(steps)), CUDA)
    assert "wgmma.mma_async.sync.aligned.m64n128k16" in source
    assert compile_cuda(source, "sm_90a").spills == 0


@pytest.mark.slow(after=1)
@compiles
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100"])
def test_products_of_tf32_compile(arch: str) -> None:
    program = program_of("C[m,n] += A[m,k] * B[n,k]", "tf32", {"m": 1024, "n": 1024, "k": 1024})
    steps = (ReduceTile("k", 32), *SWIZZLED, TensorTile("m", "n", "k", 2, 2, 4, 8), PipelineCopies(3))
    source = kernel_source(gpu_program_of(program, Candidate(steps)), CUDA)
    assert "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" in source
    assert compile_cuda(source, arch).spills == 0


@pytest.mark.slow(after=1)
@compiles
@pytest.mark.parametrize("text", [CASES[0][0], CASES[4][0], CASES[5][0]])
def test_copies_in_bulk_compile_for_hopper(text: str) -> None:
    program = program_of(text, sizes={"m": 1024, "n": 1024, "k": 1024})
    tile = TensorTile("m", "n", "k", 8, 1, 1, 32, "wgmma")
    kernels = gpu_program_of(program, Candidate((ReduceTile("k", 64), *SHARED[1:], tile, BulkCopies(4, 1))))
    source = kernel_source(kernels, CUDA)
    assert "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier" in source
    assert "setmaxnreg.dec.sync.aligned.u32 40" in source
    assert "__launch_bounds__(384)" in source
    found = compile_cuda(source, "sm_90a")
    assert found.spills == 0
    assert found.statistics["run0"].registers == 168
    for tensor in tensor_maps(kernels.kernels[0]):
        assert tensor.extents == (1024, 1024)
        assert tensor.strides == (2048,)
        assert tensor.box[0] == 64
        assert tensor.swizzle == 3


@pytest.mark.parametrize("row", [16, 32, 64, 128])
def test_chunks_of_neighboring_rows_are_in_different_banks(row: int) -> None:
    arranged = Arrangement.of(row, 2)
    assert arranged is not None
    assert sorted(map(arranged.place, range(row * 16))) == [*range(row * 16)]
    for column in range(0, row, 8):
        # The eight rows of a matrix that a warp loads at once: 16 bytes of each, in all banks together.
        places = [2 * arranged.place(line * row + column) // 16 % 8 for line in range(8)]
        assert sorted(places) == [*range(8)]
    assert Arrangement.of(24, 2) is Arrangement.of(8, 2) is None


def test_memory_in_which_fragments_are_exchanged_is_counted() -> None:
    kernels = gpu_program_of(program_of(), Candidate((*SHARED, TILE)))
    (kernel,) = kernels.kernels
    source = kernel_source(kernels, OPENCL)
    assert f"p_exchange[{64 * 6}]" in source
    require_fit(kernels, 64, shared_bytes(kernel))
    require_fit(kernels, 64, shared_bytes(kernel) + 4 * 64 * 6, emulated=True)
    with pytest.raises(TargetError, match="a block shares"):
        require_fit(kernels, 64, shared_bytes(kernel) + 4 * 64 * 6 - 1, emulated=True)


@pytest.mark.parametrize(
    ("sizes", "dtype", "steps", "why"),
    [
        ({}, "float32", (*SHARED, TILE), "tensor cores multiply float16, bfloat16 or tf32, not float32"),
        ({"m": 8}, "float16", (*SHARED, TILE), "an axis is too short"),
        ({"k": 40}, "float16", (*SHARED, TILE), "not a multiple of 16"),
        ({}, "float16", (SHARED[0], TILE), "read operands that blocks share"),
        ({}, "float16", (*SHARED[1:], TILE), "in several tiles"),
        ({}, "float16", (*SHARED, TILE, VectorLanes("n")), "divides its axes"),
        ({}, "float16", (*SHARED, TensorTile("m", "m", "k")), "different axes of the result"),
        ({}, "float16", (*SHARED, TensorTile("m", "q", "k")), "no loop over axis 'q'"),
        ({}, "float16", (*SHARED, TensorTile("m", "n", "k", 0)), "below 1"),
        ({}, "float16", (*SHARED, TensorTile("m", "n", "k", 4, 4)), "leaves a single block"),
        ({}, "float16", (*SHARED, TensorTile("m", "n", "k", 2, 1, 1, 1, "wgmma")), "groups of 4 warps"),
        ({}, "float16", (*SHARED, TensorTile("m", "n", "k", 4, 1, 1, 1, "wgmma")), "64 rows and 8 columns"),
        ({}, "float16", (*SHARED, TensorTile("m", "n", "k", 1, 1, 1, 1, "wmma")), "no instruction 'wmma'"),
        ({"m": 60}, "tf32", (*SHARED, GROUP), "'wgmma' is not used for tf32"),
        ({}, "float16", (SHARED[0], SharedTile("A", 8, swizzle=True), *SWIZZLED[1:], TILE), "with a pad"),
        ({"n": 18}, "float16", (*SHARED, TILE, BulkCopies(2)), "is for products by 'wgmma'"),
        ({"m": 60}, "float16", (*SHARED, GROUP, BulkCopies(2), PipelineCopies(2)), "pipelined twice"),
        ({"m": 60}, "float16", (*SHARED, GROUP, BulkCopies(2, 1)), "keeps no stage"),
        ({"m": 60}, "float16", (*SHARED, GROUP, BulkCopies(2)), "rows that begin at multiples of 16 bytes"),
        (
            {"m": 60, "n": 32, "k": 80},
            "float16",
            (ReduceTile("k", 32), *SHARED[1:], GROUP, BulkCopies(2)),
            "single loop of whole tiles",
        ),
        (
            {"m": 600, "n": 600},
            "float16",
            (*SHARED, TensorTile("m", "n", "k", 8, 2, 1, 16, "wgmma"), LaunchBounds(2)),
            "needs 90 registers, and 1024 threads leave 64 to each",
        ),
        (
            {"m": 60, "n": 24},
            "float16",
            (*SHARED, TensorTile("m", "n", "k", 4, 1, 1, 1, "wgmma"), BulkCopies(2)),
            "not a tile",
        ),
    ],
)
def test_what_tensor_cores_cannot_compute_is_refused(
    sizes: dict[str, int], dtype: str, steps: tuple[Step, ...], why: str
) -> None:
    with pytest.raises(ScheduleError, match=why):
        gpu_program_of(program_of(dtype=dtype, sizes=sizes), Candidate(steps))


def test_the_space_has_tensor_cores_where_the_device_has_them() -> None:
    def found(gpu: Gpu, dtype: str) -> list[Any]:
        space = GpuSpace(program_of(dtype=dtype, sizes={"m": 64, "n": 64, "k": 64}), Target("", gpu.features))
        drawn: list[Candidate] = [space.start()]
        for number in range(6):
            try:
                drawn.append(space.sample(rng(number)))
            except PlanishError:
                continue
        return [step for candidate in drawn for step in candidate.steps if isinstance(step, TensorTile)]

    assert found(Gpu(tensor=True), "float16")
    assert not found(Gpu(tensor=True), "float32")
    assert not found(Gpu(), "float16")


def test_groups_of_warps_are_for_hopper() -> None:
    program = program_of(sizes={"m": 512, "n": 512, "k": 512})
    for groups, instruction in ((True, "wgmma"), (False, "mma")):
        gpu = Gpu(shared=227 << 10, tensor=True, groups=groups)
        space = GpuSpace(program, Target("", gpu.features))
        found = {step.instruction for step in space.start().steps if isinstance(step, TensorTile)}
        assert found == {instruction}
        assert Gpu.of(Target("", gpu.features)) == gpu
