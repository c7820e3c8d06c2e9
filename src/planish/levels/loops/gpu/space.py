"""Space of GPU schedules, derived from the program: tiles of axes, what is shared, vectors, and unrolling.

AutoTVM's templates for GPUs are written by hand for each operator. Here each axis of the main nest's result
has a tile of blocks, threads and elements, each reduction a tile, and each operand may be shared by the
threads of a block. A candidate has one alternative of each knob. Those whose threads would meet, or that
need more threads or memory than the device has, are not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, TypeVar

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    FeatureSchema,
    PlanishError,
    ScheduleError,
    SearchContext,
    Space,
    Step,
    Target,
)
from planish.levels.loops.gpu.devices import Gpu, kind_and_name
from planish.levels.loops.gpu.kernels import GpuProgram, require_fit
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.gpu.statements import accumulated
from planish.levels.loops.gpu.steps import (
    BlockTile,
    BulkCopies,
    GpuStep,
    LaunchBounds,
    PackOperand,
    PipelineCopies,
    RasterOrder,
    ReduceTile,
    SharedTile,
    SplitReduction,
    TensorTile,
    UnrollReduction,
    VectorLanes,
)
from planish.levels.loops.gpu.tensor import GROUP, GROUP_WARPS, NARROW
from planish.levels.loops.ir.schedule import graph_of, plain_axis
from planish.levels.loops.lang.program import TF32, Program

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

THREADS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ELEMENTS = (1, 2, 4, 6, 8)
LANES = 16
"""Elements of float32 in the widest vector of a processor."""
ROWS = {16: 8, 8: 6}
"""Lanes to the rows of a processor's default register tile at most: for 32 registers, or 16."""
REPEATS = (1, 2, 4)
REDUCTIONS = (4, 8, 16, 32, 64, 128)
PADS = (0, 1, 4, 8)
UNROLLS = (2, 4, 8, 16)
PARTS = (2, 4, 8, 16, 32, 64, 128, 256)
FEW_RESULTS = 2048
"""Results for each unit of a device below which a reduction is often divided."""
REGISTERS_MAX, VECTOR_REGISTERS_MAX = 256, 512
"""Elements of the result that a thread holds at most: on GPUs, and in the vectors of processors."""
STAGES, BULK_STAGES = (2, 3, 4), (3, 4, 5, 6)
BANDS = (2, 4, 8, 16)
RESIDENT = (1, 2, 3, 4)
WARPS = (1, 2, 4)
FRAGMENTS = (1, 2, 4, 8)
ACROSS = (2, 4, 8, 16, 24, 32)
"""Fragments along the columns that a group of warps computes at once."""
DEPTHS = (16, 32, 64)
"""Tiles of a reduction by tensor cores."""
_DRAWS = 60
"""Candidates that are drawn until one is legal."""
_KERNELS = 256
"""Candidates whose kernels are kept: what is drawn is described or compiled next."""

_KNOBS: Mapping[type[GpuStep], str] = {
    VectorLanes: "vector",
    UnrollReduction: "unroll",
    SplitReduction: "split",
    TensorTile: "tensor",
    PipelineCopies: "pipeline",
    BulkCopies: "pipeline",
    RasterOrder: "raster",
    LaunchBounds: "bounds",
}
"""Types of steps that a candidate has at most one of, to their knobs."""
Choice = Mapping[str, GpuStep | None]
"""Knob to the step that was chosen; None for none."""
Option = TypeVar("Option")
_Draw = Callable[["Generator"], GpuStep | None]


