"""Features of a model's graph, by which its class is recognized."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from planish.levels.graph.model_protos import DataFlowGraph, Node, PathPair, bodies

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, TensorProto

_CONVOLUTIONS = frozenset({"Conv", "FusedConv", "QLinearConv", "ConvInteger", "NhwcFusedConv"})
_UPSAMPLINGS = frozenset({"Resize", "Upsample", "ConvTranspose", "DepthToSpace"})
_PRODUCTS = frozenset(
    {"MatMul", "Gemm", "Einsum", "FusedMatMul", "FusedGemm", "MatMulInteger", "QLinearMatMul", "MatMulNBits"}
)
_AVERAGES = frozenset({"GlobalAveragePool", "ReduceMean", "AveragePool"})
_POOLINGS = frozenset({"MaxPool", "AveragePool", "LpPool"})
_REORDERS = frozenset({"ReorderInput", "ReorderOutput"})
"""By ONNX Runtime, which lays channels side by side for some convolutions; which depends on the processor."""
_HEAVY = _CONVOLUTIONS | _PRODUCTS | {"ConvTranspose", "LSTM", "GRU", "RNN"}
_SKIPS = frozenset({"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"})
_ADDS = frozenset({"Add", "Sum", "QLinearAdd", "BiasAdd"}) | _SKIPS | _CONVOLUTIONS
"""Sums of two results; ONNX Runtime's convolutions and normalizations may add one."""

Scale = tuple[float, int]
"""Times that a feature map was halved on its path (in strides), and times that it was cut at its border."""


@dataclass(frozen=True)
class _Residual:
    """A sum of a branch and of what the branch began with.

    Args:
        convolutions: indices of the branch's convolutions; none where the branch is made of dense layers.
    """

    depthwise: bool
    convolutions: tuple[int, ...]


