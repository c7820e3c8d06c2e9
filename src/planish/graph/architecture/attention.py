"""What transformers and recurrent networks are recognised by: attention, masks, normalisations, states."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from planish.graph.architecture.convolutions import CONVOLUTIONS, PRODUCTS
from planish.graph.architecture.wiring import Node, Wiring

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import TensorProto

_AROUND_SCORES = frozenset(
    {
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Where",
        "Cast",
        "CastLike",
        "Identity",
        "Reshape",
        "Min",
        "Max",
        "Tanh",
        "Clip",
    }
)
_AROUND_WEIGHTS = frozenset(
    {"Cast", "CastLike", "Dropout", "Where", "Mul", "Identity", "Reshape", "Slice", "IsNaN"}
)
_SOFTMAXES = frozenset({"Softmax", "BiasSoftmax", "QLinearSoftmax"})
_ORDERS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
_LOOKUPS = frozenset({"Gather", "GatherBlockQuantized"})
_STATES = frozenset({"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM", "AttnLSTM"})
_LOOPS = frozenset({"Loop", "Scan"})
_MASK_SIDE_MAX = 4096
_BEHIND_MASK = 64


class Sequential:
    """The side of a graph that deals with sequences."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    @cached_property
    def attentions(self) -> Sequence[Node]:
        """Each attention's softmax, or the operation that all of it was fused into."""
        return [node for node in self._wiring.nodes if _is_fused(node) or self._is_attention(node)]

    @cached_property
    def causal(self) -> int:
        """How many attentions see only what came before."""
        return sum(self._is_causal(node) for node in self.attentions)

    @cached_property
    def across(self) -> int:
        """How many attentions have queries of one text and keys of another, as a decoder of two texts has."""
        return sum(self._is_across(node) for node in self.attentions)

    @cached_property
    def norms(self) -> int:
        """How many normalisations over each token there are, in one operation or in its parts."""
        named = sum("LayerNorm" in node.op or "RMSNorm" in node.op for node in self._wiring.nodes)
        means = (node for node in self._wiring.nodes if node.op == "ReduceMean")
        return named + sum(self._is_mean_square(node) for node in means)

    @cached_property
    def embeddings(self) -> int:
        """How many tables are looked up by what the model is given."""
        return sum(
            node.op == "EmbedLayerNormalization" or self._is_lookup(node) for node in self._wiring.nodes
        )

    @cached_property
    def recurrent(self) -> int:
        """How many recurrent layers there are, also as loops over products."""
        return sum(node.op in _STATES or _loops_products(node) for node in self._wiring.nodes)

    @cached_property
    def gates(self) -> int:
        """How many times a sigmoid gates a hyperbolic tangent, as in each step of an unrolled LSTM."""
        return sum(self._is_gate(node) for node in self._wiring.nodes if node.op == "Mul")

    def _is_attention(self, node: Node) -> bool:
        if node.op not in _SOFTMAXES:
            return False
        # A softmax between two products of results: queries with keys before it, and what it weighs behind
        # it.
        mixed = self._wiring.reached([node], lambda n: n.op in _AROUND_WEIGHTS)
        return bool(self._scores(node)) and any(_mixes(n) for n in mixed)

    def _scores(self, softmax: Node) -> list[Node]:
        found = self._wiring.reached([softmax], lambda n: n.op in _AROUND_SCORES, back=True)
        return [node for node in found if _mixes(node)]

    def _is_across(self, node: Node) -> bool:
        scores = [node] if _is_fused(node) else self._scores(node)
        for score in scores:
            if len(score.data) < 2:
                continue
            meeting = self._wiring.meeting(*score.data[:2])
            # Queries and keys of one text come from it at once; else an attention lies between them.
            if meeting is None or any(_attends(n) for n in (*meeting.first, *meeting.second)):
                return True
        return False

    def _is_causal(self, node: Node) -> bool:
        if _is_fused(node):
            told = node.attribute("unidirectional", 0) or node.attribute("is_causal", 0)
            return bool(told) or node.op.startswith(("GroupQuery", "DecoderMasked", "Paged"))
        on_way = self._wiring.reached([node], lambda n: n.op in _AROUND_SCORES, back=True)
        steps = [node, *(n for n in on_way if n.op in _AROUND_SCORES)]
        # A mask is a constant beside what flows through; of Where any input may be one.
        masks = {
            name for step in steps for name in step.inputs if name not in step.data or step.op == "Where"
        }
        return any(self._is_triangle(name) for name in masks)

    def _is_triangle(self, name: str) -> bool:
        """Tell whether a mask hides what comes later, by its values or by how it is computed."""
        todo, seen = [name], {name}
        while todo and len(seen) < _BEHIND_MASK:  # a bounded look back: masks are made of few operations
            at = todo.pop()
            tensor = self._wiring.tensor(at)
            if tensor is not None and _triangular(tensor):
                return True
            made = self._wiring.producers.get(at)
            if made is None or _mixes(made):
                continue
            if made.op == "Trilu" or (made.op in _ORDERS and all(map(self._counts, made.inputs))):
                return True
            fresh = [given for given in made.inputs if given and given not in seen]
            seen.update(fresh)
            todo += fresh
        return False

    def _counts(self, name: str) -> bool:
        """Tell whether a value numbers places: 0, 1, 2 and so on."""
        for _ in range(_BEHIND_MASK):
            tensor, made = self._wiring.tensor(name), self._wiring.producers.get(name)
            if tensor is not None:
                return _rises(tensor)
            if made is None or not made.inputs:
                return False
            if made.op in ("Range", "CumSum"):
                return True
            name = made.inputs[0]
        return False

    def _is_mean_square(self, mean: Node) -> bool:
        # A normalisation by the root of the mean square: x / sqrt(mean(x^2) + epsilon), whoever wrote it out.
        squared = any(
            before.op == "Pow" or (before.op == "Mul" and len(set(before.inputs)) == 1)
            for before in self._wiring.before(mean)
        )
        after = self._wiring.reached([mean], lambda n: n.op in ("Add", "Identity", "Cast"))
        return squared and any(node.op in ("Sqrt", "Pow", "Reciprocal") for node in after)

    def _is_lookup(self, node: Node) -> bool:
        # The table is a weight: of the inputs only the indices are computed.
        if node.op not in _LOOKUPS or len(node.data) != 1 or node.data[0] != node.inputs[1]:
            return False
        return len(self._wiring.shape(node.inputs[0])) == 2

    def _is_gate(self, node: Node) -> bool:
        before = {made.op: made for made in self._wiring.before(node)}
        if set(before) != {"Sigmoid", "Tanh"}:
            return False
        sources = self._wiring.reached([before["Sigmoid"]], lambda n: n.op not in PRODUCTS, back=True)
        # Behind convolutions it is a gated activation, as WaveNet has, and no step of a recurrence.
        return not any(source.op in CONVOLUTIONS for source in sources)