class GpuSpace(Space):
    """Candidates of GPU steps for one program.

    Args:
        program: what is scheduled.
        target: a device.
    """

    def __init__(self, program: Program, target: Target) -> None:
        self._program, self._gpu = program, Gpu.of(target)
        self._emulated = "opencl" in target.features
        self._arch = kind_and_name(target)[1] if "cuda" in target.features else ""
        self.conditions: Mapping[str, str | int] = {
            "element type": program.arithmetic,
            "device": "processor" if self._gpu.processor else "gpu",
        }
        inner = accumulated(program)
        graph = graph_of(inner)
        self._nest = graph.nests[graph.main]
        self._size = inner.size
        self._results = [axis for axis in self._nest.axes if axis not in self._nest.reduced]
        self._reduced = [axis for axis in self._nest.axes if axis in self._nest.reduced]
        ways = [operand.access.tensor for operand in self._nest.operands]
        self._shareable = [tensor for tensor in ways if ways.count(tensor) == 1]
        last = self._nest.statement.target.index[-1] if self._nest.statement.target.index else None
        axis = plain_axis(last) if last else None
        self._vector = axis if axis in self._results else None
        last = [self._vector] if self._vector else []
        self._lanes = self._lane_axes() if self._gpu.processor else last
        self._products = self._product_axes() if self._gpu.tensor else []
        types = {kind.dtype for _, kind in program.types}
        self._groups = self._gpu.groups and bool(self._products) and TF32 not in types
        self._knobs = dict(self._all_knobs())
        self._legal = lru_cache(maxsize=4096)(self._is_legal)
        self._kernels = lru_cache(maxsize=_KERNELS)(self._make_kernels)

    # Knobs

    def _all_knobs(self) -> Iterator[tuple[str, _Draw]]:
        for axis in self._results:
            yield f"tile {axis}", lambda rng, a=axis: self._tile(a, rng)
        for axis in self._reduced:
            yield f"reduce {axis}", lambda rng, a=axis: self._reduce(a, rng)
        for tensor in self._shareable:
            yield f"share {tensor}", lambda rng, t=tensor: self._share(t, rng)
        if self._lanes:
            yield "vector", self._vectors
        if self._reduced:
            yield "unroll", self._unroll
            yield "split", self._split
        if self._gpu.processor:
            for tensor in self._shareable:
                yield f"pack {tensor}", lambda rng, t=tensor: self._pack(t, rng)
        if self._products:
            yield "tensor", self._tensor
        if not self._gpu.processor:
            yield "pipeline", self._pipeline
            yield "raster", lambda rng: RasterOrder(_pick(rng, BANDS)) if rng.random() < 0.3 else None
            yield "bounds", lambda rng: LaunchBounds(_pick(rng, RESIDENT)) if rng.random() < 0.3 else None

    def _lane_axes(self) -> list[str]:
        """List the axes of vectors: the result's last one, and those along which operands can be packed."""

        def suits(axis: str) -> bool:
            moving = [
                o.access for o in self._nest.operands if any(axis in dict(i.terms) for i in o.access.index)
            ]
            return bool(moving) and all(a.tensor in self._shareable for a in moving)

        return [axis for axis in self._results if axis == self._vector or (self._reduced and suits(axis))]

    def _vectors(self, rng: Generator) -> VectorLanes | None:
        if rng.random() >= self._often(0.9):
            return None
        return VectorLanes(self._lanes[0] if len(self._lanes) == 1 else _pick(rng, self._lanes))

    def _pack(self, tensor: str, rng: Generator) -> PackOperand | None:
        # A constant is packed once, and any other tensor in each call.
        share = 0.5 if tensor in self._program.constants else 0.2
        return PackOperand(tensor) if rng.random() < share else None

    def _often(self, share: float) -> float:
        """Return a share for processors, and its complement for GPUs."""
        return share if self._gpu.processor else 1 - share

    def _product_axes(self) -> list[tuple[str, str, str]]:
        """List the axes of a product that tensor cores compute: rows, columns and reduction.

        Either operand may be the rows'; the first alternative has neighboring results in columns.
        """
        types = self._program.type
        narrow = {types[o.access.tensor].dtype for o in self._nest.operands if o.access.tensor in types}
        if len(self._nest.operands) != 2 or len(narrow) != 1 or not narrow <= {*NARROW}:
            return []
        one, other = ({a for i in o.access.index for a, _ in i.terms} for o in self._nest.operands)

        def longest(axes: Sequence[str]) -> str | None:
            return max(axes, key=lambda axis: (axis == self._vector, self._size[axis]), default=None)

        first, second = (
            longest([a for a in self._results if a in x - y]) for x, y in ((one, other), (other, one))
        )
        depth = max((a for a in self._reduced if a in one & other), key=self._size.__getitem__, default=None)
        if first is None or second is None or depth is None:
            return []
        pairs = [(first, second), (second, first)]
        return [(*pair, depth) for pair in sorted(pairs, key=lambda pair: pair[1] != self._vector)]

    def _tensor(self, rng: Generator) -> TensorTile | None:
        if rng.random() < 0.2:
            return None
        axes = self._products[int(rng.random() < 0.2)]
        if self._groups and rng.random() < 0.6:
            rows, columns = _pick(rng, (GROUP_WARPS, 2 * GROUP_WARPS)), _pick(rng, WARPS[:2])
            return TensorTile(*axes, rows, columns, _pick(rng, FRAGMENTS[:2]), _pick(rng, ACROSS), GROUP)
        return TensorTile(
            *axes, _pick(rng, WARPS), _pick(rng, WARPS), _pick(rng, FRAGMENTS), _pick(rng, FRAGMENTS)
        )

    def _pipeline(self, rng: Generator) -> PipelineCopies | BulkCopies | None:
        if rng.random() < 0.5:
            return None
        if self._groups and rng.random() < 0.7:
            return BulkCopies(_pick(rng, BULK_STAGES), _pick(rng, (0, 1)))
        return PipelineCopies(_pick(rng, STAGES))

    def _tile(self, axis: str, rng: Generator) -> BlockTile | None:
        if rng.random() < 0.05:
            return None
        extent = self._size[axis]
        # A processor executes the threads of a block one after the other, and has vectors for that.
        alone = rng.random() < self._often(0.85)
        threads = (
            1 if alone else _pick(rng, [n for n in THREADS if n < 2 * extent and n <= self._gpu.block_size])
        )
        fit = [n for n in ELEMENTS if n <= extent]
        if self._gpu.processor:
            # What divides the axis leaves no shorter tile.
            fit += [n for n in range(3, LANES + 1) if n not in fit and extent % n == 0]
        elements = _pick(rng, fit)
        repeats = _pick(rng, [n for n in REPEATS if n * elements * threads < 2 * extent] or [1])
        return BlockTile(axis, threads, elements, repeats)

    def _reduce(self, axis: str, rng: Generator) -> ReduceTile | None:
        fit = [n for n in REDUCTIONS if n < self._size[axis]]
        if not fit or rng.random() < self._often(0.6):
            return None
        return ReduceTile(axis, _pick(rng, fit))

    def _share(self, tensor: str, rng: Generator) -> SharedTile | None:
        if rng.random() < self._often(0.8):
            return None
        if not self._gpu.processor and rng.random() < 0.3:
            return SharedTile(tensor, swizzle=True)
        return SharedTile(tensor, _pick(rng, PADS))

    def _unroll(self, rng: Generator) -> UnrollReduction | None:
        axis = self._reduced[-1]
        fit = [n for n in UNROLLS if n <= self._size[axis]]
        return None if not fit or rng.random() < 0.4 else UnrollReduction(axis, _pick(rng, fit))

    def _split(self, rng: Generator) -> SplitReduction | None:
        axis = max(self._reduced, key=lambda axis: self._size[axis])
        fit = [n for n in PARTS if n < self._size[axis] and self._size[axis] % n == 0]
        # Worth it where there are few results.
        few = prod(self._size[a] for a in self._results) < FEW_RESULTS * self._gpu.units
        if not fit or rng.random() < (self._often(0.7) if few else 0.9):
            return None
        return SplitReduction(axis, _pick(rng, fit), "threads" if rng.random() < 0.6 else "blocks")

    # Space

    def start(self) -> Candidate:
        """Return the default schedule; the untuned program where the template has none."""
        for tiles in self._usual():
            candidate = Candidate(tuple(tiles))
            if self._legal(candidate):
                return candidate
        return Candidate()

    def _usual(self) -> Iterator[Sequence[Step]]:
        vector = self._vector or (self._results[-1] if self._results else "")
        reduces, others = bool(self._reduced), [axis for axis in self._results if axis != vector]
        if not vector:
            return
        if self._gpu.processor:
            yield from self._usual_of_processors(vector)
            return
        shared = [SharedTile(tensor) for tensor in self._shareable]
        for axes in self._products:
            rest = [ReduceTile(axis, 1) for axis in self._reduced if axis != axes[2]]
            padded = [SharedTile(tensor, 8) for tensor in self._shareable]
            tile = ReduceTile(axes[2], DEPTHS[1])
            if self._groups:
                for copies in (BulkCopies(4), PipelineCopies(4)):
                    yield [*rest, tile, *padded, TensorTile(*axes, 8, 1, 1, 16, GROUP), copies]
            for size in ((2, 2, 4, 4), (2, 2, 2, 2), (1, 1, 1, 2)):
                yield [*rest, tile, *padded, TensorTile(*axes, *size), PipelineCopies(3)]
                yield [*rest, tile, *padded, TensorTile(*axes, *size)]
        if reduces and others:
            longest = max(self._reduced, key=lambda axis: self._size[axis])
            rest = [ReduceTile(axis, 1) for axis in self._reduced if axis != longest]
            tiles = [self._tile_within(others[-1], 16, 4), self._tile_within(vector, 16, 4)]
            for size in (16, 8, 4):
                tile = [ReduceTile(longest, size)] if size < self._size[longest] else []
                yield [*tiles, *rest, *tile, *shared]
                yield [*tiles, *tile, *shared]
            yield tiles
        yield [self._tile_within(vector, min(256, self._gpu.block_size), 1)]

    def _tile_within(self, axis: str, threads: int, elements: int) -> BlockTile:
        """Make a tile shorter until an axis has several blocks: sums of a single one are in no registers."""
        while threads * elements >= self._size[axis] and threads > 1:
            threads, elements = (threads, elements // 2) if elements > 1 else (threads // 2, 1)
        return BlockTile(axis, threads, elements)

    def _usual_of_processors(self, vector: str) -> Iterator[Sequence[Step]]:
        """Yield a register tile of vectors, along the axis that they divide best, by rows of another axis."""
        lanes = max(1, min(LANES, self._gpu.lanes))
        axes = self._lanes or [vector]
        for axis in sorted(axes, key=lambda a: (self._size[a] % lanes > 0, a != vector)):
            width = max(n for n in (1, 2, 4, 8, LANES) if n <= min(lanes, self._size[axis]))
            others = [a for a in self._results if a != axis]
            others.sort(key=lambda a: a == vector)
            most = ROWS.get(lanes, 4)
            rows = max(n for n in range(1, most + 1) if self._size[others[-1]] % n == 0) if others else 1
            rows = rows if 2 * rows >= most else most
            packed = self._packed({"vector": VectorLanes(axis)})
            packs = [step for step in packed.values() if step is not None]
            if others and self._reduced:
                tile = BlockTile(axis, 1, width, 2)
                yield [BlockTile(others[-1], 1, rows), tile, *packs, VectorLanes(axis)]
            yield [BlockTile(axis, 1, width, 2), *packs, VectorLanes(axis)]
            yield [BlockTile(axis, 1, width), *packs, VectorLanes(axis)]

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> tuple[Candidate, ...]:
        """Return what is recommended, and the default schedule."""
        warm = [candidate for candidate in context.warm_start if self._legal(candidate)]
        return (*warm, self.start())

    def focused(self, candidates: Sequence[Candidate]) -> GpuSpace:
        """Return this space: all draws are alike."""
        del candidates
        return self

    def sample(self, rng: Generator) -> Candidate:
        """Draw each knob; raises ScheduleError where no legal candidate was found."""
        return self._first(lambda: {name: draw(rng) for name, draw in self._knobs.items()})

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Draw one knob, or two, anew."""
        old, names = self._choice(candidate), list(self._knobs)
        if not names:
            return candidate

        def changed() -> Choice:
            chosen = [_pick(rng, names) for _ in range(1 + int(rng.integers(2)))]
            return {**old, **{name: self._knobs[name](rng) for name in chosen}}

        return self._first(changed, candidate)

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Exchange knobs at random; a child that is not legal is its parent."""
        one, other = self._choice(a), self._choice(b)
        first, second = dict(one), dict(other)
        for name in self._knobs:
            if rng.random() < 0.5:
                first[name], second[name] = other.get(name), one.get(name)
        children = self._made(first), self._made(second)
        return (
            children[0] if self._legal(children[0]) else a,
            children[1] if self._legal(children[1]) else b,
        )

    # Candidates

    def _first(self, draw: Callable[[], Choice], old: Candidate | None = None) -> Candidate:
        for _ in range(_DRAWS):
            candidate = self._made(draw())
            if candidate != old and self._legal(candidate):
                return candidate
        if old is not None:
            return old
        raise ScheduleError("no legal schedule was found", "Draw again.")

    def _made(self, choice: Choice) -> Candidate:
        """Make a candidate; what one knob makes pointless in another is left out."""
        tensor = choice.get("tensor")
        if isinstance(tensor, TensorTile):
            choice = {**choice, **self._around_tensor(tensor, choice)}
        choice = {**choice, **self._packed(choice)}
        pipeline = choice.get("pipeline")
        in_groups = isinstance(tensor, TensorTile) and tensor.instruction == GROUP
        if isinstance(pipeline, BulkCopies) and not in_groups:
            choice = {**choice, "pipeline": PipelineCopies(min(pipeline.stages, STAGES[-1]))}
        if not any(isinstance(step, SharedTile) for step in choice.values()):
            choice = {**choice, "pipeline": None}
        return Candidate(tuple(step for name in self._knobs if (step := choice.get(name)) is not None))

    def _packed(self, choice: Choice) -> Choice:
        """Pack the operands that have no neighbors along a vector; those that are packed are not shared."""
        vector = choice.get("vector")
        if not self._gpu.processor:
            return {}
        found = {f"pack {tensor}": choice.get(f"pack {tensor}") for tensor in self._shareable}
        if isinstance(vector, VectorLanes) and vector.axis != self._vector:
            for operand in self._nest.operands:
                if any(vector.axis in dict(index.terms) for index in operand.access.index):
                    found[f"pack {operand.access.tensor}"] = PackOperand(operand.access.tensor)
        unshared = [f"share {tensor}" for tensor in self._shareable if found[f"pack {tensor}"]]
        return {**found, **dict.fromkeys(unshared)}

    def _around_tensor(self, step: TensorTile, choice: Choice) -> Choice:
        """Choose for other knobs what tensor cores demand."""
        left_out = (f"tile {step.rows}", f"tile {step.columns}", "vector", "unroll", "split")
        tile = choice.get(f"reduce {step.depth}")
        fits = isinstance(tile, ReduceTile) and tile.size in DEPTHS
        shared = {f"share {tensor}": SharedTile(tensor, 8) for tensor in self._shareable}
        found: dict[str, GpuStep | None] = {name: choice.get(name) or step for name, step in shared.items()}
        found[f"reduce {step.depth}"] = tile if fits else ReduceTile(step.depth, DEPTHS[1])
        return {**found, **dict.fromkeys(left_out)}

    def _choice(self, candidate: Candidate) -> dict[str, GpuStep | None]:
        found: dict[str, GpuStep | None] = dict.fromkeys(self._knobs)
        for step in candidate.steps:
            match step:
                case BlockTile(axis):
                    found[f"tile {axis}"] = step
                case ReduceTile(axis):
                    found[f"reduce {axis}"] = step
                case SharedTile(tensor):
                    found[f"share {tensor}"] = step
                case PackOperand(tensor):
                    found[f"pack {tensor}"] = step
                case GpuStep() if type(step) in _KNOBS:
                    found[_KNOBS[type(step)]] = step
                case _:
                    raise ScheduleError(f"{step} is not a step of this space", "Use its own candidates.")
        return found

    def _is_legal(self, candidate: Candidate) -> bool:
        tiles = [step for step in candidate.steps if isinstance(step, BlockTile)]
        held = prod(tile.elements * tile.repeats for tile in tiles)
        threads = prod(tile.threads for tile in tiles)
        for step in candidate.steps:
            if isinstance(step, TensorTile):
                held *= 4 * step.row_fragments * step.column_fragments
                threads *= 32 * step.row_warps * step.column_warps
        most = VECTOR_REGISTERS_MAX if self._gpu.processor else REGISTERS_MAX
        if held > most or threads > self._gpu.block_size:
            return False
        try:
            kernels = self.kernels(candidate)
            require_fit(kernels, self._gpu.block_size, self._gpu.shared, emulated=self._emulated)
        except PlanishError:
            return False
        return True

    @property
    def schema(self) -> FeatureSchema:
        """Return the schema of `features`."""
        from planish.levels.loops.gpu.features import SCHEMA

        return SCHEMA

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates; see `planish.levels.loops.gpu.features`.

        Raises:
            ScheduleError: one is illegal.
        """
        from planish.levels.loops.gpu.features import gpu_features

        return gpu_features([*map(self.kernels, candidates)], self._gpu, self._arch)

    def kernels(self, candidate: Candidate) -> GpuProgram:
        """Return the kernels of a candidate; raises ScheduleError where it is illegal."""
        return self._kernels(candidate)

    def _make_kernels(self, candidate: Candidate) -> GpuProgram:
        return gpu_program_of(self._program, candidate, self._gpu.flat_block_size)


def _pick(rng: Generator, options: Sequence[Option]) -> Option:
    return options[int(rng.integers(len(options)))]
