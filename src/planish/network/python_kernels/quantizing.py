"""Rounding of floats to integers of 8 bits or bfloat16, with a margin around images."""

from __future__ import annotations

from math import prod
from typing import Any

from planish.network.ir import Array, Network, Node
from planish.network.python_kernels.intrinsics import bits_of_float
from planish.network.python_kernels.program import PythonKernel, PythonProgram, divisible
from planish.network.python_kernels.scalars import bfloat16_of_float

QUANTIZE = "QuantizeInput"
"""Operator of a node that rounds x * `scale` + `zero` to integers from 0 to 255; with `pairs`, x to bfloat16.

Its result has an element for each four or two of them, along the last dimension of a matrix, or the channels
of an image, which is made to be [n, y, x, c]; what is missing in the last element is `zero`, as the margin
`pads`, which has the elements before and after the image in each dimension.
"""
_WHOLE, _BITS = 8388608.0, 0x4B000000
"""Number between whose neighbors are whole numbers, and its bits: adding it rounds, to even."""


def rounded(value: Any, scale: Any, zero: Any, pairs: Any) -> Any:
    """Round to an integer from 0 to 255, or return the bits of the nearest bfloat16."""
    return bfloat16_of_float(value) if pairs else _integer(value, scale, zero)


def _integer(value: Any, scale: Any, zero: Any) -> Any:
    return bits_of_float(min(max(value * scale + zero, 0.0), 255.0) + _WHOLE) - _BITS


def quantize_row(
    x: Array, out: Array, width: int, channels: int, size: int, step: int, step_channel: int,
    scale: float, zero: int, pairs: int,
) -> None:  # fmt: skip
    """Round a row; see `quantize`."""
    if step_channel == 1 and size == channels:
        for j in range(width * channels):
            out[j] = rounded(x[j], scale, zero, pairs)
    else:
        for i in range(width):
            for c in range(channels):
                out[i * size + c] = rounded(x[i * step + c * step_channel], scale, zero, pairs)
            for c in range(channels, size):
                out[i * size + c] = zero


@divisible("rows")
def quantize(
    x: Array, out: Array, rows: int, height: int, above: int, below: int, width: int, left: int, right: int,
    channels: int, size: int, step_row: int, step: int, step_channel: int, scale: float, zero: int,
    pairs: int,
) -> None:  # fmt: skip
    """Round images, by rows of the result.

    Args:
        x: images.
        out: likewise, with a margin.
        rows: of all results.
        height, above, below: rows of an image, and of its margin.
        width, left, right: elements of a row, and of its margin.
        channels, size: of an element, and with what is missing in the last one.
        step_row, step, step_channel: numbers from a row, element or channel to the next one.
        scale, zero: of the integers.
        pairs: 1 for bfloat16.
    """
    long = (left + width + right) * size
    for row in range(rows):
        image = row // (above + height + below)
        y = row % (above + height + below) - above
        target = out[row * long :]
        if y < 0 or y >= height:
            for j in range(long):
                target[j] = zero
        else:
            source = x[image * height * width * channels + y * step_row :]
            for j in range(left * size):
                target[j] = zero
            inner = target[left * size :]
            quantize_row(source, inner, width, channels, size, step, step_channel, scale, zero, pairs)
            rest = inner[width * size :]
            for j in range(right * size):
                rest[j] = zero


def write_quantize(network: Network, node: Node) -> PythonKernel:
    """Write the rounding of a matrix or of images."""
    x, attributes = node.inputs[0], node.attributes
    shape, pairs = network.shape(x), attributes.get("pairs", False)
    if pads := attributes.get("pads"):
        batch, channels, height, width = shape
        (above, below), (left, right) = pads
    else:
        batch, height, width, channels = 1, prod(shape[:-1]), 1, shape[-1]
        above = below = left = right = 0
    last = not pads or x in network.channels_last or height * width == 1
    constants = {
        "rows": batch * (above + height + below), "height": height, "above": above, "below": below,
        "width": width, "left": left, "right": right,
        "channels": channels, "size": channels + -channels % (2 if pairs else 4),
        "step_row": width * channels if last else width, "step": channels if last else 1,
        "step_channel": 1 if last else height * width,
        "scale": attributes.get("scale", 1.0), "zero": attributes.get("zero", 0), "pairs": int(pairs),
    }  # fmt: skip
    arrays = ("x", "float32"), ("out", "uint16" if pairs else "uint8")
    size = network.types[x].size
    program = PythonProgram(quantize, arrays, tuple(constants.items()), flops=4 * size)
    return PythonKernel((node,), program, {"x": x}, {"out": node.output})
