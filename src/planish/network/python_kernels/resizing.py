"""Resize: one dimension after the other, by tables of elements and of their shares."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from planish.network.ir import Array, Network, Node
from planish.network.python_kernels.intrinsics import fused
from planish.network.python_kernels.program import PythonKernel, PythonProgram, divisible

RESIZED = "ResizeAxis"
"""The operator of a node that resizes one dimension: attributes `axis`, `table` and `shares`."""

_CUBIC = -0.75


@divisible("before", "m")
def resize_rows(
    x: Array, table: Array, shares: Array, out: Array, before: int, n: int, m: int, after: int, taps: int
) -> None:
    """Compute weighted sums of `taps` elements of a dimension that is not the last one."""
    for i in range(before):
        for k in range(m):
            a = x[(i * n + table[k * taps]) * after :]
            s = shares[k * taps]
            p = (i * m + k) * after
            if taps == 1:
                for j in range(after):
                    out[p + j] = s * a[j]
            else:
                b = x[(i * n + table[k * taps + 1]) * after :]
                t = shares[k * taps + 1]
                for j in range(after):
                    out[p + j] = fused(s, a[j], t * b[j])
            for e in range(2, taps):
                c = x[(i * n + table[k * taps + e]) * after :]
                u = shares[k * taps + e]
                for j in range(after):
                    out[p + j] = fused(u, c[j], out[p + j])


@divisible("before", "m")
def resize_columns(
    x: Array, table: Array, shares: Array, out: Array, before: int, n: int, m: int, taps: int
) -> None:
    """Compute weighted sums of `taps` elements of the last dimension."""
    for i in range(before):
        row = x[i * n :]
        target = out[i * m :]
        for k in range(m):
            total = 0.0
            for e in range(taps):
                total = fused(shares[k * taps + e], row[table[k * taps + e]], total)
            target[k] = total


def write_resized_axis(network: Network, node: Node) -> PythonKernel:
    """Write the resizing of one dimension."""
    shape, out, d = network.shape(node.inputs[0]), network.shape(node.output), node.attributes["axis"]
    table, shares = node.attributes["table"], node.attributes["shares"]
    names = {"table": f"{node.output} table", "shares": f"{node.output} shares"}
    sizes = {"before": prod(shape[:d]), "n": shape[d], "m": out[d], "after": prod(shape[d + 1 :])}
    function = resize_rows
    if sizes["after"] == 1:
        function = resize_columns
        del sizes["after"]
    constants: dict[str, Any] = {**sizes, "taps": table.shape[1]}
    arrays = (("x", "float32"), ("table", "int64"), ("shares", "float32"), ("out", "float32"))
    program = PythonProgram(function, arrays, tuple(constants.items()), 2 * prod(out) * table.shape[1])
    own = {names["table"]: np.ascontiguousarray(table, np.int64), names["shares"]: shares.astype(np.float32)}
    return PythonKernel((node,), program, {"x": node.inputs[0], **names}, {"out": node.output}, own)


def taps_of(
    n: int, m: int, scale: float, attributes: dict[str, Any], region: tuple[float, float]
) -> tuple[Array, Array]:
    """Return which elements of a dimension each resized one is of, and their shares.

    Args:
        n: its extent.
        m: the resized one.
        scale: of the coordinates.
        attributes: of Resize.
        region: start and end, for `tf_crop_and_resize`, as shares of the dimension.
    """
    mode, where = (
        attributes.get("mode", "nearest"),
        attributes.get("coordinate_transformation_mode", "half_pixel"),
    )
    at = np.arange(m, dtype=np.float32)
    factor = np.float32(scale)
    match where:
        case "asymmetric":
            x = at / factor
        case "align_corners":
            x = at * np.float32(n - 1) / np.float32(m - 1) if m > 1 else at * 0
        case "pytorch_half_pixel":
            x = (at + np.float32(0.5)) / factor - np.float32(0.5) if m > 1 else at * 0
        case "tf_half_pixel_for_nn":
            x = (at + np.float32(0.5)) / factor
        case "half_pixel_symmetric":
            adjustment = m / (n * scale)
            x = (n / 2) * (1 - adjustment) + (at + 0.5) / scale - 0.5
        case "tf_crop_and_resize":
            start, end = region
            steps = at * (end - start) * (n - 1) / (m - 1) if m > 1 else at * 0
            x = start * (n - 1) + steps if m > 1 else at * 0 + 0.5 * (start + end) * (n - 1)
        case _:
            x = (at + np.float32(0.5)) / factor - np.float32(0.5)
    if mode == "nearest":
        return np.clip(_nearest(x, attributes), 0, n - 1).astype(np.int64)[:, None], np.ones((m, 1))
    x = np.asarray(x, np.float64)
    return _weighted(n, x, scale, attributes)


def _nearest(x: Array, attributes: dict[str, Any]) -> Array:
    match attributes.get("nearest_mode", "round_prefer_floor"):
        case "floor":
            return np.floor(x)
        case "ceil":
            return np.ceil(x)
        case "round_prefer_ceil":
            return np.floor(x + np.asarray(0.5, x.dtype))
        case _:
            return np.ceil(x - np.asarray(0.5, x.dtype))


def _weighted(n: int, x: Array, scale: float, attributes: dict[str, Any]) -> tuple[Array, Array]:
    """Return the taps of linear or cubic interpolation."""
    linear = attributes.get("mode") == "linear"
    stretch = max(1.0, 1 / scale) if attributes.get("antialias") else 1.0
    reach = int(np.ceil((1 if linear else 2) * stretch))
    first = np.floor(x).astype(np.int64) - reach + 1
    index = first[:, None] + np.arange(2 * reach)[None, :]
    apart = np.abs(x[:, None] - index) / stretch
    if linear:
        shares = np.maximum(0, 1 - apart)
    else:
        a = attributes.get("cubic_coeff_a", _CUBIC)
        near = ((a + 2) * apart - (a + 3)) * apart**2 + 1
        far = ((a * apart - 5 * a) * apart + 8 * a) * apart - 4 * a
        shares = np.where(apart <= 1, near, np.where(apart < 2, far, 0))
    if attributes.get("exclude_outside"):
        shares = np.where((index >= 0) & (index < n), shares, 0)
    shares = shares / shares.sum(1, keepdims=True)
    return np.clip(index, 0, n - 1), shares
