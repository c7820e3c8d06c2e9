"""Fusion: which nodes of a network become one kernel.

A kernel has one operator that is not element-wise at most, its anchor, and element-wise operators behind it
that are over the same elements. What it computes on the way is read by no other kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planish.levels.loops.lang.program import Program
from planish.network.contractions import convolution, gemm, product, transposed_convolution
from planish.network.depthwise import depthwise_draft, is_depthwise
from planish.network.drafts import Draft, PartialBroadcastError, Transform, joined
from planish.network.einsums import einsum
from planish.network.elementwise import ELEMENTWISE, ONCE
from planish.network.layouts import REORDER
from planish.network.model import TAKE, VIEW, Array, Network, Node
from planish.network.movement import concatenation, gather, padding, resize, take, transpose
from planish.network.plain import PlainKernel
from planish.network.plain_operators import plain_operator
from planish.network.reductions import (
    batch_normalization,
    instance_normalization,
    layer_normalization,
    pooling,
    reduction,
    softmax,
)
from planish.network.transposed import SUM, tap_sum_draft
from planish.network.winograd import INPUT_TRANSFORM, OUTPUT_TRANSFORM, input_draft, output_draft

ANCHORS: Mapping[str, Callable[[Network, Node], Draft]] = {
    "AveragePool": pooling,
    "BatchNormalization": batch_normalization,
    "Concat": concatenation,
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "Einsum": einsum,
    "Gather": gather,
    "Gemm": gemm,
    "GlobalAveragePool": reduction,
    "GlobalMaxPool": reduction,
    "InstanceNormalization": instance_normalization,
    "LayerNormalization": layer_normalization,
    "LogSoftmax": softmax,
    "MatMul": product,
    "MaxPool": pooling,
    "Pad": padding,
    "ReduceL1": reduction,
    "ReduceL2": reduction,
    "ReduceMax": reduction,
    "ReduceMean": reduction,
    "ReduceMin": reduction,
    "ReduceProd": reduction,
    "ReduceSum": reduction,
    "ReduceSumSquare": reduction,
    "Resize": resize,
    "Softmax": softmax,
    TAKE: take,
    "Transpose": transpose,
    "Upsample": resize,
    SUM: tap_sum_draft,
    INPUT_TRANSFORM: input_draft,
    OUTPUT_TRANSFORM: output_draft,
}
"""Operators that are not element-wise, and what drafts each."""

LONGEST = 12
"""Element-wise operators that are looked ahead over until one value is left of them."""


@dataclass(frozen=True)
class Kernel:
    """One kernel of a network.

    Args:
        nodes: what it computes, in their order.
        program: of `loops`.
        operands: the program's input to the tensor that it reads.
        output: the tensor that it computes.
        constants: constants that are the kernel's own, by tensor.
        transform: what computes the program, where no schedule does.
    """

    nodes: tuple[Node, ...]
    program: Program
    operands: Mapping[str, str]
    output: str
    constants: Mapping[str, Array]
    transform: Transform | None = None

    @property
    def flops(self) -> int:
        """Return the arithmetic operations of a call."""
        return self.transform.operations if self.transform else self.program.flops

    @property
    def operators(self) -> str:
        """Name its operators, in their order."""
        return "+".join(node.operator for node in self.nodes)


def uncovered(network: Network) -> list[str]:
    """Describe each node whose operator is not covered."""
    return [
        f"node '{node.name}' ({node.operator})"
        for node in network.nodes
        if node.operator not in ANCHORS
        and node.operator not in ELEMENTWISE
        and node.operator != VIEW
        and plain_operator(node.operator) is None
    ]


def kernels_of(network: Network, *, fuse: bool = True) -> list[Kernel | PlainKernel]:
    """Divide a network into kernels, in an order in which they can be computed.

    Args:
        network: all of whose operators are covered.
        fuse: whether element-wise operators join what computes their input.

    Raises:
        ProgramError: something of a node is not covered.
    """
    order = {node.output: index for index, node in enumerate(network.nodes)}
    taken, found = set[str](), list[tuple[int, Kernel | PlainKernel]]()
    for node in network.nodes:
        if node.operator == VIEW or node.output in taken:
            continue
        if write := plain_operator(node.operator):
            found.append((order[node.output], write(network, node)))
            continue
        nodes = [node]
        draft = _first(network, node)
        while fuse and (more := _extension(network, nodes[-1].output, order)):
            # The last of them may be behind another kernel too, which has it then.
            if not all(each.output not in taken and _fits(draft, network, each) for each in more):
                break
            nodes += more
        taken.update(each.output for each in nodes)
        found.append((order[nodes[-1].output], _kernel(network, nodes, draft)))
    return [kernel for _, kernel in sorted(found, key=lambda pair: pair[0])]


def _first(network: Network, node: Node) -> Draft:
    if is_depthwise(network, node):
        return depthwise_draft(network, node)
    if node.operator in ANCHORS:
        return ANCHORS[node.operator](network, node)
    draft = Draft(network)
    axes = draft.arranged(joined(network, node), node.output)
    draft.finish(network.shape(node.output), axes, "")
    draft.result = draft.broadcast(node.inputs[0]) if node.operator == REORDER else _value(draft, node, {})
    return draft


def _fits(draft: Draft, network: Network, node: Node) -> bool:
    """Return whether a draft can be continued by a node: it reads all of its inputs by the draft's axes."""
    if network.shape(node.output) != draft.shape:
        return False
    try:
        for name in node.inputs:
            if name and network.scalar(network.root(name)) is None:
                draft.axes_of(name)
    except PartialBroadcastError:
        return False
    return True


