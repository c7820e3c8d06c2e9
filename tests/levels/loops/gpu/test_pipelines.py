"""Copies ahead of their use, several elements at once, and the order of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from planish.core import Candidate, ScheduleError, Step
from planish.levels.loops.gpu.copies import with_refs
from planish.levels.loops.gpu.dialect import CUDA, OPENCL
from planish.levels.loops.gpu.kernels import (
    Compute,
    GpuProgram,
    Item,
    Pipelined,
    Serial,
    computations,
    dynamic_bytes,
)
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.gpu.source import kernel_source
from planish.levels.loops.gpu.steps import (
    BlockTile,
    LaunchBounds,
    PipelineCopies,
    RasterOrder,
    ReduceTile,
    SharedTile,
    SplitReduction,
)
from planish.levels.loops.ir.tree import Ref
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.testing.gpu_interpreter import execute
from planish.levels.loops.testing.interpreter import TreeFault

MATMUL = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 13, "n": 16, "k": 22})
TILES = (BlockTile("m", 2, 2), BlockTile("n", 2, 4), ReduceTile("k", 4))
SHARED = (SharedTile("A", pad=1), SharedTile("B"))


def wrong(program: Program, kernels: GpuProgram) -> str | None:
    """Describe what is wrong with kernels, by the interpreter and the reference."""
    inputs = make_inputs(program)
    found = execute(kernels, inputs)
    shaped = {name: found[name].reshape(program.type[name].shape) for name in program.outputs}
    return check(program, shaped, reference(program, inputs))


def pipelines(items: tuple[Item, ...]) -> Iterator[Pipelined]:
    for item in items:
        if isinstance(item, Pipelined):
            yield item
        elif isinstance(item, Serial):
            yield from pipelines(item.body)


@pytest.mark.parametrize("stages", [2, 3, 4, 9])
@pytest.mark.parametrize("shared", [SHARED, SHARED[:1]])
def test_tiles_are_copied_ahead(stages: int, shared: tuple[Step, ...]) -> None:
    kernels = gpu_program_of(MATMUL, Candidate((*TILES, *shared, PipelineCopies(stages))))
    (kernel,) = kernels.kernels
    (found,) = pipelines(kernel.body)
    assert found.stages == stages
    assert {b.name: b.size for b in kernel.shared}["A.packed"] == stages * 16
    assert wrong(MATMUL, kernels) is None


@pytest.mark.parametrize(
    ("text", "shapes", "steps"),
    [
        (
            "O[k,y,x] += pad(I[c, y + r - 1, x + s - 1], 0) * W[k,c,r,s]",
            {"I": (4, 6, 6), "W": (5, 4, 3, 3)},
            (BlockTile("k", 2), BlockTile("x", 2, 2), ReduceTile("c", 1), SharedTile("I"), SharedTile("W")),
        ),
        (
            "C[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(C[m,n])",
            {"A": (5, 24), "B": (24, 6)},
            (SplitReduction("k", 2, "blocks"), *TILES, *SHARED, RasterOrder(2)),
        ),
    ],
)
def test_other_programs_are_pipelined(
    text: str, shapes: dict[str, tuple[int, ...]], steps: tuple[Step, ...]
) -> None:
    program = parse(text, {}, shapes)
    kernels = gpu_program_of(program, Candidate((*steps, PipelineCopies(2))))
    assert any(list(pipelines(kernel.body)) for kernel in kernels.kernels)
    assert wrong(program, kernels) is None


def test_tiles_in_one_place_are_a_race() -> None:
    kernels = gpu_program_of(MATMUL, Candidate((*TILES, *SHARED, PipelineCopies(2))))
    (kernel,) = kernels.kernels

    def first_tile(item: Item) -> Item:
        if isinstance(item, Pipelined):

            def alike(ref: Ref) -> Ref:
                return replace(ref, strides=tuple(s for s in ref.strides if s[0] != item.tile))

            parts = (tuple(with_refs(each, alike) for each in part) for part in (item.copies, item.body))
            copies, body = parts
            return replace(item, copies=copies, body=body)
        return item

    body = tuple(map(first_tile, kernel.body))
    with pytest.raises(TreeFault, match=r"race for [AB]\.packed"):
        execute(replace(kernels, kernels=(replace(kernel, body=body),)), make_inputs(MATMUL))


def test_what_is_also_written_before_the_loop_has_no_tiles() -> None:
    parts = parse("O[r,a] = A[r,a]; O[r,b+3] = 2; Z[r,t] = O[r,t]", {"a": 3, "b": 2, "r": 3})
    steps = (BlockTile("r", 1, 2), BlockTile("a", 2, 1, 2), SharedTile("A", 8))
    assert wrong(parts, gpu_program_of(parts, Candidate(steps))) is None
    with pytest.raises(ScheduleError, match="no loop of the nest copies shared tiles alone"):
        gpu_program_of(parts, Candidate((*steps, PipelineCopies(2))))


def test_what_copies_nothing_is_not_pipelined() -> None:
    with pytest.raises(ScheduleError, match="no loop of the nest copies shared tiles"):
        gpu_program_of(MATMUL, Candidate((*TILES, PipelineCopies(2))))
    with pytest.raises(ScheduleError, match="too few stages"):
        gpu_program_of(MATMUL, Candidate((*TILES, *SHARED, PipelineCopies(1))))


def widths(program: Program, *steps: Step) -> dict[str, int]:
    """Find how many elements each copy to shared memory moves at once."""
    (kernel,) = gpu_program_of(program, Candidate(steps)).kernels
    shared = {b.name for b in kernel.shared}
    found = [each for each in computations(kernel.body) if each.leaf.target.buffer in shared]
    return {
        each.leaf.target.buffer: each.lanes[1] if each.lanes else 1
        for each in found
        if isinstance(each, Compute)
    }


@pytest.mark.parametrize(
    ("n", "pad", "expected"), [(16, 0, 4), (16, 4, 4), (16, 2, 2), (16, 1, 1), (14, 0, 2), (13, 0, 1)]
)
def test_neighbors_are_copied_at_once_where_they_are_aligned(n: int, pad: int, expected: int) -> None:
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 8, "n": n, "k": 24})
    steps = (BlockTile("m", 2, 2), BlockTile("n", 2, 8), ReduceTile("k", 8), SharedTile("B", pad))
    assert widths(program, *steps) == {"B.packed": expected}
    kernels = gpu_program_of(program, Candidate(steps))
    assert wrong(program, kernels) is None
    assert ("uint4 *" in kernel_source(kernels, OPENCL)) == (expected == 4)


@pytest.mark.parametrize("width", [1, 2, 3, 8, 50])
def test_bands_of_blocks_are_all_blocks(width: int) -> None:
    program = parse("C[b,m,n] += A[b,m,k] * B[b,k,n]", {"b": 2, "m": 10, "n": 9, "k": 3})
    steps = (BlockTile("b", 1), BlockTile("m", 2), BlockTile("n", 2), RasterOrder(width))
    kernels = gpu_program_of(program, Candidate(steps))
    (kernel,) = kernels.kernels
    order = [kernel.row_major(block) for block in range(kernel.grid_size)]
    assert sorted(order) == list(range(2 * 5 * 5))
    assert order[:2] == ([0, 1] if width == 1 else [0, 5])
    assert wrong(program, kernels) is None


def test_bounds_of_a_launch_are_for_cuda() -> None:
    kernels = gpu_program_of(MATMUL, Candidate((*TILES, LaunchBounds(3))))
    assert "__launch_bounds__(4, 3)" in kernel_source(kernels, CUDA)
    assert "reqd_work_group_size(4, 1, 1)" in kernel_source(kernels, OPENCL)


def test_much_shared_memory_is_asked_for_at_the_launch() -> None:
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 256, "n": 256, "k": 256})
    steps = (BlockTile("m", 16, 8), BlockTile("n", 16, 8), ReduceTile("k", 32), *SHARED)
    small, large = (
        gpu_program_of(program, Candidate((*steps, *more))) for more in ((), (PipelineCopies(3),))
    )
    assert dynamic_bytes(small.kernels[0]) == 0
    assert dynamic_bytes(large.kernels[0]) == 3 * 4 * (32 * 129 + 32 * 128)
    assert "extern __shared__" in kernel_source(large, CUDA)
    assert "p_shared" not in kernel_source(small, CUDA)
