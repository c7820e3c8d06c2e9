"""Operators that find elements, of which there are as many as the data have, as Python kernels.

Results have room for as many as can be found. What is behind those that are found repeats the last of them;
if there is none, it is 0.
"""

from __future__ import annotations

from typing import Any

from planish.network.ir import Array, Network, Node, Shape
from planish.network.python_kernels.program import PythonKernel, around, python_kernel
from planish.network.python_kernels.selection import precedes, select_top

COMPACT = "Compact"
"""The operator of a node that moves what was found together: attribute `dimension`."""
FOUND_SHAPE = "FoundShape"
"""The operator of a node that writes the shape of what was found: attributes `dimension` and `most`."""
MASK = "MaskTail"
"""The operator of a node that replaces what was not found: attributes `dimension` and `value`."""


def repeat_last(out: Array, found: Any, room: int, width: int) -> None:
    """Repeat the last of the rows that were found."""
    for i in range(found * width, room * width):
        if found > 0:
            out[i] = out[i - width]
        else:
            out[i] = 0


def find_nonzero(x: Array, out: Array, count: Array, size: int, shape: Shape) -> None:
    """Compute NonZero: the coordinates of an element are `size` apart."""
    found = 0
    for i in range(size):
        if x[i] != 0:
            rest = i
            for e in range(len(shape)):
                d = len(shape) - 1 - e
                out[d * size + found] = rest % shape[d]
                rest = rest // shape[d]
            found = found + 1
    count[0] = found
    for d in range(len(shape)):
        repeat_last(out[d * size :], found, size, 1)


def compress(
    x: Array,
    condition: Array,
    out: Array,
    count: Array,
    before: int,
    n: int,
    after: int,
    tested: int,
    room: int,
) -> None:
    """Compute Compress along a dimension."""
    found = 0
    for k in range(tested):
        if condition[k] != 0:
            for i in range(before):
                for j in range(after):
                    out[(i * room + found) * after + j] = x[(i * n + k) * after + j]
            found = found + 1
    count[0] = found
    for i in range(before):
        repeat_last(out[i * room * after :], found, room, after)


def find_unique(
    x: Array, out: Array, first: Array, inverse: Array, counts: Array, count: Array, values: Array,
    indices: Array, order: Array, n: int,
) -> None:  # fmt: skip
    """Compute Unique over all elements, in their order."""
    select_top(x, values, indices, order, 1, n, 1, n, False)
    found = 0
    for k in range(n):
        if k == 0 or values[k] != values[k - 1]:
            out[found] = values[k]
            first[found] = indices[k]
            counts[found] = 0
            found = found + 1
        counts[found - 1] = counts[found - 1] + 1
        inverse[indices[k]] = found - 1
    count[0] = found
    repeat_last(out, found, n, 1)
    repeat_last(first, found, n, 1)
    repeat_last(counts, found, n, 1)


