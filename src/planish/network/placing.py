"""Placing of tensors within others: Concat and Slice without copies.

The kernels that compute the parts of a Concat write them where the result has them, and what reads a Slice
reads it where its source has it. Such a tensor is contiguous, or it has rows that lie apart, as the channels
of an image that is stored with its channels last. Kernels are tuned as if all their operands were contiguous;
where one has rows that lie apart, the references of the chosen loop tree are moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import prod
from typing import TypeVar

from planish.network.fusion import Kernels, NetworkKernel, kernels_of
from planish.network.ir import (
    COPY_PART,
    PART,
    PLACED,
    STRIDED_SLICE,
    VIEW,
    Network,
    Node,
    Placement,
    TensorType,
)
from planish.network.operators.builder import OUTPUT
from planish.network.python_kernels.program import PythonKernel

T = TypeVar("T")


def place_tensors(
    network: Network, *, fuse: bool = True, apart: Iterable[str] = ()
) -> tuple[Network, list[NetworkKernel]]:
    """Place the parts of Concat in its result, and those that Slice reads in its source, where kernels can.

    A part that is written long before the others is copied, where they would hold too much memory until then.

    Args:
        network: with its layouts and algorithms.
        fuse: whether element-wise operators join what computes their input.
        apart: tensors that are not to be placed.

    Returns:
        The network, and its kernels.
    """
    network, rejected = _share_parts(network), set(apart)
    while True:
        placer = _Placer(network, rejected)
        placed, kernels = placer.network(), list[NetworkKernel]()
        wrong = placer.conflicts
        if not wrong:
            kernels = kernels_of(placed, fuse=fuse)
            wrong = {name for kernel in kernels for name in _misplaced(placed, kernel)}
        wrong = wrong or (_early_parts(placed, kernels) - rejected)
        if not wrong:
            return placed, kernels
        assert not wrong <= rejected, "what is rejected has no place"
        rejected |= wrong


def rows_apart(network: Network, kernel: NetworkKernel) -> Mapping[str, tuple[int, int]]:
    """Return the operands of a kernel whose rows lie apart: elements of a row, and from one to the next."""
    found = dict[str, tuple[int, int]]()
    for local, tensor in _operands(kernel):
        if (apart := network.rows_apart(tensor)) is not None:
            found[local] = apart[1].row, apart[1].step
    return found


def tensors_of(kernel: NetworkKernel) -> list[str]:
    """Return the tensors that a kernel reads and writes."""
    return [tensor for _, tensor in _operands(kernel)]


def kernel_outputs(kernel: NetworkKernel) -> Sequence[str]:
    """Return the tensors that a kernel writes."""
    return list(kernel.outputs.values()) if isinstance(kernel, PythonKernel) else [kernel.output]


def placement_groups(network: Network, kernels: Kernels) -> list[set[str]]:
    """Return sets of tensors that hold others, so that each kernel works in the memory of one set at most."""
    bases = {place.base for place in network.placements.values()}
    return join_overlapping(
        bases.intersection(network.memory(tensor)[0] for tensor in tensors_of(kernel)) for kernel in kernels
    )


def join_overlapping(sets: Iterable[set[T]]) -> list[set[T]]:
    """Join sets that have members in common, directly or by others."""
    groups = list[set[T]]()
    for members in filter(None, sets):
        joined = [group for group in groups if not members.isdisjoint(group)]
        groups = [group for group in groups if members.isdisjoint(group)]
        groups.append(members.union(*joined))
    return groups


def _operands(kernel: NetworkKernel) -> Iterator[tuple[str, str]]:
    yield from kernel.operands.items()
    yield from kernel.outputs.items() if isinstance(kernel, PythonKernel) else [(OUTPUT, kernel.output)]


def _misplaced(network: Network, kernel: NetworkKernel) -> Iterator[str]:
    """Yield the tensors that a kernel cannot read or write with their rows apart."""
    for local, tensor in _operands(kernel):
        if (apart := network.rows_apart(tensor)) is None:
            continue
        whole, row = apart[0], apart[1].row
        if isinstance(kernel, PythonKernel) or kernel.program.integer_indices:
            yield whole
            continue
        shape = [extent for extent in kernel.program.type[local].shape if extent > 1]
        ends = [prod(shape[d:]) for d in range(len(shape))]
        padded = f"pad({local}[" in kernel.program.text
        # An element beyond an edge of what is within a row is not of that row.
        if row not in ends or (padded and shape[-1] != row):
            yield whole


# Memory

MOST_MEMORY = 1.1
"""Most memory of a network's tensors with placements, as a multiple of that without them."""


