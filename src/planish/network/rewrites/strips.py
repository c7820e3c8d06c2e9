"""Strips: chains of operators on images that are computed some rows at a time.

What passes from one operator of a chain to the next, as the wide tensors of an inverted residual block or the
transformed tiles of Winograd's algorithm, then stays in the second-level cache. An image that is stored as
[y, x, c] has its rows one after another, so that a strip of it is a part of its memory: nothing is copied.
Rows that a window reads beyond its strip are computed twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from planish.core import Target
from planish.network.fusion import Kernels, NetworkKernel, kernels_of
from planish.network.ir import JOIN, PART, Network, Node, TensorType
from planish.network.operators.builder import align_shape
from planish.network.operators.contractions import WindowSteps, window_steps
from planish.network.operators.winograd import geometry_of
from planish.network.registry import is_elementwise

CACHE_SHARE = 0.5
"""Share of the second-level cache that the tensors of a strip may take."""
WEIGHTS_SHARE = 0.8
"""Share that they may take with the weights of the chain, which else are read anew for each strip."""
FLOPS_A_BYTE = 10.0
"""Operations in the time in which a byte comes from beyond the second-level cache."""
STEP_BYTES = 2_000
"""Bytes that come from there in the time that a call of a kernel takes beside its work, on one core."""
SHARED_STEP_BYTES = 30_000
"""The same on several cores, which wait for each other."""
MEASURED_SHARES = (1.0, 0.5, 0.25)
"""Shares of the second-level cache for the tensors of a strip that are measured, where time is given."""
LEAST_ROWS = 2
"""Rows of a strip: a subscript of one axis would be of a whole dimension."""
_IMAGE = 4


@dataclass(frozen=True, eq=False)
class Chain:
    """Nodes of which the last one's output alone is read by others.

    Args:
        nodes: in their order.
        step: rows of a strip are a multiple of it.
    """

    nodes: tuple[Node, ...]
    step: int

    @property
    def output(self) -> str:
        """Return the tensor that is computed."""
        return self.nodes[-1].output

    def kind(self, network: Network) -> object:
        """Return what equal chains have in common."""
        return tuple(
            (
                node.operator,
                network.shape(node.output),
                *(network.shape(name) for name in node.inputs if name),
            )
            for node in self.nodes
        )


def find_chains(network: Network, tiles: Mapping[str, int]) -> list[Chain]:
    """Find chains: at most a pointwise convolution, one with a window, and a pointwise one, in this order.

    Args:
        network: with its layouts.
        tiles: results of convolutions by Winograd's algorithm, and of a tile in each dimension.
    """
    kernels, found, taken = kernels_of(network), list[Chain](), set[str]()
    for index, kernel in enumerate(kernels):
        if kernel.output in taken:
            continue
        nodes = [node for each in _grow(network, kernels[index:], taken) for node in each.nodes]
        chain = Chain(tuple(nodes), max((tiles.get(node.output, 1) for node in nodes), default=1))
        if _passed(network, chain, tiles):
            found.append(chain)
            taken.update(node.output for node in nodes)
    return found


def _grow(network: Network, kernels: Kernels, taken: set[str]) -> Kernels:
    """Return the longest chain that begins with the first of some kernels."""
    chain, inside, best = list[NetworkKernel](), set[str](), 0
    pointwise, windows = 0, 0
    for kernel in kernels:
        if chain and inside.isdisjoint(kernel.operands.values()):
            continue
        if kernel.output in taken or not all(_has_rows(network, node) for node in kernel.nodes):
            break
        if kernel.nodes[0].operator == "Conv":
            has_window = _window_of(network, kernel.nodes[0]) is not None
            windows, pointwise = windows + has_window, pointwise + (not has_window)
            # A wide tensor between two pointwise convolutions belongs to the block that follows.
            if windows > 1 or pointwise > 1 + windows:
                break
        chain.append(kernel)
        inside.update(node.output for node in kernel.nodes)
        if all(name == kernel.output or not _is_read(network, name, inside) for name in inside):
            best = len(chain)
    return chain[:best]


def _is_read(network: Network, name: str, inside: set[str]) -> bool:
    """Return whether anything but what computes some tensors needs one of them."""
    readers = network.consumers.get(name, ())
    return not readers or name in network.outputs or any(reader.output not in inside for reader in readers)


def _window_of(network: Network, node: Node) -> tuple[int, WindowSteps] | None:
    """Return the rows of a convolution's window, and how it moves; None where each row is by itself."""
    rows = network.shape(node.inputs[1])[2]
    steps = window_steps(node, network.shape(node.inputs[0])[2:], network.shape(node.inputs[1])[2:])
    return None if rows == steps.strides[0] == 1 and steps.pads[0] == (0, 0) else (rows, steps)


