"""Features of a model's graph, by which its class is recognised."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

from planish.levels.graph.architecture.convolutions import CONVOLUTIONS, PRODUCTS, Convolutional, shares
from planish.levels.graph.architecture.data_flow import Node, Wiring

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, TensorProto

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
        """Return how many attentions see only what came before."""
        return sum(self._is_causal(node) for node in self.attentions)

    @cached_property
    def across(self) -> int:
        """Return how many attentions have queries of one text and keys of another, as between two texts."""
        return sum(self._is_across(node) for node in self.attentions)

    @cached_property
    def norms(self) -> int:
        """Return how many normalisations over each token there are, in one operation or in its parts."""
        named = sum("LayerNorm" in node.op or "RMSNorm" in node.op for node in self._wiring.nodes)
        means = (node for node in self._wiring.nodes if node.op == "ReduceMean")
        return named + sum(self._is_mean_square(node) for node in means)

    @cached_property
    def embeddings(self) -> int:
        """Return how many tables are looked up by what the model is given."""
        return sum(
            node.op == "EmbedLayerNormalization" or self._is_lookup(node) for node in self._wiring.nodes
        )

    @cached_property
    def recurrent(self) -> int:
        """Return how many recurrent layers there are, also as loops over products."""
        return sum(node.op in _STATES or _loops_products(node) for node in self._wiring.nodes)

    @cached_property
    def gates(self) -> int:
        """Return how many times a sigmoid gates a hyperbolic tangent, as in each step of an unrolled LSTM."""
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
            causal = node.attribute("unidirectional", 0) or node.attribute("is_causal", 0)
            return bool(causal) or node.op.startswith(("GroupQuery", "DecoderMasked", "Paged"))
        on_way = self._wiring.reached([node], lambda n: n.op in _AROUND_SCORES, back=True)
        steps = [node, *(n for n in on_way if n.op in _AROUND_SCORES)]
        # A mask is a constant beside what flows through; of Where any input may be one.
        masks = {
            name for step in steps for name in step.inputs if name not in step.data or step.op == "Where"
        }
        return any(self._is_triangle(name) for name in masks)

    def _is_triangle(self, name: str) -> bool:
        """Return whether a mask hides what comes later, by its values or by how it is computed."""
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
        """Return whether a value numbers indices: 0, 1, 2 and so on."""
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
        # A normalisation by the root of the mean square, in any form: x / sqrt(mean(x^2) + epsilon).
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
    """Return whether it is a product of two results, and not of one with a weight."""
    return node.op in PRODUCTS and len(node.data) >= 2


def _loops_products(node: Node) -> bool:
    body: Any = node.attribute("body") if node.op in _LOOPS else None
    return body is not None and any(inner.op_type in PRODUCTS for inner in body.node)


def _triangular(tensor: TensorProto) -> bool:
    """Return whether the last two dimensions are a square whose upper half differs from the lower."""
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
    """Return a tensor's values; None where they lie in a file beside the model."""
    from onnx import TensorProto, numpy_helper

    outside = tensor.data_location == TensorProto.EXTERNAL
    return None if outside or tensor.data_type == TensorProto.STRING else numpy_helper.to_array(tensor)