def _extension(network: Network, tensor: str, order: Mapping[str, int]) -> list[Node]:
    """Return the fewest element-wise nodes behind a tensor whose last alone is read by others; or none."""
    region, live = list[Node](), {tensor}
    while len(region) < LONGEST:
        inside = {node.output for node in region}
        readers = {n.output: n for name in live for n in network.consumers.get(name, ())}
        waiting = sorted((order[out], node.output) for out, node in readers.items() if out not in inside)
        if not waiting:
            return []
        node = network.producers[waiting[0][1]]
        if node.operator not in ELEMENTWISE:
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


def _kernel(network: Network, nodes: Sequence[Node], draft: Draft) -> Kernel:
    """Continue a draft by the nodes behind its first."""
    values = {nodes[0].output: draft.result}
    draft.axes = draft.arranged(draft.axes, nodes[-1].output)
    for node in nodes[1:]:
        _name_if_repeated(draft, node, nodes, values)
        values[node.output] = _value(draft, node, values)
    draft.result = values[nodes[-1].output]
    try:
        program = draft.program()
    except Exception as error:
        from planish.core import PlanishError

        if isinstance(error, PlanishError):
            raise nodes[0].refuse(error.message) from error
        raise
    operands = {local: draft.operands[local][0] for local in program.inputs}
    own = {
        tensor: draft.network.constants[tensor]
        for tensor in operands.values()
        if tensor not in network.constants and tensor in draft.network.constants
    }
    transform = draft.transform(program) if draft.transform else None
    return Kernel(tuple(nodes), program, operands, nodes[-1].output, own, transform)


def _name_if_repeated(draft: Draft, node: Node, nodes: Sequence[Node], values: dict[str, str]) -> None:
    """Store values that are read several times, so that none is computed more than once."""
    for name in dict.fromkeys(node.inputs):
        text = values.get(name, "")
        readers = [each for each in nodes if name in each.inputs]
        several = len(readers) > 1 or node.inputs.count(name) > 1 or node.operator not in ONCE
        if several and "(" in text:
            element = draft.element(f"V{len(draft.statements)}")
            draft.statements.append(f"{element} = {text}")
            values[name] = element


def _value(draft: Draft, node: Node, values: Mapping[str, str]) -> str:
    args = [values[n] if n in values else draft.broadcast(n) if n else "" for n in node.inputs]
    return ELEMENTWISE[node.operator](draft.network, node, args)
