"""The forms of a convolution, which compute the same to rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Protocol

from planish.core import ScheduleError
from planish.hlo.ir import TensorType, ir
from planish.hlo.lowering.plain_convolution import PlainConvolution, Value, plain_convolution
from planish.hlo.tiling.axes import type_of


class Write(Protocol):
    """Writes an operation, and gives its result."""

    def __call__(
        self, name: str, type_: TensorType, operands: Sequence[Value], attributes: Mapping[str, Any] = ...
    ) -> Value: ...


def forms_of(op: ir.Operation) -> list[str]:
    """Name the forms that an operation may be written in: none where it is no plain convolution."""
    try:
        found = plain_convolution(op)
    except ScheduleError:
        return []
    if found.groups == 1:
        return ["product"]
    return ["slices"] if found.depthwise else []


def as_product(write: Write, given: PlainConvolution) -> Value:
    """Write one product: of what the kernel meets at each place, side by side, and the kernel as a matrix.

    A kernel of one element in space meets the features of one place: these are not copied.
    """
    kernel = ordered(write, given.kernel, given.kernel_order)
    *space, inputs, outputs = type_of(kernel).shape
    parts = [part for part, _ in _windows(write, given, space)]
    shape, element = type_of(parts[0]).shape, type_of(parts[0]).element
    met = TensorType((*shape[:-1], prod(space) * inputs), element)
    last = len(shape) - 1
    # The parts come in the order of the kernel's elements, so that they meet the rows of its matrix.
    beside = parts[0] if len(parts) == 1 else write("concatenate", met, parts, {"dimension": f"{last} : i64"})
    matrix = write("reshape", TensorType((prod(space) * inputs, outputs), element), [kernel])
    numbers = f"#stablehlo.dot<lhs_contracting_dimensions = [{last}], rhs_contracting_dimensions = [0]>"
    result = TensorType((*shape[:-1], outputs), element)
    found = write("dot_general", result, [beside, matrix], {"dot_dimension_numbers": numbers})
    return ordered(write, found, given.back)


def as_slices(write: Write, given: PlainConvolution) -> Value:
    """Write a sum of products, one for each element of the kernel; each feature is convolved alone."""
    kernel = ordered(write, given.kernel, given.kernel_order)
    *space, _, features = type_of(kernel).shape
    element, total = type_of(kernel).element, None
    for part, place in _windows(write, given, space):
        type_ = type_of(part)
        limits = [*(at + 1 for at in place), 1, features]
        ones = {"strides": [1] * len(limits)}
        bounds = {"start_indices": [*place, 0, 0], "limit_indices": limits, **ones}
        tap = write("slice", TensorType((1,) * (len(space) + 1) + (features,), element), [kernel], bounds)
        row = write("reshape", TensorType((features,), element), [tap])
        wide = write("broadcast_in_dim", type_, [row], {"broadcast_dimensions": [len(type_.shape) - 1]})
        term = write("multiply", type_, [part, wide])
        total = term if total is None else write("add", type_, [total, term])
    assert total is not None
    return ordered(write, total, given.back)


FORMS: Mapping[str, Callable[[Write, PlainConvolution], Value]] = {"product": as_product, "slices": as_slices}
"""Name of a form to what writes it."""


def _windows(
    write: Write, given: PlainConvolution, space: Sequence[int]
) -> Iterator[tuple[Value, tuple[int, ...]]]:
    """Give for each element of a kernel what it meets, and its place in the kernel."""
    image = _padded(write, ordered(write, given.image, given.order), given.padding)
    batch, *sides, features = type_of(image).shape
    reach = [(size - 1) * apart for size, apart in zip(space, given.dilation, strict=True)]
    # The extent of the result, by the formula of convolutions: padding is in the sides already.
    kept = [(s - r - 1) // by + 1 for s, r, by in zip(sides, reach, given.strides, strict=True)]
    type_ = TensorType((batch, *kept, features), type_of(image).element)
    for place in product(*map(range, space)):
        starts = [at * apart for at, apart in zip(place, given.dilation, strict=True)]
        ends = [start + (n - 1) * by + 1 for start, n, by in zip(starts, kept, given.strides, strict=True)]
        bounds = {"start_indices": [0, *starts, 0], "limit_indices": [batch, *ends, features]}
        # A kernel of one element without strides meets all of the image: a slice of all would be a copy.
        if type_ == type_of(image):
            yield image, place
        else:
            yield write("slice", type_, [image], {**bounds, "strides": [1, *given.strides, 1]}), place


def _padded(write: Write, image: Value, padding: Sequence[tuple[int, int]]) -> Value:
    if not any(map(any, padding)):
        return image
    batch, *sides, features = type_of(image).shape
    element = type_of(image).element
    wide = [side + low + high for side, (low, high) in zip(sides, padding, strict=True)]
    scalar = TensorType((), element)
    zero = write("constant", scalar, [], {"value": f"dense<{0.0 if 'f' in element else 0}> : {scalar}"})
    ends = {
        "edge_padding_low": [0, *(low for low, _ in padding), 0],
        "edge_padding_high": [0, *(high for _, high in padding), 0],
        "interior_padding": [0] * (len(sides) + 2),
    }
    return write("pad", TensorType((batch, *wide, features), element), [image, zero], ends)


def ordered(write: Write, value: Value, order: Sequence[int]) -> Value:
    """Put a value's dimensions into an order, by a transpose where it is another."""
    if list(order) == sorted(order):
        return value
    type_ = type_of(value)
    turned = TensorType(tuple(type_.shape[axis] for axis in order), type_.element)
    return write("transpose", turned, [value], {"permutation": order})