def _is_fused(node: Node) -> bool:
    return node.op.endswith("Attention")


def _attends(node: Node) -> bool:
    return node.op in _SOFTMAXES or _is_fused(node)


def _mixes(node: Node) -> bool:
    """Tell whether it is a product of two results, and not of one with a weight."""
    return node.op in PRODUCTS and len(node.data) >= 2


def _loops_products(node: Node) -> bool:
    body: Any = node.attribute("body") if node.op in _LOOPS else None
    return body is not None and any(inner.op_type in PRODUCTS for inner in body.node)


def _triangular(tensor: TensorProto) -> bool:
    """Tell whether the last two dimensions are a square whose upper half differs from the lower."""
    shape = tuple(tensor.dims)[-2:]
    if len(shape) < 2 or shape[0] != shape[1] or not 2 <= shape[0] <= _MASK_SIDE_MAX:
        return False
    values = _values(tensor)
    if values is None or values.size != shape[0] ** 2:
        return False
    import numpy as np

    square = values.reshape(shape)
    lower, upper = square[np.tril_indices(shape[0])], square[np.triu_indices(shape[0], 1)]
    return bool((lower == lower[0]).all() and (upper == upper[0]).all() and lower[0] != upper[0])


def _rises(tensor: TensorProto) -> bool:
    values = _values(tensor) if max(tensor.dims, default=0) <= _MASK_SIDE_MAX else None
    if values is None or values.size < 2:
        return False
    flat = values.reshape(-1)
    return bool((flat[1:] - flat[:-1] == 1).all())


def _values(tensor: TensorProto) -> NDArray[Any] | None:
    """Give a tensor's values; None where they lie in a file beside the model."""
    from onnx import TensorProto, numpy_helper

    outside = tensor.data_location == TensorProto.EXTERNAL
    return None if outside or tensor.data_type == TensorProto.STRING else numpy_helper.to_array(tensor)
