"""Edit `Lower`: a convolution as a product of matrices or as shifted products; and what a convolution is.

The forms compute the same, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import Rewrite
from planish.levels.hlo.edits.editable import EditableModule, OpBuilder
from planish.levels.hlo.ir.mlir import (
    TensorType,
    Value,
    conv_numbers,
    integer,
    ir,
    padding_of,
    shape_of,
    type_of,
    window,
)


@dataclass(frozen=True)
class Lower(Rewrite):
    """Write a convolution as products of matrices, or as shifted products, where a compiler is slow at it.

    ::

        y = convolution(x, k: 3x3)   -- Lower("y", "product") -->
        y = concatenate(x[0:, 0:], x[0:, 1:], ..., x[2:, 2:]) @ reshape(k)

        y = convolution(x, k), depthwise   -- Lower("y", "slices") -->
        y = x[0:, 0:] * k[0, 0] + x[0:, 1:] * k[0, 1] + ... + x[2:, 2:] * k[2, 2]

    The sums may be taken in another order, so the answer stays to rounding. The paper has nothing like it.

    Args:
        op: the convolution.
        form: one of `planish.levels.hlo.edits.lower.FORMS`: "product", or "slices" where it is depthwise.
    """

    exact = True

    op: str
    form: str

    def apply(self, module: EditableModule) -> None:
        module.require_target(self.op)
        op = module.op(self.op)
        if self.form not in FORMS:
            raise ScheduleError(f"a convolution has no form '{self.form}'", f"Known: {', '.join(FORMS)}.")
        if self.form not in forms_of(op):
            raise ScheduleError(f"operation '{self.op}' ({op.name}) has no form '{self.form}'")
        builder = OpBuilder(module, self.op, self.id_prefix)
        value = FORMS[self.form](builder, plain_convolution(op))
        module.replace(self.op, [value])

    @classmethod
    def match(cls, module: EditableModule) -> dict[str, list[str]]:
        """Find the convolutions that the results need and that have other forms, with these."""
        convolutions = module.targets("stablehlo.convolution")
        return {uid: forms for uid in convolutions if (forms := forms_of(module.op(uid)))}

    @classmethod
    def enumerate(cls, module: EditableModule) -> list[Self]:
        """List all forms of all convolutions."""
        return [cls(uid, form) for uid, forms in cls.match(module).items() for form in forms]


def forms_of(op: ir.Operation) -> list[str]:
    """Name the forms that an operation may be written in: none where it is not a plain convolution."""
    try:
        found = plain_convolution(op)
    except ScheduleError:
        return []
    if found.groups == 1:
        return ["product"]
    return ["slices"] if found.depthwise else []


def as_product(build: OpBuilder, given: PlainConvolution) -> Value:
    """Write one product: of what the kernel meets at each position, side by side, and the kernel as a matrix.

    A kernel of one element in space meets the features of one pixel: these are not copied.
    """
    kernel = ordered(build, given.kernel, given.kernel_order)
    *space, inputs, outputs = type_of(kernel).shape
    parts = [part for part, _ in _windows(build, given, space)]
    shape, element = type_of(parts[0]).shape, type_of(parts[0]).element
    met = TensorType((*shape[:-1], prod(space) * inputs), element)
    last = len(shape) - 1
    # The parts come in the order of the kernel's elements, so that they meet the rows of its matrix.
    beside = parts[0] if len(parts) == 1 else build("concatenate", met, parts, {"dimension": f"{last} : i64"})
    matrix = build("reshape", TensorType((prod(space) * inputs, outputs), element), [kernel])
    numbers = f"#stablehlo.dot<lhs_contracting_dimensions = [{last}], rhs_contracting_dimensions = [0]>"
    result = TensorType((*shape[:-1], outputs), element)
    found = build("dot_general", result, [beside, matrix], {"dot_dimension_numbers": numbers})
    return ordered(build, found, given.back)


def as_slices(build: OpBuilder, given: PlainConvolution) -> Value:
    """Write a sum of products, one for each element of the kernel; each feature is convolved alone."""
    kernel = ordered(build, given.kernel, given.kernel_order)
    *space, _, features = type_of(kernel).shape
    element, total = type_of(kernel).element, None
    for part, position in _windows(build, given, space):
        type_ = type_of(part)
        limits = [*(at + 1 for at in position), 1, features]
        ones = {"strides": [1] * len(limits)}
        bounds = {"start_indices": [*position, 0, 0], "limit_indices": limits, **ones}
        tap = build("slice", TensorType((1,) * (len(space) + 1) + (features,), element), [kernel], bounds)
        row = build("reshape", TensorType((features,), element), [tap])
        wide = build("broadcast_in_dim", type_, [row], {"broadcast_dimensions": [len(type_.shape) - 1]})
        term = build("multiply", type_, [part, wide])
        total = term if total is None else build("add", type_, [total, term])
    assert total is not None
    return ordered(build, total, given.back)


FORMS: Mapping[str, Callable[[OpBuilder, PlainConvolution], Value]] = {
    "product": as_product,
    "slices": as_slices,
}
"""Name of a form to what writes it."""


def _windows(
    build: OpBuilder, given: PlainConvolution, space: Sequence[int]
) -> Iterator[tuple[Value, tuple[int, ...]]]:
    """Yield for each element of a kernel what it meets, and its index in the kernel."""
    image = _padded(build, ordered(build, given.image, given.order), given.padding)
    batch, *sides, features = type_of(image).shape
    reach = [(size - 1) * apart for size, apart in zip(space, given.dilation, strict=True)]
    # The extent of the result, by the formula of convolutions: padding is in the sides already.
    kept = [(s - r - 1) // by + 1 for s, r, by in zip(sides, reach, given.strides, strict=True)]
    type_ = TensorType((batch, *kept, features), type_of(image).element)
    for position in product(*map(range, space)):
        starts = [at * apart for at, apart in zip(position, given.dilation, strict=True)]
        ends = [start + (n - 1) * by + 1 for start, n, by in zip(starts, kept, given.strides, strict=True)]
        bounds = {"start_indices": [0, *starts, 0], "limit_indices": [batch, *ends, features]}
        # A kernel of one element without strides meets all of the image: a slice of all would be a copy.
        if type_ == type_of(image):
            yield image, position
        else:
            yield build("slice", type_, [image], {**bounds, "strides": [1, *given.strides, 1]}), position


def _padded(build: OpBuilder, image: Value, padding: Sequence[tuple[int, int]]) -> Value:
    if not any(map(any, padding)):
        return image
    batch, *sides, features = type_of(image).shape
    element = type_of(image).element
    wide = [side + low + high for side, (low, high) in zip(sides, padding, strict=True)]
    scalar = TensorType((), element)
    zero = build("constant", scalar, [], {"value": f"dense<{0.0 if 'f' in element else 0}> : {scalar}"})
    ends = {
        "edge_padding_low": [0, *(low for low, _ in padding), 0],
        "edge_padding_high": [0, *(high for _, high in padding), 0],
        "interior_padding": [0] * (len(sides) + 2),
    }
    return build("pad", TensorType((batch, *wide, features), element), [image, zero], ends)


def ordered(build: OpBuilder, value: Value, order: Sequence[int]) -> Value:
    """Put a value's dimensions into an order, by a transpose where it is another."""
    if list(order) == sorted(order):
        return value
    type_ = type_of(value)
    turned = TensorType(tuple(type_.shape[axis] for axis in order), type_.element)
    return build("transpose", turned, [value], {"permutation": order})