def suppress_boxes(
    boxes: Array, scores: Array, out: Array, count: Array, heap: Array, batches: int, classes: int, n: int,
    most: int, room: int, overlap: float, threshold: Any, centered: bool,
) -> None:  # fmt: skip
    """Compute NonMaxSuppression: the box of the best score, and then what does not overlap with others."""
    found = 0
    for b in range(batches):
        for c in range(classes):
            line = scores[(b * classes + c) * n :]
            first = found
            size = 0
            for i in range(n):
                if threshold is None or line[i] > threshold:
                    heap[size] = i
                    size = size + 1
            for i in range(size // 2):
                sift(line, heap, size // 2 - 1 - i, size)
            while size > 0 and found - first < most:
                i = heap[0]
                size = size - 1
                heap[0] = heap[size]
                sift(line, heap, 0, size)
                kept = 1
                for s in range(first, found):
                    if kept == 1 and overlaps(
                        boxes[(b * n + out[s * 3 + 2]) * 4 :], boxes[(b * n + i) * 4 :], overlap, centered
                    ):
                        kept = 0
                if kept == 1:
                    out[found * 3] = b
                    out[found * 3 + 1] = c
                    out[found * 3 + 2] = i
                    found = found + 1
    count[0] = found
    repeat_last(out, found, room, 3)


def sift(line: Array, heap: Array, start: Any, size: Any) -> None:
    """Move an element of a heap, whose root has the largest score, down to where it belongs."""
    at = start
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and precedes(line, heap[child + 1], heap[child], 1, True):
            child = child + 1
        if precedes(line, heap[at], heap[child], 1, True):
            break
        kept = heap[at]
        heap[at] = heap[child]
        heap[child] = kept
        at = child


def overlaps(a: Array, b: Array, limit: float, centered: bool) -> Any:
    """Return whether the intersection of two boxes is a larger share of their union than a limit."""
    width = min(edge(a, 0, 1, centered), edge(b, 0, 1, centered)) - max(
        edge(a, 0, 0, centered), edge(b, 0, 0, centered)
    )
    height = min(edge(a, 1, 1, centered), edge(b, 1, 1, centered)) - max(
        edge(a, 1, 0, centered), edge(b, 1, 0, centered)
    )
    if width <= 0 or height <= 0:
        return False
    shared = width * height
    one = area(a, centered)
    other = area(b, centered)
    if one <= 0 or other <= 0:
        return False
    return shared / (one + other - shared) > limit


def area(box: Array, centered: bool) -> Any:
    """Return the area of a box."""
    return (edge(box, 0, 1, centered) - edge(box, 0, 0, centered)) * (
        edge(box, 1, 1, centered) - edge(box, 1, 0, centered)
    )


def edge(box: Array, d: int, last: int, centered: bool) -> Any:
    """Return the first or the last coordinate of a box in a dimension."""
    if centered:
        half = box[d + 2] / 2.0
        return box[d] + half if last else box[d] - half
    return max(box[d], box[d + 2]) if last else min(box[d], box[d + 2])


def mask_tail(x: Array, count: Array, out: Array, before: int, n: int, after: int, value: Any) -> None:
    """Copy what was found, and write a number behind it."""
    for i in range(before):
        for k in range(n):
            for j in range(after):
                p = (i * n + k) * after + j
                out[p] = x[p] if k < count[0] else value


def compact(x: Array, count: Array, out: Array, before: int, n: int, after: int) -> None:
    """Move what was found to where it is without room behind it."""
    width = count[0] * after
    for i in range(before):
        for j in range(width):
            out[i * width + j] = x[i * n * after + j]


def write_shape(count: Array, out: Array, most: Shape, dimension: int) -> None:
    """Write the shape of what was found."""
    for d in range(len(most)):
        out[d] = count[0] if d == dimension else most[d]


def write_nonzero(network: Network, node: Node) -> PythonKernel:
    """Write NonZero."""
    value = network.types[node.inputs[0]]
    return python_kernel(network, node, find_nonzero, "x", "out count", size=value.size, shape=value.shape)


def write_compress(network: Network, node: Node) -> PythonKernel:
    """Write Compress."""
    x, condition = (network.types[name] for name in node.inputs)
    axis = node.attributes.get("axis")
    d, shape = (0, (x.size,)) if axis is None else (axis % len(x.shape), x.shape)
    return python_kernel(
        network, node, compress, "x condition", "out count", **around(shape, d),
        tested=min(condition.size, shape[d]), room=network.shape(node.output)[d],
    )  # fmt: skip


def write_unique(network: Network, node: Node) -> PythonKernel:
    """Write Unique."""
    value = network.types[node.inputs[0]]
    kinds = {"values": value.dtype, "indices": "int64", "order": "int64"}
    scratch = {name: (kind, 8 * value.size) for name, kind in kinds.items()}
    outputs = "out first inverse counts count"
    return python_kernel(network, node, find_unique, "x", outputs, scratch, n=value.size)


def write_suppressed_boxes(network: Network, node: Node) -> PythonKernel:
    """Write NonMaxSuppression."""
    (batches, classes, n), attributes = network.shape(node.inputs[1]), node.attributes
    return python_kernel(
        network, node, suppress_boxes, "boxes scores", "out count", {"heap": ("int64", 8 * n)},
        batches=batches, classes=classes, n=n, most=attributes["most"], room=network.shape(node.output)[0],
        overlap=attributes.get("overlap", 0.0), threshold=attributes.get("threshold"),
        centered=bool(attributes["center_point_box"]),
    )  # fmt: skip


def write_mask(network: Network, node: Node) -> PythonKernel:
    """Write a replacement of what was not found."""
    dtype, value = network.types[node.output].dtype, node.attributes["value"]
    sizes = around(network.shape(node.inputs[0]), node.attributes["dimension"])
    value = float(value) if dtype == "float32" else int(value)
    return python_kernel(network, node, mask_tail, "x count", **sizes, value=value)


def write_compact(network: Network, node: Node) -> PythonKernel:
    """Write a copy of what was found without room behind it."""
    sizes = around(network.shape(node.inputs[0]), node.attributes["dimension"])
    return python_kernel(network, node, compact, "x count", **sizes)


def write_found_shape(network: Network, node: Node) -> PythonKernel:
    """Write the shape of what was found."""
    most, dimension = tuple(node.attributes["most"]), node.attributes["dimension"]
    return python_kernel(network, node, write_shape, "count", most=most, dimension=dimension)