def _early_parts(network: Network, kernels: Kernels) -> set[str]:
    """Return parts that are to be copied: written in place, they hold memory long before the other parts."""
    memory, copied = _Memory(network, kernels), set[str]()
    every = {name for parts in memory.parts.values() for name in parts}
    most = MOST_MEMORY * max(memory.needs(every), default=0)
    while max(needs := memory.needs(copied), default=0) > most:
        peak = needs.index(max(needs))
        wasted = dict[int, set[str]]()
        for parts in memory.parts.values():
            early = {name for name in parts if memory.first[name] <= peak} - copied
            late = sum(network.types[name].bytes for name in parts if memory.first[name] > peak)
            if early and late and late not in wasted:
                wasted[late] = early
        if not wasted:
            break
        copied |= wasted[max(wasted)]
    return copied


class _Memory:
    """The times at which tensors are needed: even ones of kernels, and odd ones of copies between them.

    Attributes:
        first: the time at which a tensor is written.
        parts: what kernels write within each tensor that holds others.
    """

    def __init__(self, network: Network, kernels: Kernels) -> None:
        self._network, self._end = network, 2 * len(kernels)
        self.first, self._last = dict[str, int](), dict[str, int]()
        written = {network.whole(name)[0] for kernel in kernels for name in kernel_outputs(kernel)}
        outside = {*network.constants, *network.inputs, *(network.memory(n)[0] for n in network.outputs)}
        for index, kernel in enumerate(kernels):
            for name in (network.whole(tensor)[0] for tensor in tensors_of(kernel)):
                if name in network.types and network.memory(name)[0] not in outside:
                    self.first.setdefault(name, 2 * index)
                    self._last[name] = 2 * index
        self.parts = dict[str, list[str]]()
        for name, place in network.placements.items():
            if name in written and name in self.first:
                self.parts.setdefault(place.base, []).append(name)

    def needs(self, copied: Set[str]) -> list[int]:
        """Return the bytes that are needed at each time, where some parts are copied once all are there."""
        spans = dict[str, tuple[int, int]]()

        def hold(name: str, first: int, last: int) -> None:
            known = spans.get(name, (first, last))
            spans[name] = min(known[0], first), max(known[1], last)

        for name, first in self.first.items():
            place = self._network.placements.get(name)
            hold(name if place is None or name in copied else place.base, first, self._last[name])
        for base, parts in self.parts.items():
            joined = max(self.first[name] for name in parts) + 1
            for name in copied & set(parts):
                hold(name, joined, joined)
                hold(base, joined, joined)
        changes = [0] * (self._end + 2)
        for name, (first, last) in spans.items():
            changes[first] += self._network.types[name].bytes
            changes[last + 1] -= self._network.types[name].bytes
        return list(accumulate(changes))


# Parts that several Concat have


def _share_parts(network: Network) -> Network:
    """Let a Concat begin with another one that has the same first parts, and rejoin what was split."""
    nodes, known = list[Node](), dict[tuple[tuple[str, ...], int, bool], str]()
    for node in network.nodes:
        if node.operator == "Concat":
            rank = len(network.shape(node.output))
            axis, last = node.attributes["axis"] % rank, node.output in network.channels_last
            parts = _rejoined(network, node.inputs, axis)
            for count in range(len(parts) - 1, 1, -1):
                if (same := known.get((parts[:count], axis, last))) is not None:
                    parts = (same, *parts[count:])
                    break
            known[_rejoined(network, node.inputs, axis), axis, last] = node.output
            if len(parts) > 1:
                node = replace(node, inputs=parts)
        nodes.append(node)
    return replace(network, nodes=tuple(nodes))


def _rejoined(network: Network, parts: Sequence[str], axis: int) -> tuple[str, ...]:
    """Replace neighboring slices that are all of a tensor by it."""
    found, index = list[str](), 0
    while index < len(parts):
        source, end, reached = "", index, 0
        while end < len(parts) and (piece := _piece(network, parts[end])) is not None:
            tensor, dimension, start, count = piece
            if dimension != axis or start != reached or tensor != (source or tensor):
                break
            source, end, reached = tensor, end + 1, reached + count
        if source and reached == network.shape(source)[axis]:
            found.append(source)
            index = end
        else:
            found.append(parts[index])
            index += 1
    return tuple(found)


def _piece(network: Network, name: str) -> tuple[str, int, int, int] | None:
    """Return what a tensor is a slice of, in which one dimension, and its start and extent there."""
    node = network.producers.get(name)
    if node is None or node.operator != STRIDED_SLICE or set(node.attributes["steps"]) - {1}:
        return None
    source = node.inputs[0]
    shape, whole = network.shape(name), network.shape(source)
    cut = [d for d, (a, b) in enumerate(zip(shape, whole, strict=True)) if a != b]
    if len(cut) != 1 or (source in network.channels_last) != (name in network.channels_last):
        return None
    return source, cut[0], node.attributes["starts"][cut[0]], shape[cut[0]]