def _has_rows(network: Network, node: Node) -> bool:
    """Return whether a node computes rows of one image from rows of others."""
    shape = network.shape(node.output)
    if any(name and network.root(name) != name for name in node.inputs):
        return False
    if node.more or len(shape) != _IMAGE or shape[2] < 2 * LEAST_ROWS or not _is_image(network, node.output):
        return False
    if node.operator == "Conv":
        constant = all(name in network.constants for name in node.inputs[1:] if name)
        return constant and _is_image(network, node.inputs[0])
    if not is_elementwise(node.operator):
        return False
    return all(
        network.shape(name) == shape and _is_image(network, name)
        for name in node.inputs
        if name and not _is_same_for_rows(network, name)
    )


def _is_image(network: Network, name: str) -> bool:
    """Return whether the rows of a tensor are one after another in memory."""
    shape = network.shape(name)
    whole = name not in network.constants and len(shape) == _IMAGE and shape[0] == 1
    return (
        whole and network.types[name].dtype == "float32" and (name in network.channels_last or shape[1] == 1)
    )


def _is_same_for_rows(network: Network, name: str) -> bool:
    return align_shape(network.shape(name), _IMAGE)[2] == 1


def _passed(network: Network, chain: Chain, tiles: Mapping[str, int]) -> list[tuple[str, float]]:
    """Return what kernels of a chain pass on: tensors, and the multiple of the bytes of each."""
    found, inside = list[tuple[str, float]](), {node.output for node in chain.nodes}
    for node in chain.nodes:
        if node.operator == "Conv":
            image, tile = node.inputs[0], tiles.get(node.output)
            if tile is not None:
                more = geometry_of(network, node, tile).expansion
                found += [(image, more), (node.output, more)]
            if image in inside:
                found.append((image, 1.0))
    return found


# How many rows


