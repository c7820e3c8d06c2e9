"""Blocks and threads compute what the program says, without races; the interpreter sees when they do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from levels.loops.random_programs import programs
from planish.core import Candidate, PlanishError, ScheduleError, Step, Target, TargetError, rng
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.dialect import CUDA, OPENCL
from planish.levels.loops.gpu.export import grids_text
from planish.levels.loops.gpu.kernels import (
    Barrier,
    Compute,
    Cooperative,
    GpuKernel,
    GpuProgram,
    Item,
    Serial,
    Single,
    computations,
    require_fit,
)
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.gpu.source import kernel_source
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.gpu.steps import (
    BlockTile,
    PackOperand,
    ReduceTile,
    SharedTile,
    SplitReduction,
    UnrollReduction,
    VectorLanes,
)
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.testing.gpu_interpreter import execute
from planish.levels.loops.testing.interpreter import TreeFault
from planish.levels.loops.workloads import winograd
from planish.network.operators.winograd import matrices, transform_weights

MATMUL = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 13, "n": 11, "k": 10})
TILED = (
    BlockTile("m", 2, 2, 2),
    BlockTile("n", 2, 4),
    ReduceTile("k", 4),
    SharedTile("A", pad=1),
    SharedTile("B"),
    VectorLanes("n"),
    UnrollReduction("k", 2),
)
GPU = Target("gpu", Gpu(block_size=64, shared=1 << 14).features)
PROCESSOR = Target("processor", Gpu(block_size=64, shared=1 << 14, lanes=8, processor=True).features)


def wrong(program: Program, kernels: GpuProgram) -> str | None:
    """Describe what is wrong with kernels, by the interpreter and the reference."""
    inputs = make_inputs(program)
    found = execute(kernels, inputs)
    shaped = {name: found[name].reshape(program.type[name].shape) for name in program.outputs}
    return check(program, shaped, reference(program, inputs))


@pytest.mark.parametrize("steps", [(), TILED, TILED[:2], TILED[:4], (*TILED[:3], TILED[4])])
def test_a_product_is_computed_with_tiles_that_do_not_divide_it(steps: tuple[Step, ...]) -> None:
    assert wrong(MATMUL, gpu_program_of(MATMUL, Candidate(steps))) is None


def computed(items: tuple[Item, ...]) -> list[Compute]:
    """List computations of single elements or vectors."""
    return [each for each in computations(items) if isinstance(each, Compute)]


CONVOLUTION = "O[k,y,x] += pad(I[c, 2*y + r - 1, 2*x + s - 1], 0) * W[k,c,r,s]"


@pytest.mark.parametrize(
    ("text", "sizes", "shapes", "steps"),
    [
        (CONVOLUTION, {}, {"I": (3, 9, 9), "W": (5, 3, 3, 3)}, (BlockTile("k", 2, 2), BlockTile("x", 2))),
        (
            CONVOLUTION,
            {},
            {"I": (3, 9, 9), "W": (5, 3, 3, 3)},
            (BlockTile("k", 2), BlockTile("x", 2, 2), ReduceTile("c", 1), SharedTile("I"), SharedTile("W")),
        ),
        (
            "O[c,y,x] += pad(I[c, y + r - 1, x + s - 1], 0) * W[c,r,s]",
            {},
            {"I": (4, 6, 6), "W": (4, 3, 3)},
            (BlockTile("c", 1), BlockTile("y", 4), BlockTile("x", 2, 2), SharedTile("I")),
        ),
        (
            "O[c,y,x] += pad(I[c, r + 2*y, s + x - 1], 0); Z[c,y,x] = O[c,y,x]",
            {"c": 3, "y": 5, "x": 4, "r": 3, "s": 3},
            {"I": (3, 11, 4)},
            (BlockTile("c", 2, 2), BlockTile("y", 1, 2), BlockTile("x", 1, 2, 2), SharedTile("I")),
        ),
        ("C[b,m,n] += A[b,m,k] * B[b,k,n]", {"b": 3, "m": 5, "n": 6, "k": 7}, {}, TILED),
        ("C[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(C[m,n] + b[n])", {"m": 9, "n": 8, "k": 7}, {}, TILED),
        ("S[m] max= X[m,n]", {"m": 9, "n": 20}, {}, (BlockTile("m", 4, 2),)),
        ("Y[m,n] = exp(X[m,n]) * v[n]", {"m": 5, "n": 19}, {}, (BlockTile("n", 4, 4), VectorLanes("n"))),
    ],
)
def test_other_programs_are_computed(
    text: str, sizes: dict[str, int], shapes: dict[str, tuple[int, ...]], steps: tuple[Step, ...]
) -> None:
    program = parse(text, sizes, shapes)
    assert wrong(program, gpu_program_of(program, Candidate(steps))) is None


@settings(deadline=None, max_examples=examples(12))
@given(programs(points=400, dtypes=("float32", "float64")), st.integers(0, 99))
def test_what_the_space_draws_computes_what_the_program_says(program: Program, seed: int) -> None:
    space = GpuSpace(program, GPU if seed % 2 else PROCESSOR)
    for number in range(3):
        try:
            candidate = space.sample(rng(seed, number)) if number else space.start()
        except ScheduleError:
            continue
        assert wrong(program, space.kernels(candidate)) is None, candidate


@pytest.mark.parametrize("over", ["threads", "blocks"])
@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("S[m] max= X[m,n]", (BlockTile("m", 2),)),
        ("S[] += X[m,n]", ()),
        ("S[m] += exp(X[m,n]); Y[m,n] = exp(X[m,n]) / S[m]", (BlockTile("m", 1),)),
        (
            "C[m,p] += A[m,n] * B[n,p]; D[m,p] = relu(C[m,p])",
            (BlockTile("m", 2, 2), ReduceTile("n", 3), SharedTile("A")),
        ),
    ],
)
def test_a_reduction_is_divided_among_threads_or_blocks(
    text: str, steps: tuple[Step, ...], over: str
) -> None:
    program = parse(text, {"m": 5, "n": 24, **({"p": 7} if "B[" in text else {})})
    kernels = gpu_program_of(program, Candidate((SplitReduction("n", 4, over), *steps)))
    assert wrong(program, kernels) is None
    if over == "threads" and len(steps) == 1:
        assert kernels.kernels[0].block_size == 4 * steps[0].threads  # pyright: ignore[reportAttributeAccessIssue]


def test_a_reduction_is_divided_evenly() -> None:
    with pytest.raises(ScheduleError, match="axis 'k' of 10 elements is not divided into 3 parts"):
        gpu_program_of(MATMUL, Candidate((SplitReduction("k", 3),)))
    with pytest.raises(ScheduleError, match="does not reduce axis 'm'"):
        gpu_program_of(MATMUL, Candidate((SplitReduction("m", 13),)))


def test_a_padded_copy_is_spread_over_all_its_elements() -> None:
    program = parse(CONVOLUTION, {}, {"I": (4, 9, 9), "W": (5, 4, 3, 3)})
    kernels = gpu_program_of(program, Candidate())
    copies = [kernel for kernel in kernels.kernels if kernel.outputs == ("I.padded",)]
    # All but the rows and columns that no window reaches.
    assert max(kernel.grid_size * kernel.block_size for kernel in copies) >= 4 * 9 * 9
    assert all(item.lanes is None for kernel in copies for item in computed(kernel.body))
    assert wrong(program, kernels) is None


def test_what_is_left_of_a_vector_is_computed_element_by_element() -> None:
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 3, "n": 7, "k": 2})
    steps = (BlockTile("m", 1, 4), BlockTile("n", 1, 4, 2), VectorLanes("n"))
    kernels = gpu_program_of(program, Candidate(steps))
    lanes = [each.lanes for kernel in kernels.kernels for each in computed(kernel.body)]
    assert {width for found in lanes if found for width in found[1:]} == {4}
    assert None in lanes
    assert wrong(program, kernels) is None


@pytest.mark.parametrize("constants", [(), ("W",)])
def test_output_channels_are_vectors_where_weights_are_packed(constants: tuple[str, ...]) -> None:
    program = parse(CONVOLUTION, {}, {"I": (3, 9, 9), "W": (20, 3, 3, 3)}).with_constants(constants)
    tiles = BlockTile("k", 1, 16), BlockTile("x", 1, 2)
    kernels = gpu_program_of(program, Candidate((*tiles, PackOperand("W"), VectorLanes("k"))))
    main = next(kernel for kernel in kernels.kernels if "O" in kernel.outputs)
    sums = [each for each in computed(main.body) if each.leaf.reduce]
    assert {each.lanes and each.lanes[1] for each in sums} == {16}
    assert [kernel.outputs for kernel in kernels.ahead] == [("W.packed",)] * len(constants)
    assert wrong(program, kernels) is None
    with pytest.raises(ScheduleError, match="tensor 'W' is packed already"):
        gpu_program_of(program, Candidate((*tiles, PackOperand("W"), SharedTile("W"))))


def test_functions_take_no_long_vectors() -> None:
    tiles = BlockTile("m", 1, 16, 2), VectorLanes("m")
    widths = [
        {each.lanes[1] for kernel in kernels for each in computed(kernel.body) if each.lanes}
        for value in ("x[m] * v[m] + 1", "exp(x[m]) * v[m]")
        for kernels in [gpu_program_of(parse(f"y[m] = {value}", {"m": 64}), Candidate(tiles)).kernels]
    ]
    assert widths == [{16}, set()]


def test_results_are_in_registers_and_tiles_are_shared() -> None:
    (kernel,) = gpu_program_of(MATMUL, Candidate(TILED)).kernels
    assert (kernel.grid_size, kernel.block_size) == (2 * 2, 2 * 2)
    assert [(b.name, b.size) for b in kernel.private] == [("C_1", 4 * 4)]
    # Four rows of eight elements, with one free behind each.
    assert [(b.name, b.size) for b in kernel.shared] == [("A.packed", 4 * (8 + 1)), ("B.packed", 4 * 8)]
    text = grids_text(gpu_program_of(MATMUL, Candidate(TILED)))
    assert "4 blocks (m:8: 2, n:8: 2) of 4 threads (m:2: 2, n:4: 2)" in text


# What must not be


@pytest.mark.parametrize(
    ("second", "sizes"),
    [("D[m,p] += C[m,n] * E[n,p]", {"p": 6}), ("D[x,y] = relu(C[x,y])", {}), ("D[n] max= C[m,n]", {})],
)
def test_what_another_kernel_reads_is_summed_in_registers(second: str, sizes: dict[str, int]) -> None:
    program = parse(f"C[m,n] += A[m,k] * B[k,n]; {second}", {"m": 20, "n": 18, "k": 7, **sizes})
    kernels = gpu_program_of(program, Candidate(TILED))
    assert wrong(program, kernels) is None
    (product,) = (kernel for kernel in kernels.kernels if kernel.shared)
    summed = [each.leaf for each in computed(product.body) if each.leaf.reduce]
    assert summed
    assert {leaf.target.buffer for leaf in summed} <= {buffer.name for buffer in product.private}


def test_winograds_algorithm_is_a_convolution_by_kernels_of_many_threads() -> None:
    program = winograd(6, 3, 5)
    space = GpuSpace(program, GPU)
    result, _, image = (np.array(rows, np.float32) for rows in matrices(4))
    weights = rng(0).standard_normal((5, 3, 3, 3)).astype(np.float32)
    points = transform_weights(weights, 4).transpose(0, 2, 1)
    inputs = {"A": result, "B": image, "U": points, "I": rng(1).standard_normal((3, 6, 6)).astype(np.float32)}
    kernels = space.kernels(space.start())
    found = execute(kernels, inputs)["O"].reshape(5, 8, 8)
    direct = parse(
        "O[k,y,x] += pad(I[c, y + r - 1, x + s - 1], 0) * W[k,c,r,s]",
        {},
        {"I": (3, 6, 6), "W": weights.shape},
    )
    right = reference(direct, {"I": inputs["I"], "W": weights})["O"]
    np.testing.assert_allclose(found[:, :6, :6], right, atol=1e-4)
    assert all(kernel.grid_size * kernel.block_size > 8 for kernel in kernels.kernels)


def _without(items: tuple[Item, ...], kind: type[Item]) -> tuple[Item, ...]:
    kept = (item for item in items if not isinstance(item, kind))
    return tuple(
        replace(item, body=_without(item.body, kind)) if isinstance(item, Serial) else item for item in kept
    )


def _changed(kernels: GpuProgram, body: tuple[Item, ...]) -> GpuProgram:
    return replace(kernels, kernels=(replace(kernels.kernels[0], body=body),))


def test_a_missing_barrier_is_a_race() -> None:
    kernels = gpu_program_of(MATMUL, Candidate(TILED))
    with pytest.raises(TreeFault, match=r"race for [AB]"):
        execute(_changed(kernels, _without(kernels.kernels[0].body, Barrier)), make_inputs(MATMUL))


def test_a_missing_condition_leaves_a_buffer() -> None:
    kernels = gpu_program_of(MATMUL, Candidate(TILED))
    assert any(each.conditions for each in computed(kernels.kernels[0].body))

    def unguarded(items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(
            replace(item, body=unguarded(item.body))
            if isinstance(item, Serial | Cooperative)
            else replace(item, conditions=())
            if not isinstance(item, Barrier)
            else item
            for item in items
        )

    with pytest.raises(TreeFault, match="is outside its"):
        execute(_changed(kernels, unguarded(kernels.kernels[0].body)), make_inputs(MATMUL))


def test_a_reduced_axis_has_no_threads() -> None:
    with pytest.raises(ScheduleError, match="axis 'k' is reduced"):
        gpu_program_of(MATMUL, Candidate((BlockTile("k", 4),)))
    with pytest.raises(ScheduleError, match="no loop over axis 'q'"):
        gpu_program_of(MATMUL, Candidate((BlockTile("q", 4),)))


def test_a_reduction_of_another_nest_is_not_bound_to_threads() -> None:
    soft = parse("S[m] += exp(X[m,n]); Y[m,n] = exp(X[m,n]) / S[m]", {"m": 8, "n": 16})
    with pytest.raises(ScheduleError):
        gpu_program_of(soft, Candidate((BlockTile("m", 1), BlockTile("n", 4, nest="Y"))))
    assert wrong(soft, gpu_program_of(soft, Candidate((BlockTile("m", 4),)))) is None


def test_what_the_device_lacks_is_refused_before_the_launch() -> None:
    kernels = gpu_program_of(MATMUL, Candidate(TILED))
    require_fit(kernels, 4, 4 * (36 + 32))
    with pytest.raises(TargetError, match="a block has 4 threads, the device allows 2"):
        require_fit(kernels, 2, 1 << 20)
    with pytest.raises(TargetError, match="a block shares 272 bytes, the device has 100"):
        require_fit(kernels, 4, 100)


def test_threads_that_miss_a_barrier_are_a_fault() -> None:
    kernel = gpu_program_of(MATMUL, Candidate(TILED)).kernels[0]
    loop, _ = kernel.threads[-1]
    only = Single((loop,), (Barrier(),))
    kernels = _changed(gpu_program_of(MATMUL, Candidate(TILED)), (only, *kernel.body))
    with pytest.raises(TreeFault, match=r"wait at a barrier where others end|race"):
        execute(kernels, make_inputs(MATMUL))


# Source


def test_no_kernels_name_begins_with_that_of_another() -> None:
    text = "; ".join(f"S{i}[m{i}] += X[m{i},n]" for i in range(11))
    kernels = gpu_program_of(
        parse(text, {"n": 3, **{f"m{i}": 2 + i for i in range(11)}}), Candidate()
    ).kernels
    names = [kernel.name for kernel in kernels]
    assert len(names) > 10
    assert not any(one != other and one.startswith(other) for one in names for other in names)


def test_both_dialects_have_the_same_structure() -> None:
    kernels = gpu_program_of(MATMUL, Candidate(TILED))
    opencl, cuda = kernel_source(kernels, OPENCL), kernel_source(kernels, CUDA)
    assert opencl.count("barrier(CLK_LOCAL_MEM_FENCE);") == cuda.count("__syncthreads();") > 0
    assert "__local float t_A_packed[36]" in opencl
    assert "__shared__ __align__(16) float t_A_packed[36]" in cuda
    assert "float4" in opencl


def test_the_untuned_program_has_a_thread_for_each_element() -> None:
    kernel = gpu_program_of(MATMUL, Candidate()).kernels[0]
    assert isinstance(kernel, GpuKernel)
    assert kernel.flat
    assert kernel.grid_size == 1
    assert kernel.block_size == 13 * 11
    with pytest.raises(PlanishError, match="expected a step of a GPU schedule"):
        gpu_program_of(MATMUL, Candidate((Step(),)))