# Placements


@dataclass
class _Placer:
    """Places what can be placed by its shapes.

    Args:
        given: a network.
        rejected: tensors that some kernel cannot read or write in another one.

    Attributes:
        conflicts: tensors whose own parts would lie in pieces.
    """

    given: Network
    rejected: Set[str]
    nodes: list[Node] = field(default_factory=list[Node])
    types: dict[str, TensorType] = field(default_factory=dict[str, TensorType])
    places: dict[str, Placement] = field(default_factory=dict[str, Placement])
    conflicts: set[str] = field(default_factory=set[str])

    def network(self) -> Network:
        """Return the network with placements."""
        network = self.given
        self.types = dict(network.types)
        self.kept = {network.root(name) for name in network.outputs}
        self.made = {
            name for n in network.nodes if n.operator not in (VIEW, PART) for name in (n.output, *n.more)
        }
        last = set(network.channels_last)
        for node in network.nodes:
            parts = self._concatenate(node) if node.operator == "Concat" else None
            if parts is None:
                self.nodes.append(node)
                continue
            copies = [each for each in parts if each.operator == COPY_PART]
            last |= {each.output for each in copies if node.output in last}
            self.nodes += parts
        self.nodes = [self._slice(node) for node in self.nodes]
        made = replace(
            network, nodes=tuple(self.nodes), types=self.types, channels_last=frozenset(last),
            placements=self.places,
        )  # fmt: skip
        return replace(made, placements={name: self._resolved(name) for name in self.places})

    def _concatenate(self, node: Node) -> list[Node] | None:
        """Place the parts of a Concat; return copies of those that cannot be, and a node that does nothing.

        None where its own kernel is better: none of its parts can be placed, or rows of rows lie apart.
        """
        network, out = self.given, self.given.shape(node.output)
        d = node.attributes["axis"] % len(out)
        before, after = self._around(node.output, d)
        parts = [name for name in node.inputs if network.types[name].size]
        able = [self._is_free(name, node.output) for name in parts]
        # Each tensor has one place.
        able = [
            free and parts.index(name) == i for i, (name, free) in enumerate(zip(parts, able, strict=True))
        ]
        if min(before, after) > 1 or not any(able) or len(parts) < 2:
            return None
        if {f"{node.output} copied part {i}" for i, free in enumerate(able) if not free} & self.rejected:
            return None
        copies, offset, placed = list[Node](), 0, list[str]()
        for index, (name, free) in enumerate(zip(parts, able, strict=True)):
            extent = network.shape(name)[d]
            root = network.root(name)
            if not free:
                root = f"{node.output} copied part {index}"
                self.types[root] = network.types[name]
                copies.append(Node(COPY_PART, f"{node.name} part {index}", (name,), root))
            placed.append(root)
            self.places[root] = Placement(node.output, offset * after, extent * after, out[d] * after)
            offset += extent
        return [*copies, Node(PLACED, node.name, tuple(placed), node.output)]

    def _is_free(self, name: str, target: str) -> bool:
        root = self.given.root(name)
        return root in self.made and not (
            root in self.kept or root in self.places or root in self.rejected or root == target
        )

    def _around(self, name: str, dimension: int) -> tuple[int, int]:
        """Return how many elements are outside and inside of a dimension in memory."""
        shape, order = self.given.shape(name), self.given.order(name)
        at = order.index(dimension)
        return prod(shape[d] for d in order[:at]), prod(shape[d] for d in order[at + 1 :])

    def _slice(self, node: Node) -> Node:
        """Return a node that does nothing for a Slice that is read in its source."""
        network, name = self.given, node.output
        piece = _piece(network, name) if node.operator == STRIDED_SLICE else None
        taken = name in self.kept or name in self.places or name in self.rejected
        if piece is None or taken or network.root(piece[0]) in network.constants:
            return node
        source, d, start, extent = piece
        before, after = self._around(source, d)
        if min(before, after) > 1:
            return node
        step = network.shape(source)[d] * after
        self.places[name] = Placement(network.root(source), start * after, extent * after, step)
        return Node(PLACED, node.name, node.inputs, name)

    def _resolved(self, name: str) -> Placement:
        """Return where a tensor is in one that has memory of its own."""
        place = self.places[name]
        while (outer := self.places.get(place.base)) is not None:
            if outer.row < self.types[place.base].size:
                if outer.row != place.step:
                    self.conflicts.add(place.base)
                place = replace(place, step=outer.step)
            place = replace(place, base=outer.base, offset=place.offset + outer.offset)
        return place
