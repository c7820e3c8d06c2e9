"""Edit `TileBatch`: the batch is computed in tiles, as a loop or written out; no answer changes.

Each example is computed alone, so the answer stays what it was, to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.batch_axes import Axes, FunctionBatch, batch_of
from planish.levels.hlo.edits.draft import Draft, Tiles
from planish.levels.hlo.edits.edit import Rewrite, pick
from planish.levels.hlo.ir import UID, TensorType, context, functions, ir, mlir_type, set_uid, uid_of, walk
from planish.levels.hlo.ir.mlir import Value, integers, shape_of, stablehlo, type_of, with_shape

if TYPE_CHECKING:
    from numpy.random import Generator

TILES_MOST = 25
"""They are written out: compiling takes longer with each."""


@dataclass(frozen=True)
class TileBatch(Rewrite):
    """Compute so many examples of the batch at a time, so that what lies between layers stays in the caches.

    It is done when all else is edited, wherever it stands in a patch; of several the last counts. The paper
    has nothing like it. The answer stays, to rounding, since no operation of the function may mix examples;
    a module in which one does cannot be tiled (see `planish.levels.hlo.edits.tile_batch`).

    Args:
        examples: of one tile.
        loop: whether the tiles are a loop; else they are written out.
    """

    exact = True

    examples: int
    loop: bool = False

    def apply(self, draft: Draft) -> None:
        if self.examples < 1:
            raise ScheduleError(f"a tile has no {self.examples} examples", "Take 1 or more.")
        draft.tiles = Tiles(self.examples, self.loop)

    @classmethod
    def match(cls, draft: Draft) -> list[int]:
        """Find sizes of tiles for the function's batch; raises ScheduleError where it has none."""
        return sizes(batch_size(draft))

    @classmethod
    def enumerate(cls, draft: Draft) -> list[Self]:
        """List all sizes of tiles, written out and as a loop; raises ScheduleError as `match` does."""
        found = cls.match(draft)
        return [cls(size, loop) for loop in (False, True) for size in found]

    @classmethod
    def draw(cls, draft: Draft, rng: Generator) -> Self:
        """Draw another size than that of the tiles that there are."""
        loop = bool(rng.integers(2))
        now = draft.tiles.examples if draft.tiles and draft.tiles.loop == loop else 0
        return cls(pick([size for size in cls.match(draft) if size != now], rng), loop)


def batch_size(draft: Draft) -> int:
    """Count the examples of a function's batch; raises ScheduleError where it mixes them, or has none."""
    return batch_of(draft.body).size


