"""Edit `TileBatch`: the batch is computed in tiles, as a loop or written out; no answer changes.

Each example is computed alone, so the answer stays what it was, to rounding. The batch of a function is
examples of its inputs that never meet on their way to its results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.axes import Tie, ties
from planish.levels.hlo.edits.edit import Rewrite, pick
from planish.levels.hlo.edits.editable import EditableModule, Tiles
from planish.levels.hlo.ir.mlir import (
    PRODUCTS,
    UID,
    Value,
    context,
    conv_numbers,
    functions,
    integer,
    integers,
    ir,
    mlir_type,
    padding_of,
    set_slice_limit,
    set_uid,
    shape_of,
    stablehlo,
    tensor_type,
    type_of,
    uid_of,
    walk,
    window,
    with_shape,
)

if TYPE_CHECKING:
    from numpy.random import Generator

Axes = Sequence[int | None]
"""Of values, one after the other: the dimension that the batch lies along; None: not of the batch at all."""

Carried = tuple[int, Axes]
"""The dimension of the batch in all results; and in each operand, None for those that are taken as they are.

What is not of the batch may still lie beside it, as a bias for each example does: then it is cut alike.
"""


def carried(op: ir.Operation, axes: Axes) -> Carried:
    """Return the axis of the batch in an operation's results, and in its operands.

    Raises:
        ScheduleError: it mixes examples, or it is not known whether it does.
    """
    if op.name == "stablehlo.convolution":
        numbers, groups = conv_numbers(op), integer(op, "batch_group_count")
        # One example after the other, all with the same kernel.
        if axes[1] is None and axes[0] == numbers.input_batch_dimension and groups == 1:
            return numbers.output_batch_dimension, axes
        raise _mixes(op)
    given = {(v, axis) for v, axis in zip(op.operands, axes, strict=True) if axis is not None}
    rule = _RULES.get(op.name, ties)
    found = [dict(tie) for tie in rule(op) if not given.isdisjoint(tie)]
    if len(found) != 1 or not given <= found[0].items() or op.results[0] not in found[0]:
        raise _mixes(op)
    return found[0][op.results[0]], [found[0].get(operand) for operand in op.operands]


def _mixes(op: ir.Operation) -> ScheduleError:
    return ScheduleError(f"{op.name} may mix the examples of a batch", "Such a module is not tiled.")


def _reversed(op: ir.Operation) -> Iterator[Tie]:
    for axis in range(len(shape_of(op.operands[0]))):
        if axis not in integers(op, "dimensions"):
            yield (op.results[0], axis), (op.operands[0], axis)


def _windows(op: ir.Operation) -> Iterator[Tie]:
    """Windows of one element, one after the other."""
    rank, inputs = len(shape_of(op.operands[0])), op.operands[: len(op.results)]
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    sizes, padding = [window(op, name, rank) for name in names], padding_of(op, rank)
    for axis in range(rank):
        if all(size[axis] == 1 for size in sizes) and padding[axis] == (0, 0):
            yield tuple((value, axis) for value in (*op.results, *inputs))


_RULES = {"stablehlo.reverse": _reversed, "stablehlo.reduce_window": _windows}


@dataclass(frozen=True)
class FunctionBatch:
    """A function's batch.

    Args:
        size: how many examples.
        axes: the values of the batch, with the dimension that it lies along.
        operations: those that make them, in order.
        operands: of each, the dimensions along which its operands are cut.
    """

    size: int
    axes: dict[Value, int]
    operations: Sequence[ir.Operation]
    operands: Sequence[Axes]


def batch_of(block: ir.Block) -> FunctionBatch:
    """Find the batch of a function.

    It lies along the first dimension of one input or of several. What is tried first is as long as the first
    result, and is all inputs of that length. Where a function has convolutions or products, one of them reads
    the batch: the moments of an optimizer have numbers that never meet, too, and are none.

    Raises:
        ScheduleError: examples meet, as in the gradient of a training step, or there is no batch.
    """
    why: ScheduleError | None = None
    heavy = any(inner.name in PRODUCTS for op in block.operations for inner in walk(op.operation))
    for arguments in _possible(block):
        try:
            batch = _followed(block, arguments)
            if heavy and not any(op.name in PRODUCTS for op in batch.operations):
                what = "no convolution or product reads the batch"
                raise ScheduleError(what, "Such a module is not tiled.")
            return batch
        except ScheduleError as error:
            why = why or error
    raise why or ScheduleError("the function has no batch", "Its inputs need a first dimension in common.")


def _possible(block: ir.Block) -> Iterator[Sequence[Value]]:
    lengths: dict[int, list[Value]] = {}
    for argument in block.arguments:
        type_ = tensor_type(argument.type)
        if type_ is not None and type_.shape and type_.shape[0] > 1:
            lengths.setdefault(type_.shape[0], []).append(argument)
    types = [tensor_type(value.type) for value in _end(block).operands]
    wanted = types[0].shape[0] if types and types[0] and types[0].shape else 0
    for _, found in sorted(lengths.items(), key=lambda item: item[0] != wanted):
        yield found
        if len(found) > 1:
            yield from ([argument] for argument in found)


def _followed(block: ir.Block, arguments: Sequence[Value]) -> FunctionBatch:
    """Follow some inputs through the function."""
    axes = dict.fromkeys(arguments, 0)
    batch = FunctionBatch(shape_of(arguments[0])[0], axes, operations := [], operands := list[Axes]())
    for op in [view.operation for view in block.operations][:-1]:
        given = [axes.get(operand) for operand in op.operands]
        if any(value in axes for inner in walk(op)[1:] for value in inner.operands):
            raise ScheduleError(f"a region of {op.name} uses the batch", "Such a module is not tiled.")
        if all(axis is None for axis in given):
            continue
        result, wanted = carried(op, given)
        if any(shape_of(value)[result] != batch.size for value in op.results):
            raise ScheduleError(f"{op.name} changes the batch", "Such a module is not tiled.")
        operations.append(op)
        operands.append(wanted)
        axes.update(dict.fromkeys(op.results, result))
    if not any(value in axes for value in _end(block).operands):
        raise ScheduleError("no result depends on the batch", "Such a module is not tiled.")
    return batch


def _end(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation


TILES_MOST = 25
"""They are written out: compiling takes longer with each."""


@dataclass(frozen=True)
class TileBatch(Rewrite):
    """Compute a few examples of the batch at a time, so that the values between layers stay in the caches.

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

    def apply(self, module: EditableModule) -> None:
        if self.examples < 1:
            raise ScheduleError(f"a tile has no {self.examples} examples", "Take 1 or more.")
        module.tiles = Tiles(self.examples, self.loop)

    @classmethod
    def match(cls, module: EditableModule) -> list[int]:
        """Find sizes of tiles for the function's batch; raises ScheduleError where it has none."""
        return sizes(batch_size(module))

    @classmethod
    def enumerate(cls, module: EditableModule) -> list[Self]:
        """List all sizes of tiles, written out and as a loop; raises ScheduleError as `match` does."""
        found = cls.match(module)
        return [cls(size, loop) for loop in (False, True) for size in found]

    @classmethod
    def draw(cls, module: EditableModule, rng: Generator) -> Self:
        """Draw another size than that of the tiles that there are."""
        loop = bool(rng.integers(2))
        now = module.tiles.examples if module.tiles and module.tiles.loop == loop else 0
        return cls(pick([size for size in cls.match(module) if size != now], rng), loop)


