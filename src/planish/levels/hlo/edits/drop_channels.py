"""Edit `DropChannels`: a product reads fewer channels, and what makes and carries them has fewer.

Axes of values are tied where an operation makes them one: to cut one of them is to cut all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import VariantRewrite
from planish.levels.hlo.edits.editable import EditableModule
from planish.levels.hlo.edits.lower import plain_convolution
from planish.levels.hlo.ir.mlir import (
    ELEMENTWISE,
    FLOAT_BITS,
    TensorType,
    Value,
    context,
    integers,
    ir,
    maker,
    mlir_type,
    shape_of,
    stablehlo,
    type_of,
)

Axis = tuple[Value, int]
Tie = tuple[Axis, ...]


SHARES = (7 / 8, 3 / 4, 1 / 2)
"""Of the channels that are kept."""

FEWEST = 8
"""Fewer channels than twice these are left alone: vectors of a processor have as many numbers."""


@dataclass(frozen=True)
class DropChannels(VariantRewrite):
    """Let a product or a convolution sum over those channels alone whose weights there are largest.

    Producers and consumers are cut alike: their weights, the scales and shifts between, depthwise kernels,
    and through sums all that is added. It is done when all else is edited, before pictures are cropped and
    tiles are made; of several for an operation the last counts. It is illegal where a result of the function
    has these channels, or something depends on how many they are.

    ::

        y = relu(x @ v: 64) @ w   -- DropChannels("y", 48) -->   y = relu(x @ v[:, c]: 48) @ w[c], c: 48 of 64

    Args:
        op: the product or convolution.
        keep: how many channels stay.
    """

    op: str
    keep: int

    def apply(self, module: EditableModule) -> None:
        module.require_target(self.op)
        if self.keep < 1:
            raise ScheduleError(f"{self.keep} channels are none", "Keep 1 or more.")
        # Only noted: edits that come later name operations as they are with all channels.
        module.channels[self.op] = self.keep

    @classmethod
    def match(cls, module: EditableModule) -> dict[str, int]:
        """Find the products and convolutions whose channels may be cut, with how many they have.

        Of those that read the same channels the first is listed.
        """
        live, found, known = module.live(), dict[str, int](), set[object]()
        for uid in module.blocks[""]:
            if uid not in live or not module.is_target(uid):
                continue
            try:
                channels = channels_of(module.op(uid))
            except ScheduleError:
                continue
            if channels.size >= 2 * FEWEST and frozenset(channels.axes) not in known:
                known.add(frozenset(channels.axes))
                found[uid] = channels.size
        return found

    @classmethod
    def variants(cls, uid: str, found: int) -> list[Self]:
        """List edits that keep a share of a number of channels, in steps of `FEWEST`, the mildest first."""
        kept = {int(found * share) // FEWEST * FEWEST: None for share in SHARES}
        return [cls(uid, keep) for keep in kept if 0 < keep < found]


MADE = "planish.width"
"""Marks what is made here, while it is made."""


def cut_channels(block: ir.Block, kept: Sequence[tuple[Channels, int]]) -> None:
    """Let a function compute those of some channels whose weights are largest.

    Which they are is found when the module runs, by the sums of the squares of their weights: it takes a sort
    of so many numbers as there are channels, for any weights.

    Args:
        block: the body of a function, which is changed, to be verified and numbered afterwards.
        kept: channels of it, with how many are kept; of the same ones the last counts.

    Raises:
        ScheduleError: there are not so many channels, or their weights are no floats.
    """
    now: dict[Value, Value] = {}
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown(context()):
        for channels, keep in {frozenset(each.axes): (each, keep) for each, keep in kept}.values():
            _check(channels, keep)
            _cut(channels, keep, now)
    for op in block.operations:
        if MADE in op.attributes:
            del op.attributes[MADE]


def _check(channels: Channels, keep: int) -> None:
    if not 0 < keep < channels.size:
        what = f"{keep} of {channels.size} channels cannot be kept"
        raise ScheduleError(what, f"Keep 1 to {channels.size - 1}.")
    if type_of(channels.weights[0]).element not in FLOAT_BITS:
        raise ScheduleError("the weights of these channels are no floats", "Keep them all.")


def _cut(channels: Channels, keep: int, now: dict[Value, Value]) -> None:
    """Cut some channels; what is left of arguments and constants is noted."""
    # By all weights, also where an earlier cut has left a part of them along another axis.
    positions = _largest(_hoisted(channels.weights[0]), channels.weights[1], keep)
    for value, axis in channels.axes:
        if _is_source(value):
            before = now.get(value, value)
            now[value] = _taken(before if value in now else _hoisted(value), positions, axis, keep)
            _replace(before, now[value])
        else:
            _retype(value, axis, keep)


def _is_source(value: Value) -> bool:
    return isinstance(value.owner, ir.Block) or value.owner.operation.name == "stablehlo.constant"


def _retype(value: Value, axis: int, keep: int) -> None:
    op = ir.OpResult(value).owner.operation
    type_ = type_of(value)
    shape = (*type_.shape[:axis], keep, *type_.shape[axis + 1 :])
    value.set_type(mlir_type(TensorType(shape, type_.element)))
    if op.name == "stablehlo.slice":
        limits = integers(op, "limit_indices")
        limits[axis] = keep
        op.attributes["limit_indices"] = ir.DenseI64ArrayAttr.get(limits, op.context)
    if op.name == "stablehlo.convolution" and ir.IntegerAttr(op.attributes["feature_group_count"]).value > 1:
        op.attributes["feature_group_count"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64, op.context), keep
        )


def _hoisted(value: Value) -> Value:
    """Return a source at the beginning of the function: an argument, or a copy of a constant."""
    if isinstance(value.owner, ir.Block):
        return value
    copy = value.owner.operation.clone().operation
    copy.attributes[MADE] = ir.UnitAttr.get(context())
    return copy.results[0]


def _replace(value: Value, part: Value) -> None:
    """Let all that read a source read a part of it, but those that made the part."""
    for use in list(value.uses):
        owner = use.owner.operation
        if MADE not in owner.attributes:
            owner.operands[use.operand_number] = part


def _largest(weights: Value, axis: int, keep: int) -> Value:
    """Write the indices of the channels whose weights are largest, as `keep` rows of one whole number."""
    type_ = type_of(weights)
    size, element = type_.shape[axis], type_.element
    others = [a for a in range(len(type_.shape)) if a != axis]
    text = f"""
