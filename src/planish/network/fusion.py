"""Fusion: which nodes of a network become one kernel.

A kernel has one operator that is not element-wise at most, its anchor, and element-wise operators after it
that are over the same elements. What it computes on the way is read by no other kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planish.levels.loops.lang.program import Program
from planish.network.ir import JOIN, PART, PLACED, REORDER, VIEW, Array, Network, Node
from planish.network.operators.builder import FixedTree, KernelBuilder, PartialBroadcastError, join_axes
from planish.network.operators.tiled_convolutions import (
    build_depthwise,
    build_tiled_pooling,
    is_depthwise,
    is_tiled_pooling,
)
from planish.network.python_kernels.program import PythonKernel
from planish.network.registry import OPERATORS, is_covered, is_elementwise, python_writer

LONGEST = 12
"""Element-wise operators that are looked ahead over until one value is left of them."""


@dataclass(frozen=True)
class FusedKernel:
    """One kernel of a network.

    Args:
        nodes: what it computes, in their order.
        program: of `loops`.
        operands: the program's input to the tensor that it reads.
        output: the tensor that it computes.
        constants: constants that are the kernel's own, by tensor.
        fixed_tree: what computes the program, where it has no other schedule.
    """

    nodes: tuple[Node, ...]
    program: Program
    operands: Mapping[str, str]
    output: str
    constants: Mapping[str, Array]
    fixed_tree: FixedTree | None = None

    @property
    def flops(self) -> int:
        """Return the arithmetic operations of a call."""
        return self.fixed_tree.operations if self.fixed_tree else self.program.flops

    @property
    def operators(self) -> str:
        """Name its operators, in their order."""
        return "+".join(node.operator for node in self.nodes)


def uncovered(network: Network) -> list[str]:
    """Describe each node whose operator is not covered."""
    return [
        f"node '{node.name}' ({node.operator})" for node in network.nodes if not is_covered(node.operator)
    ]


NetworkKernel = FusedKernel | PythonKernel
"""Kernel of a network: tuned, or of plain code."""
Kernels = Sequence[NetworkKernel]


def kernels_of(network: Network, *, fuse: bool = True) -> list[NetworkKernel]:
    """Divide a network into kernels, in an order in which they can be computed.

    Args:
        network: all of whose operators are covered.
        fuse: whether element-wise operators join what computes their input.

    Raises:
        ProgramError: something of a node is not covered.
    """
    order = {node.output: index for index, node in enumerate(network.nodes)}
    taken, found = set[str](), list[tuple[int, NetworkKernel]]()
    trees = dict[str, FixedTree]()
    for node in network.nodes:
        if node.operator in (VIEW, PART, JOIN, PLACED) or node.output in taken:
            continue
        if write := python_writer(node.operator):
            found.append((order[node.output], write(network, node)))
            continue
        nodes = [node]
        builder = _first(network, node)
        while fuse and (more := _extension(network, nodes[-1].output, order)):
            # The last of them may be after another kernel too, which has it then.
            if not all(each.output not in taken and _fits(builder, network, each) for each in more):
                break
            nodes += more
        taken.update(each.output for each in nodes)
        found.append((order[nodes[-1].output], _kernel(network, nodes, builder, trees)))
    return [kernel for _, kernel in sorted(found, key=lambda pair: pair[0])]


def _first(network: Network, node: Node) -> KernelBuilder:
    if is_depthwise(network, node):
        return build_depthwise(network, node)
    if is_tiled_pooling(network, node):
        return build_tiled_pooling(network, node)
    operator = OPERATORS.get(node.operator)
    if operator is not None and operator.build is not None:
        return operator.build(network, node)
    builder = KernelBuilder(network)
    axes = builder.order_axes(join_axes(network, node), node.output)
    builder.finish(network.shape(node.output), axes, "")
    builder.result = (
        builder.broadcast(node.inputs[0]) if node.operator == REORDER else _value(builder, node, {})
    )
    return builder


def _fits(builder: KernelBuilder, network: Network, node: Node) -> bool:
    """Return whether a builder can be continued by a node: by the builder's axes it reads all inputs."""
    if network.shape(node.output) != builder.shape:
        return False
    try:
        for name in node.inputs:
            if name and network.scalar(network.root(name)) is None:
                builder.axes_of(name)
    except PartialBroadcastError:
        return False
    return True


def _extension(network: Network, tensor: str, order: Mapping[str, int]) -> list[Node]:
    """Return the fewest element-wise nodes after a tensor whose last alone is read by others; or none."""
    region, live = list[Node](), {tensor}
    while len(region) < LONGEST:
        inside = {node.output for node in region}
        readers = {n.output: n for name in live for n in network.consumers.get(name, ())}
        waiting = sorted((order[out], node.output) for out, node in readers.items() if out not in inside)
        if not waiting:
            return []
        node = network.producers[waiting[0][1]]
        if not is_elementwise(node.operator):
            return []
        region.append(node)
        inside.add(node.output)
        live = {
            name
            for name in (tensor, *inside)
            if name in network.outputs
            or any(reader.output not in inside for reader in network.consumers.get(name, ()))
        }
        # What nothing reads is an output, or is in vain; either way the region ends with it.
        if live <= {node.output}:
            return region
    return []


def _kernel(
    network: Network, nodes: Sequence[Node], builder: KernelBuilder, trees: dict[str, FixedTree]
) -> FusedKernel:
    """Continue a builder by the nodes after its first; `trees` holds those of earlier programs by text."""
    values = {nodes[0].output: builder.result}
    builder.axes = builder.order_axes(builder.axes, nodes[-1].output)
    for node in nodes[1:]:
        _name_if_repeated(builder, node, nodes, values)
        values[node.output] = _value(builder, node, values)
    builder.result = values[nodes[-1].output]
    try:
        program = builder.program()
    except Exception as error:
        from planish.core import PlanishError

        if isinstance(error, PlanishError):
            raise nodes[0].refuse(error.message) from error
        raise
    operands = {local: builder.operands[local][0] for local in program.inputs}
    own = {
        tensor: builder.network.constants[tensor]
        for tensor in operands.values()
        if tensor not in network.constants and tensor in builder.network.constants
    }
    if builder.make_tree and program.text not in trees:
        trees[program.text] = builder.make_tree(program)
    tree = trees.get(program.text)
    return FusedKernel(tuple(nodes), program, operands, nodes[-1].output, own, tree)


def _name_if_repeated(
    builder: KernelBuilder, node: Node, nodes: Sequence[Node], values: dict[str, str]
) -> None:
    """Store values that are read several times, so that none is computed more than once."""
    for name in dict.fromkeys(node.inputs):
        text = values.get(name, "")
        readers = [each for each in nodes if name in each.inputs]
        several = len(readers) > 1 or node.inputs.count(name) > 1 or not OPERATORS[node.operator].reads_once
        if several and "(" in text:
            element = builder.element(f"V{len(builder.statements)}")
            builder.statements.append(f"{element} = {text}")
            values[name] = element


def _value(builder: KernelBuilder, node: Node, values: Mapping[str, str]) -> str:
    args = [values[n] if n in values else builder.broadcast(n) if n else "" for n in node.inputs]
    write = OPERATORS[node.operator].value
    assert write is not None
    return write(builder.network, node, args)
