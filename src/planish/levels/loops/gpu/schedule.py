"""GPU schedules: the kernels that a candidate's steps make of a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from planish.core import Candidate, ScheduleError, Step, did_you_mean
from planish.levels.loops.gpu.bind import bind
from planish.levels.loops.gpu.layout import FLAT_BLOCK_SIZE, Bindings, KernelOptions, Layout, TensorLoops
from planish.levels.loops.gpu.statements import PART, WITHIN, accumulated, split_reduction
from planish.levels.loops.gpu.steps import (
    GPU_STEPS,
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
from planish.levels.loops.gpu.tensor import (
    FRAGMENT_COLUMNS,
    FRAGMENT_ROWS,
    GROUP,
    GROUP_WARPS,
    INSTRUCTIONS,
    ROW_ELEMENTS,
    fragment_depth,
)
from planish.levels.loops.ir.schedule import Order, Schedule, loop_text, unscheduled
from planish.levels.loops.ir.tree import LoopId
from planish.levels.loops.lang.program import (
    TF32,
    Access,
    Program,
)
from planish.levels.loops.steps import Pack, Reorder, Split

if TYPE_CHECKING:
    from planish.levels.loops.gpu.kernels import GpuProgram

_AxisStep = TypeVar("_AxisStep", BlockTile, ReduceTile, UnrollReduction)


def _meant(steps: Sequence[Step], split: SplitReduction | None) -> Iterator[Step]:
    """List steps as they are for a program whose reduction is divided."""
    if split:
        threads = split.parts if split.over == "threads" else 1
        yield BlockTile(split.axis + PART, threads)
    for step in steps:
        if (
            isinstance(step, ReduceTile | UnrollReduction)
            and split
            and (step.axis, step.nest) == (split.axis, "")
        ):
            yield replace(step, axis=split.axis + WITHIN)
        elif step is not split:
            yield step


# Candidates


def gpu_program_of(program: Program, candidate: Candidate, block_size: int = FLAT_BLOCK_SIZE) -> GpuProgram:
    """Make the kernels of a candidate.

    Args:
        program: what is computed.
        candidate: of GPU steps.
        block_size: threads of a block at most, where nothing is bound.

    Raises:
        ScheduleError: a step is illegal here, or threads would meet in an element.
    """
    from planish.levels.loops.lower.lowering import lower  # a process that only searches lowers nothing
    from planish.levels.loops.lower.placement import plan

    schedule, bindings, layout = gpu_schedule_of(program, candidate)
    copies = plan(schedule).copies
    packed = {name: copy.packed.access.tensor for name, copy in copies.items()}
    pads = {name: layout.pads.get(tensor, 0) for name, tensor in packed.items()}
    swizzled = frozenset(name for name, tensor in packed.items() if tensor in layout.swizzled)
    layout = replace(layout, block_size=block_size, pads=pads, swizzled=swizzled)
    tree = lower(schedule)
    if any(options.tensor for options in layout.kernels.values()):
        # Tensor cores read what is in the tensor, not what it is widened to.
        types = {name: schedule.program.type[tensor].dtype for name, tensor in packed.items()}
        tree = replace(
            tree, buffers=tuple(replace(b, dtype=types.get(b.name, b.dtype)) for b in tree.buffers)
        )
    return bind(tree, bindings, frozenset(copies), layout)


def gpu_schedule_of(program: Program, candidate: Candidate) -> tuple[Schedule, Bindings, Layout]:
    """Replay a candidate's steps; pads and swizzles of the layout are by tensor.

    Raises:
        ScheduleError: a step is illegal here.
    """
    nests: dict[str, list[GpuStep]] = {}
    split = next((step for step in candidate.steps if isinstance(step, SplitReduction)), None)
    inner = split_reduction(accumulated(program), split) if split else accumulated(program)
    schedule = unscheduled(inner)
    for step in _meant(candidate.steps, split):
        if not isinstance(step, GpuStep):
            raise ScheduleError(
                f"expected a step of a GPU schedule, got {step}", f"Known: {', '.join(GPU_STEPS)}."
            )
        nests.setdefault(vars(step)["nest"], []).append(step)
    bindings: dict[LoopId, str] = {}
    pads: dict[str, int] = {}
    swizzled = set[str]()
    lanes, unrolled = set[LoopId](), set[LoopId]()
    options: dict[str, KernelOptions] = {}
    for nest, steps in nests.items():
        made = _NestSchedule(schedule, nest, steps)
        schedule = made.schedule
        bindings |= made.bindings
        lanes |= made.lanes
        unrolled |= made.unrolled
        pads |= {s.tensor: s.pad for s in steps if isinstance(s, SharedTile)}
        swizzled |= {s.tensor for s in steps if isinstance(s, SharedTile) and s.swizzle}
        options[made.nest.statement.target.tensor] = made.options
    layout = Layout(
        pads=pads,
        swizzled=frozenset(swizzled),
        lanes=frozenset(lanes),
        unrolled=frozenset(unrolled),
        kernels=options,
    )
    return schedule, bindings, layout


class _NestSchedule:
    """Applies the steps of one nest.

    Attributes:
        schedule: with the nest's loops.
        bindings: of these loops.
        lanes: the loop of the vector, if there is one.
        unrolled: loops of reductions that are repeated.
        options: of the nest's kernel.
    """

    def __init__(self, schedule: Schedule, nest: str, steps: Sequence[GpuStep]) -> None:
        number = schedule.nest(_inner(schedule, nest))
        self.nest = schedule.graph.nests[number]
        self.name = self.nest.name if nest else ""
        self.schedule, self.number = schedule, number
        self.bindings: dict[LoopId, str] = {}
        self.lanes: set[LoopId] = set()
        self.unrolled: set[LoopId] = set()
        self.extent = schedule.program.size
        self.tiles = self._by_axis(steps, BlockTile)
        self.reductions = self._by_axis(steps, ReduceTile)
        self.vector = next((s.axis for s in steps if isinstance(s, VectorLanes)), "")
        self.unrolls = self._by_axis(steps, UnrollReduction)
        self.tensor = next((s for s in steps if isinstance(s, TensorTile)), None)
        types = [self.schedule.program.type[o.access.tensor].dtype for o in self.nest.operands]
        self.fragment_depth = fragment_depth(types[0] if types else "")
        self.bulk = next((s for s in steps if isinstance(s, BulkCopies)), None)
        if self.tensor:
            self._check_product(self.tensor)
        order = self._order()
        self.options = self._options(steps)
        if len(order) > 1:
            self.schedule = Reorder(tuple(map(loop_text, order)), self.name).apply(self.schedule)
        for step in steps:
            if isinstance(step, SharedTile):
                self._share(step, order)
            elif isinstance(step, PackOperand):
                ahead = step.tensor in self.schedule.program.constants
                self.schedule = Pack(step.tensor, ahead=ahead, nest=self.name).apply(self.schedule)

    def _order(self) -> Order:
        """Split the axes; return the loops: blocks, tiles of reductions, reductions, threads, elements."""
        blocks, repeats, threads, elements = (list[LoopId]() for _ in range(4))
        fragments: dict[str, list[LoopId]] = {}
        for axis in self._results():
            warps = self._warps(axis)
            if warps:
                step, count, many = warps
                fragments[axis] = own = []
                if self.tensor and self.tensor.instruction == GROUP and step == FRAGMENT_ROWS:
                    many //= GROUP_WARPS
                    step *= GROUP_WARPS
                parts = [
                    (step * count * many, blocks, "block"),
                    (step * count, threads, "thread"),
                    (step, own, ""),
                ]
                if step == GROUP_WARPS * FRAGMENT_ROWS:
                    parts.append((FRAGMENT_ROWS, own, "thread"))
                rows = self.tensor and axis == self.tensor.rows
                parts += [(8, own, ""), (1, own, "thread")] if rows else [(2, own, "thread"), (1, own, "")]
            else:
                tile = self.tiles.get(axis, BlockTile(axis, 1))
                each = tile.elements
                parts = [
                    (each * tile.threads * tile.repeats, blocks, "block"),
                    (each * tile.threads, repeats, ""),
                ]
                parts += [(each, threads, "thread"), (1, elements, "")]
            self._divide(axis, parts)
            if self.vector == axis and (axis, 1) in elements:
                self.lanes.add((axis, 1))
        elements.sort(key=lambda loop: loop[0] == self.vector)
        outer, inner = self._reductions(fragments)
        self.around = len(blocks) + len(outer)
        product = self._product_order(self.tensor, fragments) if self.tensor else ()
        if self.tensor and not blocks:
            # Without a block loop around all of it, sums are not registers of one kernel.
            raise ScheduleError(f"{self.tensor} leaves a single block", "Use fewer warps or fragments.")
        return (*blocks, *outer, *inner, *repeats, *threads, *elements, *product)

    def _divide(self, axis: str, parts: Sequence[tuple[int, list[LoopId], str]]) -> None:
        """Split an axis into loops of these steps, each of which has a list and a kind; empty is serial."""
        left = self.extent[axis]
        for step, loops, kind in parts:
            if step < left:
                self._split(axis, step)
                loops.append((axis, step))
                left = step
                if kind:
                    self.bindings[axis, step] = kind

    def _results(self) -> list[str]:
        return [axis for axis in self.nest.axes if axis not in self.nest.reduced]

    def _reductions(self, fragments: dict[str, list[LoopId]]) -> tuple[list[LoopId], list[LoopId]]:
        """Split the reduced axes; return the loops around what is shared, and those inside.

        Those of tensor cores are put among the loops of fragments.
        """
        outer, inner = list[tuple[str, int]](), list[tuple[str, int]]()
        for axis in [axis for axis in self.nest.axes if axis in self.nest.reduced]:
            left = self.extent[axis]
            tile = self.reductions.get(axis)
            if tile and tile.size < left:
                self._split(axis, tile.size)
                outer.append((axis, tile.size))
                left = tile.size
            unroll = self.unrolls.get(axis)
            if self.tensor and axis == self.tensor.depth:
                if left > self.fragment_depth:
                    self._split(axis, self.fragment_depth)
                    fragments.setdefault(axis, []).append((axis, self.fragment_depth))
                if self.tensor.instruction == GROUP:
                    self._split(axis, ROW_ELEMENTS)
                    fragments.setdefault(axis, []).append((axis, ROW_ELEMENTS))
                fragments.setdefault(axis, []).append((axis, 1))
            elif left > 1:
                if unroll and unroll.factor < left and left % unroll.factor == 0 and unroll.factor > 1:
                    self._split(axis, unroll.factor)
                    inner.append((axis, unroll.factor))
                if unroll and unroll.factor > 1:
                    self.unrolled.add((axis, 1))
                inner.append((axis, 1))
        return outer, inner

    # Tensor cores

    def _check_product(self, step: TensorTile) -> None:
        """Refuse what is not a product of the axes."""
        axes = (step.rows, step.columns, step.depth)
        for axis in axes:
            if axis not in self.nest.axes:
                what = f"nest '{self.nest.name}' has no loop over axis '{axis}'"
                raise ScheduleError(what, did_you_mean(axis, self.nest.axes))
        if [axis in self.nest.reduced for axis in axes] != [False, False, True] or step.rows == step.columns:
            what = f"'{step.rows}' and '{step.columns}' must be different axes of the result"
            what = f"{what}, and '{step.depth}' a reduced one"
            raise ScheduleError(what, "Name other axes.")
        if any(value < 1 for value in vars(step).values() if isinstance(value, int)):
            raise ScheduleError(f"{step} has a number below 1", "Counts are 1 at least.")
        if step.instruction not in INSTRUCTIONS:
            what = f"there is no instruction '{step.instruction}'"
            raise ScheduleError(what, did_you_mean(step.instruction, INSTRUCTIONS))
        if step.instruction == GROUP and self.fragment_depth != 2 * ROW_ELEMENTS:
            raise ScheduleError(f"the instruction '{GROUP}' is not used for {TF32}", "Use 'mma'.")
        if step.instruction == GROUP and step.row_warps % GROUP_WARPS:
            raise ScheduleError(f"{step} has no groups of {GROUP_WARPS} warps along the rows", "Use 4, or 8.")
        tile = self.reductions.get(step.depth)
        deep = self.fragment_depth
        if tile is None or tile.size >= self.extent[step.depth] or tile.size % deep:
            what = f"tensor cores walk '{step.depth}' in several tiles, of a multiple of {deep}"
            raise ScheduleError(what, f"Add ReduceTile({step.depth!r}, {2 * deep}).")
        if self.vector or step.depth in self.unrolls or {*axes} & {*self.tiles}:
            what = "TensorTile divides its axes and unrolls them by itself"
            raise ScheduleError(what, "Leave their BlockTile, UnrollReduction and VectorLanes out.")

    def _warps(self, axis: str) -> tuple[int, int, int] | None:
        """Return a fragment's elements along an axis, a warp's fragments, and a block's warps."""
        if self.tensor and axis == self.tensor.rows:
            return FRAGMENT_ROWS, self.tensor.row_fragments, self.tensor.row_warps
        if self.tensor and axis == self.tensor.columns:
            return FRAGMENT_COLUMNS, self.tensor.column_fragments, self.tensor.column_warps
        return None

    def _product_order(self, step: TensorTile, fragments: Mapping[str, list[LoopId]]) -> Order:
        """Order the loops of fragments so that copies lie in shared memory as operands do in global memory.

        A copy's dimensions are in the order of the loops.
        """
        before = [axis for axis in (step.rows, step.columns) if self._lies_along(axis, step.depth)]
        after = [axis for axis in (step.rows, step.columns) if axis not in before]
        # The last two thread loops number the threads of a warp; of four warps, the last three.
        group = [(step.rows, FRAGMENT_ROWS)] if step.instruction == GROUP else []
        for loop in (*group, (step.rows, 1), (step.columns, 2)):
            if loop in self.bindings:
                self.bindings[loop] = self.bindings.pop(loop)
        found = [loop for axis in (*before, step.depth, *after) for loop in fragments[axis]]
        if step.instruction != GROUP or self.bulk:
            return tuple(found)
        # Matrices of 8 x 8 elements lie in sequence: the loops inside them are the innermost.
        around = [loop for axis in (step.rows, step.columns, step.depth) for loop in fragments[axis]]
        return (
            *(loop for loop in around if loop[1] >= ROW_ELEMENTS),
            *(x for x in found if x[1] < ROW_ELEMENTS),
        )

    def _lies_along(self, axis: str, depth: str) -> bool:
        """Return whether the operand with an axis has neighbors along the reduction."""
        for operand in self.nest.operands:
            index = operand.access.index
            if any(axis in dict(each.terms) for each in index):
                return depth in dict(index[-1].terms)
        raise ScheduleError(f"no operand has axis '{axis}'", "Name another.")

    def _options(self, steps: Sequence[GpuStep]) -> KernelOptions:
        """Return the choices for the nest's kernel."""
        numbers = {
            name: next((getattr(s, name) for s in steps if isinstance(s, kind)), least)
            for kind, name, least in (
                (PipelineCopies | BulkCopies, "stages", 1),
                (BulkCopies, "unfinished", 0),
                (RasterOrder, "width", 0),
                (LaunchBounds, "blocks", 0),
            )
        }
        for step in steps:
            if isinstance(step, PipelineCopies | BulkCopies) and step.stages < 2:
                raise ScheduleError(f"{step} has too few stages", "Use 2 at least.")
            if isinstance(step, RasterOrder | LaunchBounds) and min(numbers["width"], numbers["blocks"]) < 0:
                raise ScheduleError(f"{step} has a number below 0", "Use 1 at least.")
        if self.bulk:
            self._check_bulk(self.bulk, steps)
        return KernelOptions(
            *(numbers["stages"], numbers["width"], numbers["blocks"], self._tensor_loops()),
            bulk=self.bulk is not None,
            unfinished=numbers["unfinished"],
        )

    def _check_bulk(self, step: BulkCopies, steps: Sequence[GpuStep]) -> None:
        """Refuse copies in bulk where threads beside the products would have other work, too."""
        if self.tensor is None or self.tensor.instruction != GROUP:
            raise ScheduleError(f"{step} is for products by '{GROUP}'", "Use PipelineCopies.")
        if any(isinstance(each, PipelineCopies) for each in steps):
            raise ScheduleError("copies are pipelined twice", "Leave PipelineCopies or BulkCopies out.")
        if step.unfinished not in (0, 1) or step.stages < 2 + step.unfinished:
            what = f"{step} keeps no stage for what is copied"
            raise ScheduleError(what, "Use 0 or 1 unfinished, and 2 more stages at least.")

    def _tensor_loops(self) -> TensorLoops | None:
        if self.tensor is None:
            return None
        m, n, k = self.tensor.rows, self.tensor.columns, self.tensor.depth
        group = self.tensor.instruction == GROUP
        rows = FRAGMENT_ROWS * (GROUP_WARPS if group else 1)
        return TensorLoops(
            # Of one fragment the loop is the one over warps.
            (m, rows) if self.tensor.row_fragments > 1 else None,
            (n, FRAGMENT_COLUMNS) if self.tensor.column_fragments > 1 else None,
            *((k, self.fragment_depth), (m, 8), (m, 1), (n, 2), (n, 1), (k, 1)),
            warp=(m, FRAGMENT_ROWS) if group else None,
            half=(k, ROW_ELEMENTS) if group else None,
        )

    def _split(self, axis: str, step: int) -> None:
        if step > 1:
            self.schedule = Split(axis, step, self.name).apply(self.schedule)

    def _share(self, step: SharedTile, order: Order) -> None:
        if not self.around:
            what = (
                f"tensor '{step.tensor}' cannot be shared: there are neither blocks nor tiles of reductions"
            )
            raise ScheduleError(what, "Divide an axis among blocks first.")
        at = loop_text(order[self.around - 1])
        self.schedule = Pack(step.tensor, at, nest=self.name).apply(self.schedule)

    def _by_axis(self, steps: Sequence[GpuStep], kind: type[_AxisStep]) -> dict[str, _AxisStep]:
        """Return the steps of a kind by axis, if they suit the nest."""
        found: dict[str, _AxisStep] = {}
        for step in steps:
            if isinstance(step, kind):
                self._check(step)
                found[step.axis] = step
        return found

    def _check(self, step: BlockTile | ReduceTile | UnrollReduction) -> None:
        if step.axis not in self.nest.axes:
            what = f"nest '{self.nest.name}' has no loop over axis '{step.axis}'"
            raise ScheduleError(what, did_you_mean(step.axis, self.nest.axes))
        divides = isinstance(step, BlockTile)
        if (step.axis in self.nest.reduced) == divides:
            what = f"axis '{step.axis}' is {'reduced' if divides else 'one of the result'}"
            raise ScheduleError(f"{what}: it has no {type(step).__name__}", "Name another axis.")
        if min(value for value in vars(step).values() if isinstance(value, int)) < 1:
            raise ScheduleError(f"{step} has a number below 1", "Counts are 1 at least.")


def _inner(schedule: Schedule, nest: str) -> str:
    """Return the nest that reduces into a tensor, where that has one of its own for it."""
    if not nest or nest not in schedule.graph.nest:
        return nest
    value = schedule.graph.nests[schedule.graph.nest[nest]].statement.value
    summed = isinstance(value, Access) and value.tensor.startswith(f"{nest}_")
    return value.tensor if summed and isinstance(value, Access) else nest
