"""Layouts: which tensors of a network are stored with their channels last.

ONNX stores images as [n, c, y, x]. A convolution of images that are stored as [n, y, x, c] is vectorized
over its channels, however small the image is; it packs nothing but its weights, and a pointwise one is a
product of matrices as it is. Convolutions read and write either layout, so that a network's inputs and
outputs need no copies.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from planish.network.ir import REORDER, STRIDED_SLICE, Network, Node
from planish.network.registry import is_elementwise

_POOLS = ("AveragePool", "MaxPool")
_MOVES = ("Concat", "Resize", "Upsample", STRIDED_SLICE)
_CONVOLUTIONS = ("Conv", "ConvTranspose")
_READERS = (
    *_POOLS, *_MOVES, *_CONVOLUTIONS, "GlobalAveragePool", "GlobalMaxPool", "ReduceL1",
    "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
"""Operators that read tensors of any layout, beside the element-wise ones."""
_IMAGE = 4
"""Dimensions of an image."""


def store_channels_last(network: Network) -> Network:
    """Store images of convolutions, and what is computed of them element by element, with channels last.

    Operators that read row-major tensors alone get copies. A network's inputs and outputs stay as they are.
    """
    last = set[str]()
    for node in network.nodes:
        follows = node.operator in (*_POOLS, *_MOVES) or is_elementwise(node.operator)
        if node.operator in _CONVOLUTIONS or (follows and not last.isdisjoint(node.inputs)):
            last.add(node.output)
    last = {name for name in last if _differs(network, name)} - set(network.outputs)
    nodes, types, copies = list[Node](), dict(network.types), dict[str, str]()
    for node in network.nodes:
        turned = set[str]()
        if node.operator not in _READERS and not is_elementwise(node.operator):
            turned = last.intersection(node.inputs)
        elif node.operator == "Concat":
            # Its inputs have the layout of its output.
            turned = {n for n in node.inputs if (n in last) != (node.output in last) and _differs(network, n)}
        for name in (name for name in dict.fromkeys(node.inputs) if name in turned and name not in copies):
            copies[name] = f"{name} in its other layout"
            types[copies[name]] = types[name]
            nodes.append(Node(REORDER, f"{node.name} {name}", (name,), copies[name]))
            last |= set() if name in last else {copies[name]}
        nodes.append(replace(node, inputs=tuple(copies[n] if n in turned else n for n in node.inputs)))
    return replace(network, nodes=tuple(nodes), types=types, channels_last=frozenset(last))


def _differs(network: Network, name: str) -> bool:
    """Return whether a tensor is an image whose layouts differ."""
    shape = network.shape(name)
    return len(shape) == _IMAGE and shape[1] > 1 and prod(shape[2:]) > 1