_SCATTERS = frozenset({"ScatterElements", "ScatterND", "Scatter"})
_PASSING = frozenset(
    {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Gather", "Slice", "Split"}
)


def neighbourhoods(wiring: Wiring) -> int:
    """Count how often states of nodes are added up: over edges, or by a matrix that is given."""
    edges = sum(_adds(node) and _is_given(wiring, node.inputs[1]) for node in wiring.nodes)
    matrices: Counter[str] = Counter()
    for node in wiring.nodes:
        if node.op in PRODUCTS and len(node.data) == 2:
            first, second = (_source(wiring, name) for name in node.data)
            # One factor is given and the other computed: a product of two inputs is no sum over neighbours.
            matrices.update(name for name in {first, second} if name and not (first and second))
    return max(edges, max(matrices.values(), default=0))


def _adds(node: Node) -> bool:
    return node.op in _SCATTERS and len(node.data) >= 2 and node.attribute("reduction", b"none") == b"add"


def _is_given(wiring: Wiring, name: str) -> bool:
    """Return whether indices come from an input of the model as they are."""
    return bool(_source(wiring, name))


def _source(wiring: Wiring, name: str) -> str:
    """Return the input of the model that a value is, but for its shape; empty where it is computed."""
    for _ in wiring.nodes:
        made = wiring.producers.get(name)
        if made is None:
            return name
        if not made.data or made.op not in _PASSING | {"Expand"}:
            return ""
        name = made.data[0]
    return name


@dataclass(frozen=True)
class Features:
    """Counts of a graph; names play no part in them.

    Args:
        operations: operation to how many there are, those in the bodies of loops too.
        parameters: numbers in the weights.
        convolutions: of any kind, fused ones too.
        depthwise: convolutions with a filter for each channel.
        pointwise: convolutions with 1x1 kernels.
        residuals: sums of a branch of convolutions with what it began with; none is depthwise.
        residual_convolutions: convolutions in those branches.
        inverted_residuals: the same sums where the branch holds a depthwise convolution.
        dense_residuals: the same sums around dense layers or attention.
        over_frames: depthwise convolutions along one axis alone.
        patches: convolutions that cut what the model is given into pieces.
        swishes: values that are multiplied by their own sigmoids.
        squeezes: feature maps scaled by their own averages (squeeze and excitation).
        end_convolutions: convolutions after which nothing heavy comes.
        end_scales: sizes of feature maps that those look at; a detector has several.
        suppressions: non-maximum suppressions.
        skips: concatenations of what was upsampled with what was not.
        joints: other concatenations of branches that lead to convolutions.
        products: matrix products.
        attentions: whole or in parts.
        across: attentions of one text to another.
        neighbourhoods: sums over the neighbours in a graph that is given.
        causal: attentions that see only what came before.
        norms: normalisations over each token.
        embeddings: tables looked up by what the model is given.
        recurrent: recurrent layers.
        gates: sigmoids that gate hyperbolic tangents.
    """

    operations: Mapping[str, int]
    parameters: int
    convolutions: int
    depthwise: int
    pointwise: int
    residuals: int
    residual_convolutions: int
    inverted_residuals: int
    dense_residuals: int
    over_frames: int
    patches: int
    swishes: int
    squeezes: int
    end_convolutions: int
    end_scales: int
    suppressions: int
    skips: int
    joints: int
    products: int
    attentions: int
    across: int
    neighbourhoods: int
    causal: int
    norms: int
    embeddings: int
    recurrent: int
    gates: int

    @property
    def depthwise_share(self) -> float:
        """The share of the convolutions that is depthwise."""
        return self.depthwise / max(1, self.convolutions)

    @property
    def pointwise_share(self) -> float:
        """The share of the convolutions that are not depthwise which has 1x1 kernels."""
        return self.pointwise / max(1, self.convolutions - self.depthwise)

    @property
    def residual_share(self) -> float:
        """The share of the convolutions that is in plain residual branches."""
        return self.residual_convolutions / max(1, self.convolutions)

    def to_json(self) -> dict[str, Any]:
        """Return all counts and shares by name."""
        shares = ("depthwise_share", "pointwise_share", "residual_share")
        counts = asdict(self) | {"operations": dict(self.operations)}
        return counts | {name: round(getattr(self, name), 4) for name in shares}


def features(model: ModelProto) -> Features:
    """Count what a model's graph is made of.

    Weights are looked at only where they may be masks, so it takes no time that grows with them.

    Args:
        model: of any exporter, optimised or not; its external data may be missing.
    """
    wiring = Wiring(model)
    images, texts = Convolutional(wiring), Sequential(wiring)
    sums = dict(shares(images))
    plain = (r.convolutions for r in images.residuals if r.convolutions and not r.depthwise)
    inside: set[int] = reduce(set.union, plain, set[int]())
    counts = Counter(node.op for node in wiring.nodes)
    return Features(
        operations=dict(counts.most_common()),
        parameters=sum(math.prod(tensor.dims) for tensor in wiring.weights.values()),
        convolutions=len(images.convolutions),
        depthwise=len(images.depthwise),
        pointwise=len(images.pointwise),
        residuals=sums["plain"],
        residual_convolutions=len(inside),
        inverted_residuals=sums["inverted"],
        dense_residuals=sums["dense"],
        over_frames=images.over_frames,
        patches=images.patches,
        swishes=images.swishes,
        squeezes=images.squeezes,
        end_convolutions=len(images.terminal),
        end_scales=len(images.scales),
        suppressions=counts["NonMaxSuppression"],
        skips=images.skips,
        joints=images.joints,
        products=sum(counts[op] for op in PRODUCTS),
        attentions=len(texts.attentions),
        across=texts.across,
        neighbourhoods=neighbourhoods(wiring),
        causal=texts.causal,
        norms=texts.norms,
        embeddings=texts.embeddings,
        recurrent=texts.recurrent,
        gates=texts.gates,
    )
