"""What is counted in a model's graph to recognise its class: numbers that anyone can check by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto


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
        """Give all counts and shares by name."""
        shares = ("depthwise_share", "pointwise_share", "residual_share")
        counts = asdict(self) | {"operations": dict(self.operations)}
        return counts | {name: round(getattr(self, name), 4) for name in shares}


def features(model: ModelProto) -> Features:
    """Count what a model's graph is made of.

    Weights are looked at only where they may be masks, so it takes no time that grows with them.

    Args:
        model: of any exporter, optimised or not; its external data may be missing.
    """
    from planish.graph.architecture.attention import Sequential
    from planish.graph.architecture.convolutions import PRODUCTS, Convolutional, shares
    from planish.graph.architecture.neighbours import neighbourhoods
    from planish.graph.architecture.wiring import Wiring

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
