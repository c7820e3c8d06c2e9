"""Edit `DropChannels`: a product reads fewer channels, and what makes and carries them has fewer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.axes import Axis, Tie, ties
from planish.levels.hlo.edits.edit import VariantRewrite, where_legal
from planish.levels.hlo.edits.editable import EditableModule
from planish.levels.hlo.edits.lower import plain_convolution
from planish.levels.hlo.ir.mlir import (
    FLOAT_BITS,
    Value,
    context,
    conv_numbers,
    dot_axes,
    integer,
    ir,
    maker,
    mlir_type,
    set_slice_limit,
    shape_of,
    type_of,
)

SHARES = (7 / 8, 3 / 4, 1 / 2)
"""Of the channels that are kept."""

FEWEST = 8
"""Fewer channels than twice these are left alone: vectors of a processor have as many numbers."""


@dataclass(frozen=True)
class DropChannels(VariantRewrite):
    """Restrict the sum of a product or a convolution to the channels whose weights are largest.

    Producers and consumers are cut alike: their weights, the scales and shifts between, depthwise kernels,
    and through sums all that is added. It is done when all else is edited, before images are cropped and
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
        live = module.live()
        uids = (uid for uid in module.blocks[""] if uid in live and module.is_target(uid))
        found = where_legal(uids, lambda uid: channels_of(module.op(uid)))
        first: dict[frozenset[Axis], tuple[str, int]] = {}
        for uid, channels in found.items():
            if channels.size >= 2 * FEWEST:
                first.setdefault(frozenset(channels.axes), (uid, channels.size))
        return dict(first.values())

    @classmethod
    def variants(cls, uid: str, found: int) -> list[Self]:
        """List edits that keep a share of a number of channels, in steps of `FEWEST`, the mildest first."""
        kept = {int(found * share) // FEWEST * FEWEST: None for share in SHARES}
        return [cls(uid, keep) for keep in kept if 0 < keep < found]


MADE = "planish.width"
"""Marks what is made here, while it is made."""


def cut_channels(block: ir.Block, kept: Sequence[tuple[Channels, int]]) -> None:
    """Restrict a function's body to the channels whose weights are largest; of the same ones the last counts.

    It is to be verified and numbered afterwards. Which they are is found when the module runs, by the sums of
    the squares of their weights: it takes a sort of so many numbers as there are channels, for any weights.

    Raises:
        ScheduleError: there are too few channels, or their weights are not floats.
    """
    now: dict[Value, Value] = {}
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown(context()):
        for channels, keep in {frozenset(each.axes): (each, keep) for each, keep in kept}.values():
            if not 0 < keep < channels.size:
                what = f"{keep} of {channels.size} channels cannot be kept"
                raise ScheduleError(what, f"Keep 1 to {channels.size - 1}.")
            if type_of(channels.weights[0]).element not in FLOAT_BITS:
                raise ScheduleError("the weights of these channels are not floats", "Keep them all.")
            _cut(channels, keep, now)
    for op in block.operations:
        if MADE in op.attributes:
            del op.attributes[MADE]


def _cut(channels: Channels, keep: int, now: dict[Value, Value]) -> None:
    """Cut some channels; what is left of arguments and constants is noted."""
    # By all weights, also where an earlier cut has left a part of them along another axis.
    positions = _largest(_hoisted(channels.weights[0]), channels.weights[1], keep)
    for value, axis in channels.axes:
        if _is_source(value):
            before = now.get(value, value)
            now[value] = _taken(before if value in now else _hoisted(value), positions, axis, keep)
            # In all users but those that compute the part.
            for use in list(before.uses):
                if MADE not in use.owner.attributes:
                    use.owner.operation.operands[use.operand_number] = now[value]
        else:
            _retype(value, axis, keep)


def _is_source(value: Value) -> bool:
    return isinstance(value.owner, ir.Block) or value.owner.operation.name == "stablehlo.constant"


def _retype(value: Value, axis: int, keep: int) -> None:
    op = ir.OpResult(value).owner.operation
    value.set_type(mlir_type(type_of(value).with_extent(axis, keep)))
    if op.name == "stablehlo.slice":
        set_slice_limit(op, axis, keep)
    if op.name == "stablehlo.convolution" and integer(op, "feature_group_count") > 1:
        groups = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, op.context), keep)
        op.attributes["feature_group_count"] = groups


def _hoisted(value: Value) -> Value:
    """Return a source at the beginning of the function: an argument, or a copy of a constant."""
    if isinstance(value.owner, ir.Block):
        return value
    copy = value.owner.operation.clone().operation
    copy.attributes[MADE] = ir.UnitAttr.get(context())
    return copy.results[0]


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
    others = [a for a in range(len(type_.shape)) if a != axis]
    numbers = (
        f"#stablehlo.gather<offset_dims = {others}, collapsed_slice_dims = [{axis}],"
        f" start_index_map = [{axis}], index_vector_dim = 1>"
    )
    made = ir.Operation.create(
        "stablehlo.gather",
        [mlir_type(type_.with_extent(axis, keep))],
        [value, positions],
        {
            "dimension_numbers": ir.Attribute.parse(numbers, context()),
            "slice_sizes": ir.DenseI64ArrayAttr.get(type_.with_extent(axis, 1).shape, context()),
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
        axes = dot_axes(reader)
        if len(axes.summed[0]) == 1 and not axes.batching[0]:
            return reader.operands[0], axes.summed[0][0]
    if reader.name == "stablehlo.convolution":
        return reader.operands[0], conv_numbers(reader).input_feature_dimension
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
    found = [tie for tie in channel_ties(op) if axis in tie]
    if not found or len(op.results) != 1:
        raise ScheduleError(f"{op.name} depends on how many channels there are", "Keep them all.")
    return [other for tie in found for other in tie]


def _source(reader: ir.Operation, every: Sequence[Axis]) -> Axis:
    """Find the argument or constant that holds what a reader multiplies its channels by."""
    value: Value = reader.operands[1]
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _FORMS:
        value = value.owner.operation.operands[0]
    if _is_source(value):
        found = next((axis for axis in every if axis[0] == value), None)
        if found is not None:
            return found
    raise ScheduleError("the weights are computed", "Only those of an argument or a constant are cut.")


def channel_ties(op: ir.Operation) -> list[Tie]:
    """List axes that are one, of convolutions too."""
    return list(_convolution_ties(op)) if op.name == "stablehlo.convolution" else ties(op)


def _convolution_ties(op: ir.Operation) -> Iterator[Tie]:
    """List features of a plain convolution; of a depthwise one all are one."""
    numbers = conv_numbers(op)
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