class _Convolutional:
    """The convolutional side of a graph; what its properties count, `Features` says."""

    def __init__(self, graph: DataFlowGraph) -> None:
        self._graph = graph
        self.convolutions = [node for node in graph.nodes if node.op in _CONVOLUTIONS]

    @cached_property
    def depthwise(self) -> frozenset[int]:
        return frozenset(node.index for node in self.convolutions if self._is_depthwise(node))

    @property
    def pointwise(self) -> int:
        return sum(set(self._kernel(node)) == {1} for node in self.convolutions)

    @property
    def over_frames(self) -> int:
        return sum(
            node.index in self.depthwise and sum(side > 1 for side in self._kernel(node)) == 1
            for node in self.convolutions
        )

    @property
    def patches(self) -> int:
        return sum(
            max(self._kernel(node), default=1) > 1
            and tuple(node.attribute("strides", ())) == self._kernel(node)
            and not any(
                before.op in _HEAVY for before in self._graph.reached([node], lambda _: True, back=True)
            )
            for node in self.convolutions
        )

    @property
    def swishes(self) -> int:
        return sum(
            node.op in ("Swish", "QuickGelu")
            or (
                node.op == "Mul"
                and any(
                    before.op == "Sigmoid" and before.inputs[0] in node.inputs
                    for before in self._graph.before(node)
                )
            )
            for node in self._graph.nodes
        )

    @cached_property
    def residuals(self) -> Sequence[_Residual]:
        found = (self._residual(node) for node in self._graph.nodes if node.op in _ADDS)
        return [residual for residual in found if residual is not None]

    @cached_property
    def terminal(self) -> Sequence[Node]:
        """The convolutions after which nothing heavy comes: an image's result, or a detector's heads."""
        busy: set[int] = set()
        # Backwards, so that all that comes after a node is known.
        for node in reversed(self._graph.nodes):
            if any(after.op in _HEAVY or after.index in busy for after in self._graph.after(node)):
                busy.add(node.index)
        return [node for node in self.convolutions if node.index not in busy]

    @property
    def scales(self) -> frozenset[Scale]:
        """The sizes of the feature maps that the terminal convolutions look at."""
        known: dict[str, Scale] = {}
        for node in self._graph.nodes:
            given = max((known[name] for name in node.data if name in known), default=(1.0, 0))
            known |= dict.fromkeys(node.outputs, self._scaled(node, given))
        return frozenset(known.get(node.data[0], (0.0, 0)) for node in self.terminal if node.data)

    @property
    def skips(self) -> int:
        return sum(self._joins_scales(node) for node in self._concatenations)

    @property
    def joints(self) -> int:
        """Concatenations of branches of one size between convolutions, as in Inception."""
        return sum(
            not self._joins_scales(node)
            and any(
                after.op in _CONVOLUTIONS
                for after in self._graph.reached([node], lambda n: n.op not in _HEAVY)
            )
            for node in self._concatenations
        )

    @property
    def squeezes(self) -> int:
        return sum(self._is_squeeze(node) for node in self._graph.nodes if node.op == "Mul")

    def _is_depthwise(self, node: Node) -> bool:
        shape = self._graph.shape(_filter(node))
        # A filter's second extent is the channels of a group; where its shape is unknown, groups must do.
        return int(node.attribute("group", 1)) > 1 and (not shape or shape[1:2] == (1,))

    def _kernel(self, node: Node) -> tuple[int, ...]:
        return tuple(node.attribute("kernel_shape", ())) or self._graph.shape(_filter(node))[2:]

    def _residual(self, node: Node) -> _Residual | None:
        paths = self._met(node)
        if paths is None:
            return None
        # A convolution that adds what it is given belongs to the branch itself.
        branch = [*paths[0], *paths[1], *([node] if node.op in _CONVOLUTIONS else [])]
        if any(n.op in _UPSAMPLINGS for n in branch) or not any(n.op in _HEAVY for n in branch):
            return None
        indices = tuple(n.index for n in branch if n.op in _CONVOLUTIONS)
        return _Residual(not self.depthwise.isdisjoint(indices), indices)

    def _met(self, node: Node) -> PathPair | None:
        return self._graph.nearest_common_ancestor(*node.data[:2]) if len(node.data) >= 2 else None

    @cached_property
    def _concatenations(self) -> Sequence[Node]:
        joined = ("Concat", "QLinearConcat")
        return [node for node in self._graph.nodes if node.op in joined and len(node.data) >= 2]

    def _joins_scales(self, node: Node) -> bool:
        paths = self._met(node)
        if paths is None:
            return False
        first, second = (sum(n.op in _UPSAMPLINGS for n in path) for path in paths)
        # Each side may hold what went up before; the one with one more was upsampled last.
        return first != second

    def _is_squeeze(self, node: Node) -> bool:
        paths = self._met(node)
        if paths is None:
            return False
        first, second = ([n.op for n in path if n.op not in _REORDERS] for path in paths)
        branch = first or second
        # One factor is the feature map itself: no operation is on its path.
        is_scaled = not (first and second)
        return is_scaled and not _AVERAGES.isdisjoint(branch) and not _HEAVY.isdisjoint(branch)

    def _scaled(self, node: Node, given: Scale) -> Scale:
        stride, cuts = given
        if node.op in _CONVOLUTIONS | _POOLINGS:
            kernel = self._kernel(node) or (1,)
            padded = any(node.attribute("pads", ())) or node.attribute("auto_pad", b"NOTSET") != b"NOTSET"
            step = max(node.attribute("strides", (1,)))
            # Without padding the border is cut, by kernels that reach beyond their step.
            return stride * step, cuts + (max(kernel) > step and not padded)
        if node.op in _UPSAMPLINGS:
            # By 2 where the file says it by a computed value.
            growth: Sequence[int] = node.attribute("strides", ()) or (node.attribute("blocksize", 2),)
            return stride / max(growth), cuts
        return given


def _filter(node: Node) -> str:
    index = 3 if node.op == "QLinearConv" else 1
    return node.inputs[index] if len(node.inputs) > index else ""