def batch_size(module: EditableModule) -> int:
    """Count the examples of a function's batch; raises ScheduleError where it mixes them, or has none."""
    return batch_of(module.body).size


def sizes(batch: int) -> list[int]:
    """List sizes of tiles that give 2 to `TILES_MOST` tiles, a different number each."""
    return sorted({-(-batch // tiles) for tiles in range(2, TILES_MOST + 1)} - {batch})


def tile_function(root: ir.Operation, function: str, tiles: Tiles) -> ir.Operation:
    """Return a new module whose function computes a part of its batch at a time.

    What does not depend on the batch is computed once.

    ::

        f(x: 100)  -->  concatenate(f(x[0:10]), f(x[10:20]), ..., f(x[90:100]))

    Tiles that are written out compile longer, and XLA takes memory for what several of them compute: 48 MB
    for MobileNet on 100 images, ten at a time. A loop takes 8 MB, which stay in the caches. But XLA's
    convolution is slow inside a loop; where it is a product (`Lower`), a loop is the faster form.

    Raises:
        ScheduleError: the function has no batch, or no more examples than a tile.
    """
    copy = root.clone().operation
    body = dict(functions(copy))[function]
    batch = batch_of(body.regions[0].blocks[0])
    if not 0 < tiles.examples < batch.size:
        what = f"a batch of {batch.size} has no tiles of {tiles.examples}"
        raise ScheduleError(what, f"Take 1 to {batch.size - 1}.")
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
    """Compute all tiles at the current insertion point; what is left over comes after the loop.

    ::

        i, y = 0, 0;  while i < 100: y[i : i + 10] = f(x[i : i + 10]); i = i + 10
    """
    empty = [_zeros(value) for value in results]
    whole, rest = batch.size // examples * examples, batch.size % examples
    carried = [whole_number(0), *empty]
    loop = stablehlo.WhileOp([value.type for value in carried], carried)
    block = _block(loop.regions[0], carried)
    with ir.InsertionPoint(block):
        less = stablehlo.ComparisonDirectionAttr.get("LT")
        stablehlo.ReturnOp([stablehlo.CompareOp(block.arguments[0], whole_number(whole), less).result])
    block = _block(loop.regions[1], carried)
    first, *before = block.arguments
    with ir.InsertionPoint(block):
        tile = Tile(batch, first, examples).computed()
        written = _written(batch, results, before, tile, first)
        made: Any = stablehlo.AddOp(first, whole_number(examples)).result
        stablehlo.ReturnOp([made, *written])
    written = list(loop.results)[1:]
    if not rest:
        return written
    tile = Tile(batch, whole, rest).computed()
    return _written(batch, results, written, tile, whole_number(whole))


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
    """Some examples of a batch, as far as they are computed; it writes at the current insertion point."""

    def __init__(self, batch: FunctionBatch, first: int | Value, examples: int) -> None:
        self._batch, self._first, self._examples = batch, first, examples
        self._parts: dict[tuple[Value, int], Value] = {}

    def computed(self) -> Tile:
        """Compute all that depends on the batch."""
        for op, axes in zip(self._batch.operations, self._batch.operands, strict=True):
            pairs = zip(op.operands, axes, strict=True)
            parts = [value if axis is None else self.part(value, axis) for value, axis in pairs]
            copy = op.clone().operation
            for position, part in enumerate(parts):
                copy.operands[position] = part
            for old, new in zip(op.results, copy.results, strict=True):
                axis = self._batch.axes[old]
                new.set_type(mlir_type(type_of(old).with_extent(axis, self._examples)))
                self._parts[old, axis] = new
            # Its limits name the extent of the batch, all of which it keeps.
            if op.name == "stablehlo.slice":
                set_slice_limit(copy, self._batch.axes[op.results[0]], self._examples)
        return self

    def part(self, value: Value, axis: int) -> Value:
        """Return a value's part for these examples, along a dimension."""
        if (value, axis) not in self._parts:
            self._parts[value, axis] = self._taken(value, axis)
        return self._parts[value, axis]

    def _taken(self, value: Value, axis: int) -> Value:
        """Take these examples out of what comes from outside."""
        shape = type_of(value).with_extent(axis, self._examples).shape
        # What is the same for all examples is made again, as large as it is needed.
        made = with_shape(value, shape)
        if made is not None:
            return made
        if isinstance(self._first, int):
            starts, limits = [0] * len(shape), list(shape)
            starts[axis], limits[axis] = self._first, self._first + self._examples
            return stablehlo.SliceOp(value, starts, limits, [1] * len(starts)).result
        return stablehlo.DynamicSliceOp(value, at(self._first, axis, len(shape)), shape).result
