"""The space of GPU schedules does what every space must do."""

from collections.abc import Mapping

import numpy as np
import pytest

from planish.core import Candidate, ScheduleError, Space, Step, Target, rng
from planish.levels.loops.gpu import space as space_module
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.kernels import GpuProgram, require_fit
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.gpu.steps import (
    GPU_STEPS,
    BlockTile,
    LaunchBounds,
    PackOperand,
    ReduceTile,
    SharedTile,
    VectorLanes,
)
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.testing.spaces import SpaceConformance

PROGRAM = parse("C[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(C[m,n])", {"m": 80, "n": 96, "k": 36})
GPU = Gpu(units=4, block_size=256, shared=8 << 10)
PROCESSOR = Gpu(units=2, block_size=256, shared=8 << 10, lanes=8, processor=True)


class TestGpuSpace(SpaceConformance):
    gpu = GPU

    def space(self) -> Space:
        return GpuSpace(PROGRAM, Target("a device", self.gpu.features))

    def known_steps(self) -> Mapping[str, type[Step]]:
        return GPU_STEPS

    def replay(self, space: Space, candidate: Candidate) -> None:
        del space
        require_fit(gpu_program_of(PROGRAM, candidate), self.gpu.block_size, self.gpu.shared)


class TestProcessorSpace(TestGpuSpace):
    gpu = PROCESSOR


def test_the_default_suits_the_device() -> None:
    gpu, processor = (GpuSpace(PROGRAM, Target("", each.features)).start() for each in (GPU, PROCESSOR))
    assert gpu_program_of(PROGRAM, gpu).kernels[0].block_size == 256
    assert gpu_program_of(PROGRAM, processor).kernels[0].block_size == 1
    assert any(isinstance(step, VectorLanes) for step in processor.steps)


def test_the_default_of_a_processor_has_vectors_of_channels() -> None:
    """Rows of 14 are no multiple of a vector; what the vectors read is packed."""
    shapes = {"I": (4, 14, 14), "W": (32, 4, 3, 3)}
    program = parse("O[k,y,x] += pad(I[c, y+r-1, x+s-1], 0) * W[k,c,r,s]", {}, shapes)
    gpu = Gpu(lanes=16, processor=True)
    start = GpuSpace(program.with_constants(["W"]), Target("", gpu.features)).start()
    tiles = BlockTile("x", 1, 7), BlockTile("k", 1, 16, 2)
    assert start.steps == (*tiles, PackOperand("W"), VectorLanes("k"))


@pytest.mark.parametrize("text", ["C[m,n] += A[m,k] * B[k,n]", "S[m] += X[m,n]; Y[m,n] = X[m,n] / S[m]"])
@pytest.mark.parametrize("size", [8, 64, 200])
def test_the_default_schedule_has_several_blocks_of_threads_for_all_work(text: str, size: int) -> None:
    program = parse(text, {"m": size, "n": size} | ({"k": size} if "k" in text else {}))
    space = GpuSpace(program, Target("", GPU.features))
    for kernel in space.kernels(space.start()).kernels:
        assert kernel.grid_size > 1 < kernel.block_size


def test_kernels_of_a_drawn_candidate_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Candidate]()

    def counted(program: Program, candidate: Candidate, block_size: int) -> GpuProgram:
        made.append(candidate)
        return gpu_program_of(program, candidate, block_size)

    monkeypatch.setattr(space_module, "gpu_program_of", counted)
    space = GpuSpace(PROGRAM, Target("", GPU.features))
    drawn = [space.sample(rng(0, number)) for number in range(4)]
    before = len(made)
    space.features(drawn)
    kernels = [*map(space.kernels, drawn)]
    assert len(made) == before
    assert kernels == [gpu_program_of(PROGRAM, candidate, GPU.flat_block_size) for candidate in drawn]


def test_a_candidate_that_is_illegal_is_refused_each_time() -> None:
    space = GpuSpace(PROGRAM, Target("", GPU.features))
    for _ in range(2):
        with pytest.raises(ScheduleError, match="axis 'k' is reduced"):
            space.kernels(Candidate((BlockTile("k", 4),)))


def columns(*steps: Step) -> dict[str, float]:
    space = GpuSpace(PROGRAM, Target("", GPU.features))
    (row,) = space.features([Candidate(steps)])
    return dict(zip(space.schema.names, row.tolist(), strict=True))


def test_features_show_how_threads_meet_in_memory() -> None:
    tiles = BlockTile("m", 8, 2), BlockTile("n", 8, 2)
    shared = SharedTile("A"), SharedTile("B")
    plain, staged = columns(*tiles), columns(*tiles, ReduceTile("k", 4), *shared)
    assert plain["shared bytes"] == plain["barriers passed by a thread"] == 0
    assert staged["barriers passed by a thread"] > 0
    assert staged["global elements touched by a thread"] < plain["global elements touched by a thread"]
    assert plain["threads of a block"] == staged["threads of a block"] == pytest.approx(np.log2(1 + 64))
    # A row of A has its elements in sequence, and threads beside each other read them so.
    assert staged["global elements in sequence"] > plain["global elements in sequence"]
    apart, beside = columns(BlockTile("m", 32)), columns(BlockTile("n", 32))
    assert beside["global elements in sequence"] > apart["global elements in sequence"]


def test_features_estimate_registers_and_what_they_leave_to_other_blocks() -> None:
    gpu = Gpu(shared=1 << 17, registers=1 << 16, threads=2048)
    space = GpuSpace(
        parse("C[m,n] += A[m,k] * B[k,n]", {"m": 512, "n": 512, "k": 64}), Target("", gpu.features)
    )

    def found(threads: int, elements: int, *more: Step) -> dict[str, float]:
        tiles = BlockTile("m", threads, elements), BlockTile("n", threads, elements)
        (row,) = space.features([Candidate((*tiles, *more))])
        return dict(zip(space.schema.names, row.tolist(), strict=True))

    small, large = found(16, 2), found(16, 8)
    assert small["registers of a thread"] < large["registers of a thread"]
    assert small["share of the threads at once"] > large["share of the threads at once"] > 0
    assert small["bytes spilled by a thread"] == large["bytes spilled by a thread"] == 0
    # With four blocks of 256 threads at once, a thread has 64 registers for its 100 sums.
    assert found(16, 10, LaunchBounds(4))["bytes spilled by a thread"] > 0


def test_features_of_a_device_are_read_back_from_a_target() -> None:
    assert Gpu.of(Target("", GPU.features | {"opencl"})) == GPU
    assert Gpu.of(Target("", PROCESSOR.features)) == PROCESSOR
