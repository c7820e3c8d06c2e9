"""Windows of convolutions without the taps that read padding alone, as of three rows on an image of one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planish.network.ir import Network, Node, Shape, TensorType
from planish.network.operators.contractions import pads_of


def trim_windows(network: Network) -> Network:
    """Cut the taps off the windows of convolutions that no result reads the image with."""
    nodes, types, constants = list[Node](), dict(network.types), dict(network.constants)
    for node in network.nodes:
        if node.operator != "Conv" or node.inputs[1] not in network.constants:
            nodes.append(node)
            continue
        weights, image = constants[node.inputs[1]], network.shape(node.inputs[0])[2:]
        rank = len(image)
        strides = tuple(node.attributes.get("strides") or [1] * rank)
        dilations = tuple(node.attributes.get("dilations") or [1] * rank)
        pads = pads_of(node, image, weights.shape[2:], strides, dilations)
        extents = zip(image, network.shape(node.output)[2:], weights.shape[2:], strict=True)
        ranges = [
            _read(extent, stride, dilation, pad)
            for extent, stride, dilation, pad in zip(extents, strides, dilations, pads, strict=True)
        ]
        if all(last - first == n for (first, last), n in zip(ranges, weights.shape[2:], strict=True)):
            nodes.append(node)
            continue
        name = f"{node.output} read taps"
        kept = weights[(slice(None), slice(None), *(slice(*each) for each in ranges))]
        constants[name] = np.ascontiguousarray(kept)
        types[name] = TensorType(kept.shape, types[node.inputs[1]].dtype)
        before = [p - d * r[0] for (p, _), d, r in zip(pads, dilations, ranges, strict=True)]
        after = [
            p - d * (n - r[1])
            for (_, p), d, n, r in zip(pads, dilations, weights.shape[2:], ranges, strict=True)
        ]
        attributes = {**node.attributes, "pads": [*before, *after], "auto_pad": "NOTSET"}
        attributes.pop("kernel_shape", None)
        inputs = (node.inputs[0], name, *node.inputs[2:])
        nodes.append(replace(node, inputs=inputs, attributes=attributes))
    return replace(network, nodes=tuple(nodes), types=types, constants=constants)


def _read(extents: Shape, stride: int, dilation: int, pads: tuple[int, int]) -> tuple[int, int]:
    """Return the first tap of a dimension to be kept, and the one after the last.

    Args:
        extents: of the image, the result and the window.
        stride: of the window.
        dilation: of it.
        pads: zeros before and after the image; of what is left, there are none less than 0.
    """
    image, results, taps = extents
    read = [
        tap
        for tap in range(taps)
        if any(0 <= y * stride + tap * dilation - pads[0] < image for y in range(results))
    ]
    if not read:
        return 0, taps
    return min(read[0], pads[0] // dilation), max(read[-1] + 1, taps - pads[1] // dilation)