def sizes(batch: int) -> list[int]:
    """List sizes of tiles that give 2 to `TILES_MOST` tiles, a different number each."""
    return sorted({-(-batch // tiles) for tiles in range(2, TILES_MOST + 1)} - {batch})


def tiled(root: ir.Operation, function: str, tiles: Tiles) -> ir.Operation:
    """Return a module whose function computes a part of its batch at a time.

    What does not depend on the batch is computed once.

    ::

        f(x: 100)  -->  concatenate(f(x[0:10]), f(x[10:20]), ..., f(x[90:100]))

    Tiles that are written out compile longer, and XLA takes memory for what several of them compute: 48 MB
    for MobileNet on 100 pictures, ten at a time. A loop takes 8 MB, which stay in the caches. But XLA's
    convolution is slow inside a loop; where it is a product (`Lower`), a loop is the faster form.

    Args:
        root: the module; it is not changed.
        function: the function's name.
        tiles: how the batch is cut; each has fewer examples than the batch.

    Raises:
        ScheduleError: the function has no batch, or no more examples than a tile.
    """
    copy = root.clone().operation
    body = dict(functions(copy))[function]
    batch = batch_of(body.regions[0].blocks[0])
    if not 0 < tiles.examples < batch.size:
        raise ScheduleError(
            f"a batch of {batch.size} has no tiles of {tiles.examples}", f"Take 1 to {batch.size - 1}."
        )
    end = body.regions[0].blocks[0].operations[-1].operation
    positions = [position for position, value in enumerate(end.operands) if value in batch.axes]
    with ir.InsertionPoint(end), ir.Location.unknown(copy.context):
        computed = looped if tiles.loop else unrolled
        made = computed(batch, [end.operands[position] for position in positions], tiles.examples)
    for position, value in zip(positions, made, strict=True):
        end.operands[position] = value
    # Backwards, since what is used cannot be erased.
    for op in reversed(batch.operations):
        op.erase()
    # Copies have the uid of what they are copies of: with a number each has its own.
    for number, op in enumerate(walk(body)[1:]):
        set_uid(op, f"{uid_of(op)}.{number}" if UID in op.attributes else f"tile.{number}")
    return copy


def looped(batch: FunctionBatch, results: Sequence[Value], examples: int) -> Sequence[Value]:
    """Compute all tiles at the current insertion point; what is left over comes behind the loop.

    ::

        i, y = 0, 0;  while i < 100: y[i : i + 10] = f(x[i : i + 10]); i = i + 10
    """
    empty = [_zeros(value) for value in results]
    whole, rest = batch.size // examples * examples, batch.size % examples
    carried = [whole_number(0), *empty]
    loop = stablehlo.WhileOp([value.type for value in carried], carried)
    _condition(loop.regions[0], carried, whole)
    _body(loop.regions[1], carried, batch, results, examples)
    written = list(loop.results)[1:]
    if not rest:
        return written
    tile = Tile(batch, whole, rest).computed()
    return _written(batch, results, written, tile, whole_number(whole))


def _condition(region: ir.Region, carried: Sequence[Value], whole: int) -> None:
    block = _block(region, carried)
    with ir.InsertionPoint(block):
        direction = stablehlo.ComparisonDirectionAttr.get("LT")
        more = stablehlo.CompareOp(block.arguments[0], whole_number(whole), direction)
        stablehlo.ReturnOp([more.result])


def _body(
    region: ir.Region, carried: Sequence[Value], batch: FunctionBatch, results: Sequence[Value], examples: int
) -> None:
    block = _block(region, carried)
    first, *before = block.arguments
    with ir.InsertionPoint(block):
        tile = Tile(batch, first, examples).computed()
        written = _written(batch, results, before, tile, first)
        made: Any = stablehlo.AddOp(first, whole_number(examples)).result
        stablehlo.ReturnOp([made, *written])


def _block(region: ir.Region, carried: Sequence[Value]) -> ir.Block:
    unknown = ir.Location.unknown(region.owner.context)
    return region.blocks.append(*(value.type for value in carried), arg_locs=[unknown] * len(carried))


def _written(
    batch: FunctionBatch, results: Sequence[Value], before: Sequence[Value], tile: Tile, first: Value
) -> list[Value]:
    """Write a tile's results into tensors of the whole batch."""
    found: list[Value] = []
    for value, whole in zip(results, before, strict=True):
        axis = batch.axes[value]
        positions = at(first, axis, len(shape_of(value)))
        found.append(stablehlo.DynamicUpdateSliceOp(whole, tile.part(value, axis), positions).result)
    return found


def _zeros(value: Value) -> Value:
    """Make a tensor of a value's type; what is in it does not matter."""
    type_ = type_of(value)
    if not type_.plain:
        raise ScheduleError(f"a result of {type_} is not written by a loop", "Take tiles without one.")
    zero = "false" if type_.element == "i1" else "0.0" if "f" in type_.element else "0"
    return stablehlo.ConstantOp(ir.Attribute.parse(f"dense<{zero}> : {type_}", context())).result


def unrolled(batch: FunctionBatch, results: Sequence[Value], examples: int) -> list[Value]:
    """Compute all tiles at the current insertion point, and put their results together."""
    parts: list[list[Value]] = [[] for _ in results]
    for first in range(0, batch.size, examples):
        tile = Tile(batch, first, min(examples, batch.size - first)).computed()
        for position, value in enumerate(results):
            parts[position].append(tile.part(value, batch.axes[value]))
    return [
        stablehlo.ConcatenateOp(found, batch.axes[value]).result
        for found, value in zip(parts, results, strict=True)
    ]


def at(first: Value, axis: int, dimensions: int) -> list[Value]:
    """Return the indices of what begins at `first` along one dimension, and at 0 along the others."""
    return [first if position == axis else whole_number(0) for position in range(dimensions)]


def whole_number(value: int) -> Value:
    """Make a constant scalar of 32 bits."""
    type_ = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    number = ir.IntegerAttr.get(type_.element_type, value)
    return stablehlo.ConstantOp(ir.DenseElementsAttr.get_splat(type_, number)).result


class Tile:
    """Some examples of a batch, as far as they are computed; it writes at the current insertion point.

    Args:
        batch: of which they are.
        first: the number of the first one; a scalar of 32 bits where it is known only when the module runs.
        examples: how many they are.
    """

    def __init__(self, batch: FunctionBatch, first: int | Value, examples: int) -> None:
        self._batch, self._first, self._examples = batch, first, examples
        self._parts: dict[tuple[Value, int], Value] = {}

    def computed(self) -> Tile:
        """Compute all that depends on the batch."""
        for op, axes in zip(self._batch.operations, self._batch.operands, strict=True):
            self._compute(op, axes)
        return self

    def _compute(self, op: ir.Operation, axes: Axes) -> None:
        """Compute an operation for these examples.

        Args:
            op: of the whole batch.
            axes: the dimensions along which its operands are cut.
        """
        parts = [v if axis is None else self.part(v, axis) for v, axis in zip(op.operands, axes, strict=True)]
        copy = op.clone().operation
        for position, part in enumerate(parts):
            copy.operands[position] = part
        for old, new in zip(op.results, copy.results, strict=True):
            axis = self._batch.axes[old]
            new.set_type(mlir_type(self._cut(type_of(old), axis)))
            self._parts[old, axis] = new
        # Its limits name the extent of the batch, all of which it keeps.
        if op.name == "stablehlo.slice":
            axis = self._batch.axes[op.results[0]]
            limits = integers(op, "limit_indices")
            limits[axis] = self._examples
            copy.attributes["limit_indices"] = ir.DenseI64ArrayAttr.get(limits)

    def part(self, value: Value, axis: int) -> Value:
        """Return a value's part for these examples, along a dimension."""
        if (value, axis) not in self._parts:
            self._parts[value, axis] = self._made(value, axis)
        return self._parts[value, axis]

    def _made(self, value: Value, axis: int) -> Value:
        """Cut what comes from outside; what is the same for all examples is made as large as it is needed."""
        type_ = self._cut(type_of(value), axis)
        made = with_shape(value, type_.shape)
        return made if made is not None else self._taken(value, axis, type_)

    def _taken(self, value: Value, axis: int, type_: TensorType) -> Value:
        """Take these examples out of a value."""
        if isinstance(self._first, int):
            starts, limits = [0] * len(type_.shape), list(type_.shape)
            starts[axis], limits[axis] = self._first, self._first + self._examples
            return stablehlo.SliceOp(value, starts, limits, [1] * len(starts)).result
        positions = at(self._first, axis, len(type_.shape))
        return stablehlo.DynamicSliceOp(value, positions, type_.shape).result

    def _cut(self, type_: TensorType, axis: int) -> TensorType:
        shape = (*type_.shape[:axis], self._examples, *type_.shape[axis + 1 :])
        return TensorType(shape, type_.element)
