"""Rewriting a function so that it computes some of its channels alone."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import ScheduleError
from planish.hlo.ir import TensorType, ir, mlir_type
from planish.hlo.ir.mlir import FLOAT_BITS, context
from planish.hlo.tiling.axes import integers, type_of
from planish.hlo.width.channels import Channels
from planish.hlo.width.ties import Value

MADE = "planish.width"
"""Marks what is made here, while it is made."""


def kept_channels(block: ir.Block, kept: Sequence[tuple[Channels, int]]) -> None:
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
        for channels, keep in {channels.axes: (channels, keep) for channels, keep in kept}.values():
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
    places = _largest(_hoisted(channels.weights[0]), channels.weights[1], keep)
    for value, axis in channels.axes:
        if _is_source(value):
            before = now.get(value, value)
            now[value] = _taken(before if value in now else _hoisted(value), places, axis, keep)
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
    """Give a source where the function begins: an argument, or a copy of a constant."""
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
    """Give the places of the channels whose weights are largest, as `keep` rows of one whole number."""
    type_ = type_of(weights)
    size, element = type_.shape[axis], type_.element
    others = [a for a in range(len(type_.shape)) if a != axis]
    text = f"""
func.func @largest(%w: {type_}) -> tensor<{keep}x1xi32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<{element}>
  %squares = stablehlo.multiply %w, %w : {type_}
  %sums = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = {others}
    : ({type_}, tensor<{element}>) -> tensor<{size}x{element}>
  %places = stablehlo.iota dim = 0 : tensor<{size}xi32>
  %sorted:2 = "stablehlo.sort"(%sums, %places) <{{dimension = 0 : i64, is_stable = true}}> ({{
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
        for place, operand in enumerate(op.operands):
            copy.operands[place] = known[operand]
        copy.attributes[MADE] = ir.UnitAttr.get(context())
        known |= dict(zip(op.results, copy.results, strict=True))
    raise AssertionError("a function returns")


def _taken(value: Value, places: Value, axis: int, keep: int) -> Value:
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
        [value, places],
        {
            "dimension_numbers": ir.Attribute.parse(numbers, context()),
            "slice_sizes": ir.DenseI64ArrayAttr.get(sizes, context()),
            MADE: ir.UnitAttr.get(context()),
        },
    )
    return made.results[0]