@dataclass(frozen=True)
class PlainConvolution:
    """A convolution.

    Args:
        image: what it reads.
        kernel: its weights.
        order: how the image's dimensions are put into the order batch, space, features.
        kernel_order: how the kernel's are put into the order space, inputs, outputs.
        back: how the result's dimensions are put from the order batch, space, features into its own.
        strides: in space.
        dilation: how far a kernel's elements are apart.
        padding: before the first and after the last, for each dimension of space.
        groups: of features.
    """

    image: Value
    kernel: Value
    order: tuple[int, ...]
    kernel_order: tuple[int, ...]
    back: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int

    @property
    def depthwise(self) -> bool:
        """True where each feature is convolved alone."""
        inputs, outputs = (shape_of(self.kernel)[axis] for axis in self.kernel_order[-2:])
        return inputs == 1 and self.groups == outputs == shape_of(self.image)[self.order[-1]]


def plain_convolution(op: ir.Operation) -> PlainConvolution:
    """Read a convolution; raises ScheduleError where it is none, or one that is not written otherwise."""
    if op.name != "stablehlo.convolution":
        raise ScheduleError(f"expected a convolution, got {op.name}")
    numbers = conv_numbers(op)
    inner, outer = list(numbers.input_spatial_dimensions), list(numbers.output_spatial_dimensions)
    result = [numbers.output_batch_dimension, *outer, numbers.output_feature_dimension]
    image, kernel = op.operands
    found = PlainConvolution(
        image,
        kernel,
        (numbers.input_batch_dimension, *inner, numbers.input_feature_dimension),
        (
            *numbers.kernel_spatial_dimensions,
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ),
        tuple(result.index(axis) for axis in range(len(result))),
        tuple(window(op, "window_strides", len(inner))),
        tuple(window(op, "rhs_dilation", len(inner))),
        tuple(padding_of(op, len(inner))),
        integer(op, "feature_group_count"),
    )
    turned = "window_reversal" in op.attributes and any(
        ir.DenseBoolArrayAttr(op.attributes["window_reversal"])
    )
    # An image whose elements are apart, or batches in groups, come from gradients: they have no such form.
    apart = any(step != 1 for step in window(op, "lhs_dilation", len(inner)))
    cropped = any(size < 0 for pair in found.padding for size in pair)
    if turned or apart or cropped or integer(op, "batch_group_count") != 1:
        raise ScheduleError("such a convolution is not written otherwise", "It is one of a gradient.")
    return found
