"""Convolutions of sequences as those of images of one row, so that their channels may be last.

A convolution of [n, c, x] is one of [n, c, 1, x]. With channels last, it is computed by Winograd's algorithm,
and the transposes around it, of sequences whose features are last, move nothing.
"""

from __future__ import annotations

from dataclasses import replace

from planish.network.ir import REORDER, VIEW, Network, Node, TensorType
from planish.network.operators.winograd import WINDOWS

LEAST_CHANNELS, LEAST_LENGTH = 16, 16
"""Channels and elements of sequences that are lifted, at least."""


def lift_convolutions(network: Network) -> Network:
    """Write convolutions of sequences that have an algorithm of fewer products as those of images."""
    nodes, types, constants = list[Node](), dict(network.types), dict(network.constants)
    for node in network.nodes:
        if not _is_lifted(network, node):
            nodes.append(node)
            continue
        x, weights, out = node.inputs[0], node.inputs[1], node.output
        names = {name: f"{name} as an image of {out}" for name in (x, weights, out)}
        for name, made in names.items():
            n, c, length = network.shape(name)
            types[made] = TensorType((n, c, 1, length), network.types[name].dtype)
        constants[names[weights]] = network.constants[weights].reshape(types[names[weights]].shape)
        first, last = node.attributes.get("pads") or (0, 0)
        inputs = (names[x], names[weights], *node.inputs[2:])
        nodes += [
            Node(VIEW, f"{node.name} input", (x,), names[x]),
            Node("Conv", node.name, inputs, names[out], {"pads": [0, first, 0, last]}),
            Node(VIEW, f"{node.name} result", (names[out],), out),
        ]
    return replace(network, nodes=tuple(nodes), types=types, constants=constants)


def _is_lifted(network: Network, node: Node) -> bool:
    if node.operator != "Conv" or node.inputs[1] not in network.constants:
        return False
    shape, attributes = network.constants[node.inputs[1]].shape, node.attributes
    plain = attributes.get("group", 1) == 1 and attributes.get("auto_pad", "NOTSET") == "NOTSET"
    ones = all(set(attributes.get(name) or [1]) == {1} for name in ("strides", "dilations"))
    long = min(shape[:2]) >= LEAST_CHANNELS and network.shape(node.output)[-1] >= LEAST_LENGTH
    return len(shape) == 3 and shape[2] in WINDOWS[1:] and plain and ones and long


def join_views(network: Network) -> Network:
    """Leave out views that change a shape and change it back."""
    nodes, same = list[Node](), dict[str, str]()
    for node in network.nodes:
        inputs = tuple(same.get(name, name) for name in node.inputs)
        root = network.root(node.output) if node.operator == VIEW else node.output
        if root != node.output and node.output not in network.outputs and root in network.producers:
            root = same.get(root, root)
            if network.shape(root) == network.shape(node.output):
                same[node.output] = root
                continue
        nodes.append(replace(node, inputs=inputs))
    return replace(network, nodes=tuple(nodes)).without_unread()


def drop_transposes(network: Network) -> Network:
    """Let lifted convolutions read images with channels last, and what moves nothing then be views."""
    nodes, types, last = list[Node](), dict(network.types), set(network.channels_last)
    turned = dict[str, str]()
    for node in network.nodes:
        if node.operator == "Conv" and len(network.shape(node.output)) == 4 and node.output in last:
            x = node.inputs[0]
            view = network.producers.get(x)
            if x not in last and view is not None and view.operator == VIEW and _is_row(network, x):
                if x not in turned:
                    turned[x] = f"{x} with channels last"
                    types[turned[x]] = types[x]
                    last.add(turned[x])
                    source = _untransposed(network, view.inputs[0])
                    kind = REORDER if source is None else VIEW
                    nodes.append(Node(kind, f"{node.name} channels", (source or x,), turned[x]))
                node = replace(node, inputs=(turned[x], *node.inputs[1:]))
        elif (source := _turned_back(network, node)) is not None:
            node = Node(VIEW, node.name, (source,), node.output)
        nodes.append(node)
    return replace(network, nodes=tuple(nodes), types=types, channels_last=frozenset(last)).without_unread()


def _is_row(network: Network, name: str) -> bool:
    shape = network.shape(name)
    return len(shape) == 4 and shape[2] == 1 and min(shape[1], shape[3]) > 1


def _swaps(node: Node | None) -> bool:
    return node is not None and node.operator == "Transpose" and node.attributes.get("perm") == [0, 2, 1]


def _untransposed(network: Network, name: str) -> str | None:
    """Return the tensor of features last that a sequence is a transpose of."""
    node = network.producers.get(name)
    return node.inputs[0] if node is not None and _swaps(node) else None


def _turned_back(network: Network, node: Node) -> str | None:
    """Return the image with channels last of which a node makes a sequence with features last."""
    view = network.producers.get(node.inputs[0]) if _swaps(node) else None
    reorder = network.producers.get(view.inputs[0]) if view is not None and view.operator == VIEW else None
    if reorder is None or reorder.operator != REORDER or not _is_row(network, reorder.output):
        return None
    source = reorder.inputs[0]
    return source if source in network.channels_last else None