def expect_rows(network: Network, chain: Chain, tiles: Mapping[str, int], target: Target) -> int | None:
    """Return the rows of the chain's output in a strip; None where strips are not expected to gain anything.

    Args:
        network: with its layouts.
        chain: one of `find_chains`.
        tiles: as there.
        target: the machine.
    """
    rows = _rows_within(network, chain, tiles, _room(target) * CACHE_SHARE)
    traffic = _Traffic.of(network, chain, tiles)
    if rows is None or traffic.passed <= CACHE_SHARE * _room(target):
        return None
    count = -(-network.shape(chain.output)[2] // rows)
    lost = traffic.twice * (count - 1) / FLOPS_A_BYTE
    lost += count * traffic.calls * (STEP_BYTES if target.cores == 1 else SHARED_STEP_BYTES) * target.cores
    if traffic.weights + (traffic.passed + traffic.around) / count > WEIGHTS_SHARE * _room(target):
        lost += traffic.weights * (count - 1)
    return rows if 2 * traffic.passed > lost else None


def list_rows(network: Network, chain: Chain, tiles: Mapping[str, int], target: Target) -> list[int]:
    """List the rows of a strip that are worth measuring; the arguments are those of `expect_rows`."""
    found = [_rows_within(network, chain, tiles, _room(target) * share) for share in MEASURED_SHARES]
    return list(dict.fromkeys(rows for rows in found if rows is not None))


def _room(target: Target) -> int:
    """Return the bytes of the second-level caches of all cores."""
    cache = target.machine.cache(2) if target.machine else None
    return cache.size * target.cores if cache else 0


def _rows_within(network: Network, chain: Chain, tiles: Mapping[str, int], room: float) -> int | None:
    """Return the rows of strips whose tensors take no more than some bytes; None where one strip does."""
    traffic, height = _Traffic.of(network, chain, tiles), network.shape(chain.output)[2]
    rows = max(chain.step, int(height * room / (traffic.passed + traffic.around)) // chain.step * chain.step)
    count = -(-height // max(LEAST_ROWS, rows))
    # As even as can be: what is left after the last whole strip has programs of its own.
    rows = max(LEAST_ROWS, -(-height // (count * chain.step)) * chain.step)
    return rows if room and rows <= height - LEAST_ROWS else None


@dataclass(frozen=True)
class _Traffic:
    """Bytes and operations of a chain.

    Args:
        passed: bytes that kernels of it pass to others of it.
        around: bytes that it reads and writes beside these and its weights.
        weights: bytes of them.
        twice: operations that are computed twice at a border of two strips.
        calls: of kernels for a strip.
    """

    passed: float
    around: float
    weights: float
    twice: float
    calls: int

    @staticmethod
    def of(network: Network, chain: Chain, tiles: Mapping[str, int]) -> _Traffic:
        """Count them."""
        inside = {node.output for node in chain.nodes}
        outer = {name for node in chain.nodes for name in node.inputs if name and name not in inside}
        around = [name for name in (*outer, chain.output) if _is_image(network, name)]
        weights, twice, calls, before = 0.0, 0.0, 0, 0.0
        for node in chain.nodes:
            window = None
            if node.operator == "Conv":
                shape, tile = network.shape(node.inputs[1]), tiles.get(node.output)
                weights += (
                    4
                    * prod(shape)
                    * (1 if tile is None else geometry_of(network, node, tile).points / prod(shape[2:]))
                )
                calls += 1 if tile is None else 3
                window = _window_of(network, node)
            if window is not None and node.inputs[0] in inside:
                taps, steps = window
                rows = max(0, (taps - 1) * steps.dilations[0] + 1 - steps.strides[0])
                twice = before * rows / network.shape(node.inputs[0])[2]
            before += _flops(network, node)
        return _Traffic(
            sum(more * network.types[name].bytes for name, more in _passed(network, chain, tiles)),
            sum(network.types[name].bytes for name in around),
            weights, twice, max(1, calls),
        )  # fmt: skip


def _flops(network: Network, node: Node) -> int:
    if node.operator != "Conv":
        return network.types[node.output].size
    return 2 * network.types[node.output].size * prod(network.shape(node.inputs[1])[1:])


# Rewriting


def rewrite_strips(
    network: Network, tiles: Mapping[str, int], chains: Sequence[Chain], rows: Mapping[str, int]
) -> tuple[Network, dict[str, int]]:
    """Compute chains strip by strip.

    Args:
        network: with its layouts.
        tiles: as of `find_chains`.
        chains: of it.
        rows: the output of a chain to the rows of it in a strip.

    Returns:
        The network, and the tiles of its convolutions.
    """
    chosen = {each.output: each for each in chains if each.output in rows}
    inside = {node.output for chain in chosen.values() for node in chain.nodes}
    writer, nodes = _Writer(network, tiles), list[Node]()
    for node in network.nodes:
        if node.output in chosen:
            nodes += writer.strips(chosen[node.output], rows[node.output])
        elif node.output not in inside:
            nodes.append(node)
    last = network.channels_last | writer.channels_last
    left = {name: tile for name, tile in writer.tiles.items() if name not in inside}
    return replace(network, nodes=tuple(nodes), types=writer.types, channels_last=last), left


class _Writer:
    """Writes the nodes of strips."""

    def __init__(self, network: Network, tiles: Mapping[str, int]) -> None:
        self.network, self.types, self.tiles = network, dict(network.types), dict(tiles)
        self.channels_last = set[str]()

    def strips(self, chain: Chain, rows: int) -> list[Node]:
        """Return the nodes that compute a chain."""
        nodes, parts = list[Node](), list[str]()
        height = self.network.shape(chain.output)[2]
        bounds = [*range(0, height - LEAST_ROWS + 1, rows), height]
        for number, strip in enumerate(pairwise(bounds)):
            nodes += self._strip(chain, number, strip)
            parts.append(_named(chain.output, number))
        return [*nodes, Node(JOIN, f"{chain.nodes[-1].name} strips", tuple(parts), chain.output)]

    def _strip(self, chain: Chain, number: int, rows: tuple[int, int]) -> list[Node]:
        inside, nodes = {node.output for node in chain.nodes}, list[Node]()
        needed = self._needed(chain, rows)
        for name in inside:
            self._declare(_named(name, number), name, needed[name])
        for node in chain.nodes:
            own = needed[node.output]
            read, attributes = self._rows_read(node, own)
            inputs = list(node.inputs)
            for index, name in enumerate(node.inputs):
                is_image = bool(name) and (index == 0 or node.operator != "Conv")
                if not is_image or _is_same_for_rows(self.network, name):
                    continue
                whole, held = (
                    (_named(name, number), needed[name])
                    if name in inside
                    else (name, (0, self.network.shape(name)[2]))
                )
                inputs[index] = whole
                if held != read:
                    inputs[index] = f"{name} rows {number} for {node.output}"
                    self._declare(inputs[index], name, read)
                    row = prod(self.network.shape(name)) // self.network.shape(name)[2]
                    offset = {"offset": (read[0] - held[0]) * row}
                    nodes.append(Node(PART, f"{node.name} rows", (whole,), inputs[index], offset))
            output = _named(node.output, number)
            if node.output in self.tiles:
                self.tiles[output] = self.tiles[node.output]
            nodes.append(
                replace(
                    node, inputs=tuple(inputs), output=output, attributes={**node.attributes, **attributes}
                )
            )
        return nodes

    def _needed(self, chain: Chain, rows: tuple[int, int]) -> dict[str, tuple[int, int]]:
        """Return the rows of each tensor of a chain that a strip needs."""
        needed, inside = {chain.output: rows}, {node.output for node in chain.nodes}
        for node in reversed(chain.nodes):
            read, _ = self._rows_read(node, needed[node.output])
            for name in inside.intersection(node.inputs):
                first, after = needed.get(name, read)
                needed[name] = min(first, read[0]), max(after, read[1])
        return needed

    def _rows_read(self, node: Node, rows: tuple[int, int]) -> tuple[tuple[int, int], dict[str, object]]:
        """Return the rows of its images that a node reads for rows of its output, and its padding then."""
        window = _window_of(self.network, node) if node.operator == "Conv" else None
        if window is None:
            return rows, {}
        taps, steps = window
        stride, dilation = steps.strides[0], steps.dilations[0]
        (before, _), (left, right) = steps.pads
        height = self.network.shape(node.inputs[0])[2]
        first = rows[0] * stride - before
        after = (rows[1] - 1) * stride + (taps - 1) * dilation + 1 - before
        read = max(0, first), min(height, after)
        pads = [max(0, -first), left, max(0, after - height), right]
        return read, {"pads": pads, "auto_pad": "NOTSET"}

    def _declare(self, name: str, whole: str, rows: tuple[int, int]) -> None:
        type_ = self.network.types[whole]
        shape = (*type_.shape[:2], rows[1] - rows[0], type_.shape[3])
        self.types[name] = TensorType(shape, type_.dtype)
        if whole in self.network.channels_last:
            self.channels_last.add(name)


def _named(name: str, number: int) -> str:
    return f"{name} strip{number}"


def chain_tensor(name: str) -> str:
    """Return the tensor that a strip is of, or the part of its convolution; any other is its own."""
    return re.sub(r" strip\d+(?= |$)", "", name)
