"""Edits of the precision: `Narrow`, to narrower floats, and `Quantize`, to 8-bit whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import GroupRewrite
from planish.levels.hlo.edits.editable import EditableModule, OpBuilder
from planish.levels.hlo.edits.resize import Resize
from planish.levels.hlo.ir.mlir import (
    FLOAT_BITS,
    PRODUCTS,
    TensorType,
    Value,
    conv_numbers,
    dot_axes,
    integer,
    ir,
    type_of,
    uid_of,
)


@dataclass(frozen=True)
class Narrow(GroupRewrite):
    """Narrow the float operands of products and convolutions; the types of sums and results stay.

    ::

        y: f32 = dot(a, b)   -- Narrow(("y",), "bf16") -->   y: f32 = dot(convert(a): bf16, convert(b): bf16)

    Args:
        ops: the products and convolutions.
        element: the type of what they read, one of `FLOAT_BITS`, of fewer bits than they read now.
    """

    element: str = "bf16"

    def apply(self, module: EditableModule) -> None:
        if self.element not in FLOAT_BITS:
            raise ScheduleError(
                f"unknown type of floats '{self.element}'", f"Known: {', '.join(FLOAT_BITS)}."
            )
        super().apply(module)

    def rewrite(self, module: EditableModule, uid: str, id_prefix: str) -> None:
        if not can_narrow(module, uid, self.element):
            raise ScheduleError(f"operation '{uid}' is not a product of floats wider than {self.element}")
        convert: Resize = (("convert", self.element),)
        for index, operand in enumerate(list(module.op(uid).operands)):
            made = module.resized((module.name(operand), convert), uid, f"{id_prefix}.{index}")
            module.retype_operand(uid, index, made)

    @classmethod
    def match(cls, module: EditableModule) -> tuple[str, ...]:
        """Find the products and convolutions that the results need and that may read narrower floats."""
        return tuple(uid for uid in module.targets(*PRODUCTS) if can_narrow(module, uid))


def can_narrow(module: EditableModule, uid: str, element: str = "bf16") -> bool:
    """Return whether an operation is a product or convolution of wider floats that gives floats."""
    info = module.infos[uid]
    bits = [FLOAT_BITS.get(type_.element, 0) if type_ else 0 for type_ in (*info.operands, *info.results)]
    wider = all(each > FLOAT_BITS[element] for each in bits[: len(info.operands)])
    return info.name in PRODUCTS and wider and all(bits)


MOST = 127
"""The largest whole number that is used."""

LONGEST = (2**31 - 1) // MOST**2
"""Products of such numbers that fit into a sum of 32 bits."""

LEAST = "1.0e-30"
"""Instead of the largest number where all are zero."""


@dataclass(frozen=True)
class Quantize(GroupRewrite):
    """Quantize products and convolutions: they multiply 8-bit integers, and sum them in 32 bits.

    Each operand is divided by its own largest number: a product's of each row and each column, a
    convolution's of each image and each of its outputs. So examples stay apart, and a batch may be computed
    in tiles. The scales are found when the module runs, so the edit holds for any weights.

    ::

        y = x @ w   -- Quantize(("y",)) -->   y = (int8(x / s) @ int8(w / t)) * s * t

    Args:
        ops: products and convolutions of 32-bit floats.
    """

    def rewrite(self, module: EditableModule, uid: str, id_prefix: str) -> None:
        why = _refused(module, uid)
        if why:
            raise ScheduleError(f"operation '{uid}' {why}", "Leave it as it is.")
        module.replace(uid, [_quantized(module, uid, OpBuilder(module, uid, id_prefix))])

    @classmethod
    def match(cls, module: EditableModule) -> tuple[str, ...]:
        """Find the products and convolutions that the results need and that may multiply whole numbers."""
        return tuple(uid for uid in module.targets(*PRODUCTS) if not _refused(module, uid))


def _refused(module: EditableModule, uid: str) -> str:
    """Return why an operation cannot multiply whole numbers; empty where it can."""
    info = module.infos[uid]
    if info.name not in PRODUCTS:
        return f"({info.name}) is not a product"
    if any(type_ is None or type_.element != "f32" for type_ in (*info.operands, *info.results)):
        return "is not a product of 32-bit floats"
    op = module.op(uid)
    if info.name == "stablehlo.convolution" and integer(op, "batch_group_count") != 1:
        return "is a convolution of groups of the batch"
    one, two = (type_of(value).shape for value in op.operands)
    kept = _kept(op)
    if prod(size for axis, size in enumerate(two) if axis not in kept[1]) > LONGEST:
        return f"sums more than {LONGEST} products"
    return "" if one and two else "multiplies scalars"


def _kept(op: ir.Operation) -> tuple[dict[int, int], dict[int, int]]:
    """Return the dimensions of both operands that have scales of their own, with those of the result."""
    if op.name == "stablehlo.convolution":
        numbers = conv_numbers(op)
        return (
            {numbers.input_batch_dimension: numbers.output_batch_dimension},
            {numbers.kernel_output_feature_dimension: numbers.output_feature_dimension},
        )
    axes = dot_axes(op)
    left, right = ({axis: i for i, axis in enumerate(batching)} for batching in axes.batching)
    left |= {axis: i for i, axis in enumerate(axes.free[0], len(left))}
    right |= {axis: i for i, axis in enumerate(axes.free[1], len(left))}
    return left, right


def _quantized(module: EditableModule, uid: str, build: OpBuilder) -> Value:
    op = module.op(uid)
    result = type_of(op.results[0])
    made = [_whole(module, build, value, kept) for value, kept in zip(op.operands, _kept(op), strict=True)]
    (sums,) = build.again(op, [whole for whole, _ in made], [TensorType(result.shape, "i32")])
    value = build("convert", result, [sums])
    for (_, scale), kept in zip(made, _kept(op), strict=True):
        to = [kept[axis] for axis in sorted(kept)]
        wide = build("broadcast_in_dim", result, [scale], {"broadcast_dimensions": to})
        value = build("multiply", result, [value, wide])
    return value


def _whole(
    module: EditableModule, build: OpBuilder, value: Value, kept: dict[int, int]
) -> tuple[Value, Value]:
    """Write what a value is in whole numbers, and its scales."""
    type_, axes = type_of(value), sorted(kept)
    small = TensorType(tuple(type_.shape[axis] for axis in axes), type_.element)
    gone = [axis for axis in range(len(type_.shape)) if axis not in kept]
    largest, init = build.reduce_max(build("abs", type_, [value]), gone, small)
    module.frozen |= {uid_of(ir.OpResult(init).owner)}  # no edit changes an init value
    some = build("maximum", small, [largest, _filled(build, small, LEAST)])
    scale = build("divide", small, [some, _filled(build, small, f"{MOST}.0")])
    wide = build("broadcast_in_dim", type_, [scale], {"broadcast_dimensions": axes})
    near = build("round_nearest_even", type_, [build("divide", type_, [value, wide])])
    return build("convert", TensorType(type_.shape, "i8"), [near]), scale


def _filled(build: OpBuilder, type_: TensorType, number: str) -> Value:
    return build("constant", type_, [], {"value": f"dense<{number}> : {type_}"})