func.func @largest(%w: {type_}) -> tensor<{keep}x1xi32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<{element}>
  %squares = stablehlo.multiply %w, %w : {type_}
  %sums = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = {others}
    : ({type_}, tensor<{element}>) -> tensor<{size}x{element}>
  %indices = stablehlo.iota dim = 0 : tensor<{size}xi32>
  %sorted:2 = "stablehlo.sort"(%sums, %indices) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<{element}>, %b: tensor<{element}>, %i: tensor<i32>, %j: tensor<i32>):
    %more = stablehlo.compare GT, %a, %b : (tensor<{element}>, tensor<{element}>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }}) : (tensor<{size}x{element}>, tensor<{size}xi32>) -> (tensor<{size}x{element}>, tensor<{size}xi32>)
  %first = stablehlo.slice %sorted#1 [0:{keep}] : (tensor<{size}xi32>) -> tensor<{keep}xi32>
  %rows = stablehlo.reshape %first : (tensor<{keep}xi32>) -> tensor<{keep}x1xi32>
  return %rows : tensor<{keep}x1xi32>
}}
"""
    return _inlined(text, weights)


def _inlined(text: str, value: Value) -> Value:
    """Put the operations of a function of one argument here, and give its result."""
    module = ir.Module.parse(text, context())  # its operations live as long as it does
    body = module.body.operations[0].operation.regions[0].blocks[0]
    known: dict[Value, Value] = {body.arguments[0]: value}
    for op in [view.operation for view in body.operations]:
        if op.name == "func.return":
            return known[op.operands[0]]
        copy = op.clone().operation
        for position, operand in enumerate(op.operands):
            copy.operands[position] = known[operand]
        copy.attributes[MADE] = ir.UnitAttr.get(context())
        known |= dict(zip(op.results, copy.results, strict=True))
    raise AssertionError("a function returns")


def _taken(value: Value, positions: Value, axis: int, keep: int) -> Value:
    type_ = type_of(value)
    shape = (*type_.shape[:axis], keep, *type_.shape[axis + 1 :])
    others = [a for a in range(len(shape)) if a != axis]
    sizes = [1 if a == axis else size for a, size in enumerate(type_.shape)]
    numbers = (
        f"#stablehlo.gather<offset_dims = {others}, collapsed_slice_dims = [{axis}],"
        f" start_index_map = [{axis}], index_vector_dim = 1>"
    )
    made = ir.Operation.create(
        "stablehlo.gather",
        [mlir_type(TensorType(shape, type_.element))],
        [value, positions],
        {
            "dimension_numbers": ir.Attribute.parse(numbers, context()),
            "slice_sizes": ir.DenseI64ArrayAttr.get(sizes, context()),
            MADE: ir.UnitAttr.get(context()),
        },
    )
    return made.results[0]


_FORMS = ("stablehlo.reshape", "stablehlo.transpose", "stablehlo.convert")


@dataclass(frozen=True)
class Channels:
    """Axes that are one.

    Args:
        size: how many channels.
        axes: all of them, in an order that depends on the function alone.
        weights: the argument, or constant, by which it is decided which channels matter; with its axis.
    """

    size: int
    axes: Sequence[Axis]
    weights: Axis


def channels_of(reader: ir.Operation) -> Channels:
    """Find the channels that a product or a convolution sums over, and all that is tied to them.

    Args:
        reader: it reads a value, and weights which an argument or a constant holds.

    Raises:
        ScheduleError: it is no such operation, or the channels cannot be cut: something else depends on how
            many they are, or the function gives them, or takes them with its examples.
    """
    start = _summed(reader)
    every = _closed(start)
    values = {value for value, _ in every}
    if len(values) != len(every):
        raise ScheduleError("these channels lie along two axes of a value", "Keep them all.")
    return Channels(shape_of(start[0])[start[1]], every, _source(reader, every))


def _summed(reader: ir.Operation) -> Axis:
    if reader.name == "stablehlo.dot_general":
        numbers = stablehlo.DotDimensionNumbers(reader.attributes["dot_dimension_numbers"])
        if len(numbers.lhs_contracting_dimensions) == 1 and not list(numbers.lhs_batching_dimensions):
            return reader.operands[0], numbers.lhs_contracting_dimensions[0]
    if reader.name == "stablehlo.convolution":
        numbers = stablehlo.ConvDimensionNumbers(reader.attributes["dimension_numbers"])
        return reader.operands[0], numbers.input_feature_dimension
    raise ScheduleError(f"{reader.name} does not sum over channels", "Name a product or a convolution.")


def _closed(start: Axis) -> list[Axis]:
    """Follow the ties from an axis; raises ScheduleError where one operation has none for it."""
    found, waiting = {start: None}, [start]
    while waiting:
        value, axis = waiting.pop()
        users = [use.owner.operation for use in value.uses]
        made = maker(value)
        for op in (*users, made) if made is not None else users:
            if op.parent is None or op.parent.name != "func.func":
                raise ScheduleError("these channels go into a loop, or a branch", "Keep them all.")
            for other in _tied(op, (value, axis)):
                if other not in found:
                    found[other] = None
                    waiting.append(other)
    return list(found)


def _tied(op: ir.Operation, axis: Axis) -> list[Axis]:
    if op.name == "stablehlo.constant":
        return []
    with_it = list(filter(partial(_holds, axis), ties(op)))
    if not with_it:
        raise ScheduleError(f"{op.name} depends on how many channels there are", "Keep them all.")
    return [other for tie in with_it for other in tie]


def _holds(axis: Axis, tie: Tie) -> bool:
    return axis in tie


def _source(reader: ir.Operation, every: Sequence[Axis]) -> Axis:
    """Find the argument or constant that holds what a reader multiplies its channels by."""
    value: Value = reader.operands[1]
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _FORMS:
        value = value.owner.operation.operands[0]
    if isinstance(value.owner, ir.Block) or value.owner.operation.name == "stablehlo.constant":
        found = next((axis for axis in every if axis[0] == value), None)
        if found is not None:
            return found
    raise ScheduleError("the weights are computed", "Only those of an argument or a constant are cut.")


def ties(op: ir.Operation) -> list[Tie]:
    """List axes that are one. An axis of the operation that is in no tie cannot be cut."""
    if op.name in ELEMENTWISE:
        return list(_elementwise(op))
    rule = _RULES.get(op.name)
    return list(rule(op)) if rule else []


def _elementwise(op: ir.Operation) -> Iterator[Tie]:
    values = [op.results[0], *(value for value in op.operands if shape_of(value))]
    for axis in range(len(shape_of(op.results[0]))):
        yield tuple((value, axis) for value in values)


def _broadcast(op: ir.Operation) -> Iterator[Tie]:
    given, result = op.operands[0], op.results[0]
    to = integers(op, "broadcast_dimensions")
    from_ = {axis: position for position, axis in enumerate(to)}
    for axis, size in enumerate(shape_of(result)):
        position = from_.get(axis)
        if position is not None and shape_of(given)[position] == size:
            yield (result, axis), (given, position)
        else:
            yield ((result, axis),)


def _reshaped(op: ir.Operation) -> Iterator[Tie]:
    """Axes as long as before with as many elements before them, and so behind them."""
    given, result = op.operands[0], op.results[0]
    old, new = shape_of(given), shape_of(result)
    positions = {(prod(new[:axis]), size): axis for axis, size in enumerate(new) if size > 1}
    for axis, size in enumerate(old):
        to = positions.get((prod(old[:axis]), size))
        if to is not None:
            yield (result, to), (given, axis)


def _transposed(op: ir.Operation) -> Iterator[Tie]:
    for axis, position in enumerate(integers(op, "permutation")):
        yield (op.results[0], axis), (op.operands[0], position)


def _sliced(op: ir.Operation) -> Iterator[Tie]:
    names = ("start_indices", "limit_indices", "strides")
    window = zip(*(integers(op, name) for name in names), shape_of(op.operands[0]), strict=True)
    for axis, (start, limit, stride, size) in enumerate(window):
        if (start, limit, stride) == (0, size, 1):
            yield (op.results[0], axis), (op.operands[0], axis)


def _padded(op: ir.Operation) -> Iterator[Tie]:
    sides = ("edge_padding_low", "edge_padding_high", "interior_padding")
    for axis, widths in enumerate(zip(*(integers(op, side) for side in sides), strict=True)):
        if not any(widths):
            yield (op.results[0], axis), (op.operands[0], axis)


def _joined(op: ir.Operation) -> Iterator[Tie]:
    joined = ir.IntegerAttr(op.attributes["dimension"]).value
    for axis in range(len(shape_of(op.results[0]))):
        if axis != joined:
            yield tuple((value, axis) for value in (op.results[0], *op.operands))


def _reduced(op: ir.Operation) -> Iterator[Tie]:
    if len(op.results) != 1:
        return
    kept = [axis for axis in range(len(shape_of(op.operands[0]))) if axis not in integers(op, "dimensions")]
    for to, axis in enumerate(kept):
        yield (op.results[0], to), (op.operands[0], axis)


def _multiplied(op: ir.Operation) -> Iterator[Tie]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left, right = op.operands
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    yield from (((left, a), (right, b)) for a, b in summed)
    yield from (((op.results[0], i), (left, a), (right, b)) for i, (a, b) in enumerate(batch))
    position = len(batch)
    for side, value in enumerate((left, right)):
        bound = {pair[side] for pair in (*batch, *summed)}
        for axis in range(len(shape_of(value))):
            if axis not in bound:
                yield (op.results[0], position), (value, axis)
                position += 1


def _convolved(op: ir.Operation) -> Iterator[Tie]:
    """Features of a plain convolution; of a depthwise one all are one, and its groups are counted anew."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    (image, kernel), result = op.operands, op.results[0]
    inputs, outputs = (image, numbers.input_feature_dimension), (result, numbers.output_feature_dimension)
    of_kernel = (kernel, numbers.kernel_output_feature_dimension)
    given = plain_convolution(op)
    yield (image, numbers.input_batch_dimension), (result, numbers.output_batch_dimension)
    if given.groups == 1:
        yield inputs, (kernel, numbers.kernel_input_feature_dimension)
        yield outputs, of_kernel
    elif given.depthwise:
        yield inputs, outputs, of_kernel


_RULES: Mapping[str, Callable[[ir.Operation], Iterator[Tie]]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshaped,
    "stablehlo.transpose": _transposed,
    "stablehlo.slice": _sliced,
    "stablehlo.pad": _padded,
    "stablehlo.concatenate": _joined,
    "stablehlo.reduce": _reduced,
    "stablehlo.dot_general": _multiplied,
    "stablehlo.convolution": _convolved,
}