_AROUND_SCORES = frozenset(
    {
        *("Add", "Sub", "Mul", "Div", "Where", "Cast", "CastLike", "Identity", "Reshape"),
        *("Min", "Max", "Tanh", "Clip"),
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


class _Sequential:
    """The side of a graph that deals with sequences; what its properties count, `Features` says."""

    def __init__(self, graph: DataFlowGraph) -> None:
        self._graph = graph
        # Each attention's softmax, or the operation that all of it was fused into.
        self.attentions = [node for node in graph.nodes if _is_fused(node) or self._is_attention(node)]

    @property
    def causal(self) -> int:
        return sum(self._is_causal(node) for node in self.attentions)

    @property
    def across(self) -> int:
        return sum(self._is_across(node) for node in self.attentions)

    @property
    def norms(self) -> int:
        """Normalizations in one operation, or in its parts."""
        return sum(
            "LayerNorm" in node.op
            or "RMSNorm" in node.op
            or (node.op == "ReduceMean" and self._is_mean_square(node))
            for node in self._graph.nodes
        )

    @property
    def embeddings(self) -> int:
        # The table is a weight: of the inputs only the indices are computed.
        return sum(
            node.op == "EmbedLayerNormalization"
            or (
                node.op in _LOOKUPS
                and node.data == node.inputs[1:2]
                and len(self._graph.shape(node.inputs[0])) == 2
            )
            for node in self._graph.nodes
        )

    @property
    def recurrent(self) -> int:
        """Recurrent layers, also as loops over products."""
        return sum(
            node.op in _STATES
            or (
                node.op in _LOOPS
                and any(inner.op_type in _PRODUCTS for body in bodies(node.proto) for inner in body.node)
            )
            for node in self._graph.nodes
        )

    @property
    def gates(self) -> int:
        """Sigmoids that gate hyperbolic tangents, as in each step of an unrolled LSTM."""
        return sum(self._is_gate(node) for node in self._graph.nodes if node.op == "Mul")

    def _is_attention(self, node: Node) -> bool:
        if node.op not in _SOFTMAXES:
            return False
        # A softmax between two products of results: of queries with keys before it, and of what it weighs.
        mixed = self._graph.reached([node], lambda n: n.op in _AROUND_WEIGHTS)
        return bool(self._scores(node)) and any(_mixes(n) for n in mixed)

    def _scores(self, softmax: Node) -> list[Node]:
        found = self._graph.reached([softmax], lambda n: n.op in _AROUND_SCORES, back=True)
        return [node for node in found if _mixes(node)]

    def _is_across(self, node: Node) -> bool:
        for score in [node] if _is_fused(node) else self._scores(node):
            if len(score.data) < 2:
                continue
            paths = self._graph.nearest_common_ancestor(*score.data[:2])
            # Queries and keys of one text come from it at once; else an attention lies between them.
            if paths is None or any(n.op in _SOFTMAXES or _is_fused(n) for n in (*paths[0], *paths[1])):
                return True
        return False

    def _is_causal(self, node: Node) -> bool:
        if _is_fused(node):
            causal = node.attribute("unidirectional", 0) or node.attribute("is_causal", 0)
            return bool(causal) or node.op.startswith(("GroupQuery", "DecoderMasked", "Paged"))
        ancestors = self._graph.reached([node], lambda n: n.op in _AROUND_SCORES, back=True)
        steps = [node, *(n for n in ancestors if n.op in _AROUND_SCORES)]
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
            tensor = self._graph.tensor(at)
            if tensor is not None and _triangular(tensor):
                return True
            made = self._graph.producers.get(at)
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
            tensor, made = self._graph.tensor(name), self._graph.producers.get(name)
            if tensor is not None:
                return _rises(tensor)
            if made is None or not made.inputs:
                return False
            if made.op in ("Range", "CumSum"):
                return True
            name = made.inputs[0]
        return False

    def _is_mean_square(self, mean: Node) -> bool:
        # A normalization by the root of the mean square, in any form: x / sqrt(mean(x^2) + epsilon).
        squared = any(
            before.op == "Pow" or (before.op == "Mul" and len(set(before.inputs)) == 1)
            for before in self._graph.before(mean)
        )
        after = self._graph.reached([mean], lambda n: n.op in ("Add", "Identity", "Cast"))
        return squared and any(node.op in ("Sqrt", "Pow", "Reciprocal") for node in after)

    def _is_gate(self, node: Node) -> bool:
        before = {made.op: made for made in self._graph.before(node)}
        if set(before) != {"Sigmoid", "Tanh"}:
            return False
        sources = self._graph.reached([before["Sigmoid"]], lambda n: n.op not in _PRODUCTS, back=True)
        # Behind convolutions it is a gated activation, as WaveNet has, and no step of a recurrence.
        return not any(source.op in _CONVOLUTIONS for source in sources)


def _is_fused(node: Node) -> bool:
    return node.op.endswith("Attention")


def _mixes(node: Node) -> bool:
    """Return whether it is a product of two results, and not of one with a weight."""
    return node.op in _PRODUCTS and len(node.data) >= 2


def _triangular(tensor: TensorProto) -> bool:
    """Return whether the last two dimensions are a square whose upper half differs from the lower."""
    import numpy as np

    rows, columns = (0, 0, *tensor.dims)[-2:]
    values = _values(tensor) if rows == columns and 2 <= rows <= _MASK_SIDE_MAX else None
    if values is None or values.size != rows**2:
        return False
    square = values.reshape(rows, rows)
    lower, upper = square[np.tril_indices(rows)], square[np.triu_indices(rows, 1)]
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


def _neighborhoods(graph: DataFlowGraph) -> int:
    """Count how often states of nodes are added up: over edges, or by a matrix that is given."""
    edges, matrices = 0, Counter[str]()
    for node in graph.nodes:
        if node.op in _SCATTERS and len(node.data) >= 2 and node.attribute("reduction", b"none") == b"add":
            edges += bool(_source(graph, node.inputs[1]))
        if node.op in _PRODUCTS and len(node.data) == 2:
            first, second = (_source(graph, name) for name in node.data)
            # One factor is given and the other computed: a product of two inputs is not a sum over neighbors.
            if bool(first) != bool(second):
                matrices[first or second] += 1
    return max(edges, *matrices.values(), 0)


def _source(graph: DataFlowGraph, name: str) -> str:
    """Return the input of the model that a value is, but for its shape; empty where it is computed."""
    for _ in graph.nodes:
        made = graph.producers.get(name)
        if made is None:
            return name
        if not made.data or made.op not in _PASSING | {"Expand"}:
            return ""
        name = made.data[0]
    return name


@dataclass(frozen=True)
class Features:
    """Counts of a graph; names play no part in them."""

    operations: Mapping[str, int]  # operation to how many there are, those in the bodies of loops too
    parameters: int  # numbers in the weights
    convolutions: int  # of any kind, fused ones too
    depthwise: int  # convolutions with a filter for each channel
    pointwise: int  # convolutions with 1x1 kernels
    residuals: int  # sums of a branch of convolutions with what it began with; none is depthwise
    residual_convolutions: int  # convolutions in those branches
    inverted_residuals: int  # the same sums where the branch holds a depthwise convolution
    dense_residuals: int  # the same sums around dense layers or attention
    over_frames: int  # depthwise convolutions along one axis alone
    patches: int  # convolutions that cut what the model is given into pieces
    swishes: int  # values that are multiplied by their own sigmoids
    squeezes: int  # feature maps scaled by their own averages (squeeze and excitation)
    end_convolutions: int  # convolutions after which nothing heavy comes
    end_scales: int  # sizes of feature maps that those look at; a detector has several
    suppressions: int  # non-maximum suppressions
    skips: int  # concatenations of what was upsampled with what was not
    joints: int  # other concatenations of branches that lead to convolutions
    products: int  # matrix products
    attentions: int  # whole or in parts
    across: int  # attentions of one text to another
    neighborhoods: int  # sums over the neighbors in a graph that is given
    causal: int  # attentions that see only what came before
    norms: int  # normalizations over each token
    embeddings: int  # tables looked up by what the model is given
    recurrent: int  # recurrent layers
    gates: int  # sigmoids that gate hyperbolic tangents

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
        return asdict(self) | {name: round(getattr(self, name), 4) for name in shares}


def features(model: ModelProto) -> Features:
    """Count what a model's graph is made of.

    Weights are looked at only where they may be masks, so it takes no time that grows with them, and they may
    be missing.
    """
    graph = DataFlowGraph(model)
    images, texts = _Convolutional(graph), _Sequential(graph)
    plain = [r.convolutions for r in images.residuals if r.convolutions and not r.depthwise]
    counts = Counter(node.op for node in graph.nodes)

    def counted(source: object, *names: str) -> dict[str, int]:
        return {name: getattr(source, name) for name in names}

    return Features(
        operations=dict(counts.most_common()),
        parameters=sum(math.prod(tensor.dims) for tensor in graph.weights.values()),
        convolutions=len(images.convolutions),
        depthwise=len(images.depthwise),
        residuals=len(plain),
        residual_convolutions=len(frozenset[int]().union(*plain)),
        inverted_residuals=sum(r.depthwise for r in images.residuals),
        dense_residuals=sum(not r.convolutions for r in images.residuals),
        end_convolutions=len(images.terminal),
        end_scales=len(images.scales),
        suppressions=counts["NonMaxSuppression"],
        products=sum(counts[op] for op in _PRODUCTS),
        attentions=len(texts.attentions),
        neighborhoods=_neighborhoods(graph),
        **counted(images, "pointwise", "over_frames", "patches", "swishes", "squeezes", "skips", "joints"),
        **counted(texts, "across", "causal", "norms", "embeddings", "recurrent", "gates"),
    )
