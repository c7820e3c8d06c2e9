"""The classes of networks, and what speaks for each: data, which the recogniser weighs.

A class has clues. Each says how strongly a graph shows one property, from 0 to 1; the class's strength is
their product, so that each is needed. The numbers were chosen on the models of examples/graph/models that
are not held out, with room to both sides; experiments/architecture_aware/recognise.py tests them on others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planish.graph.architecture.features import Features

Measure = Callable[[Features], float]


@dataclass(frozen=True)
class Clue:
    """One property of a class.

    Args:
        says: what is seen, for people; it may name features in braces.
        strength: how strongly a graph shows it, from 0 to 1.
    """

    says: str
    strength: Measure


@dataclass(frozen=True)
class NetworkClass:
    """A class of networks.

    Args:
        title: for people.
        paper: the letters of the passes of table 4 that it begins with. The paper has RN, MN, SSD and BR; of
            the classes that it lacks, decoders begin with BERT's, the others with ResNet's.
        clues: what speaks for it, the most telling first.
    """

    title: str
    paper: str
    clues: tuple[Clue, ...]


def _enough(value: float, full: float) -> float:
    """Rise from 0 to 1 as a value reaches what is enough."""
    return max(0.0, min(1.0, value / full))


def _few(value: float, none_left: float) -> float:
    """Fall from 1 to 0 as a value reaches what is too much."""
    return 1.0 - _enough(value, none_left)


def _efficient(found: Features) -> float:
    """Tell how far blocks squeeze as EfficientNet's do: nearly all of them, between swishes."""
    squeezed = _enough(found.squeezes / max(1, found.depthwise), 0.6)
    return squeezed * _enough(found.swishes / max(1, found.depthwise), 1)


CLASSES: Mapping[str, NetworkClass] = {
    "ssd": NetworkClass(
        "SSD-like",
        "SSD",
        (
            Clue(
                "{end_convolutions} convolutions end at {end_scales} scales of feature maps, with"
                " {suppressions} non-maximum suppressions",
                lambda f: max(_enough(f.end_scales - 1, 2), _enough(f.suppressions, 1)),
            ),
            Clue("{skips} joints of what was upsampled", lambda f: _few(f.skips, 2)),
        ),
    ),
    "yolo": NetworkClass(
        "YOLO-like",
        "SSD",
        (
            Clue("{skips} joints of what was upsampled", lambda f: _enough(f.skips, 2)),
            Clue(
                "{end_convolutions} convolutions end at {end_scales} scales of feature maps",
                lambda f: _enough(f.end_scales - 1, 1.5),
            ),
        ),
    ),
    "resnet": NetworkClass(
        "ResNet-like",
        "RN",
        (
            Clue(
                "{residuals} residual additions around ordinary convolutions",
                lambda f: _enough(f.residuals, 2),
            ),
            Clue(
                "{residual_share:.0%} of the convolutions lie in their branches",
                lambda f: _enough(f.residual_share, 0.4),
            ),
        ),
    ),
    "mobilenet": NetworkClass(
        "MobileNet-like",
        "MN",
        (
            Clue("{depthwise} depthwise convolutions", lambda f: _enough(f.depthwise, 3)),
            Clue(
                "{depthwise_share:.0%} of the convolutions are depthwise",
                lambda f: _enough(f.depthwise_share, 0.15),
            ),
            Clue(
                "{pointwise_share:.0%} of the others are 1x1",
                lambda f: _enough(f.pointwise_share, 0.4),
            ),
            Clue(
                "{over_frames} of the depthwise ones go along one axis alone",
                lambda f: _few(f.over_frames / max(1, f.depthwise), 1),
            ),
            Clue("{squeezes} squeezes, {swishes} swishes", lambda f: 1 - _efficient(f)),
        ),
    ),
    "efficientnet": NetworkClass(
        "EfficientNet-like",
        "MN",
        (
            Clue("{depthwise} depthwise convolutions", lambda f: _enough(f.depthwise, 3)),
            Clue("{squeezes} squeezes between {swishes} swishes", _efficient),
        ),
    ),
    "conformer": NetworkClass(
        "Conformer-like",
        "BR",
        (
            Clue("{over_frames} depthwise convolutions along one axis", lambda f: _enough(f.over_frames, 2)),
            Clue("{attentions} attentions", lambda f: _enough(f.attentions, 2)),
            Clue("{norms} normalisations over each token", lambda f: _enough(f.norms, 2)),
        ),
    ),
    "vit": NetworkClass(
        "ViT-like",
        "BR",
        (
            Clue("{patches} convolution into patches", lambda f: _enough(f.patches, 1)),
            Clue("{attentions} attentions", lambda f: _enough(f.attentions, 2)),
            Clue("{norms} normalisations over each token", lambda f: _enough(f.norms, 2)),
            Clue("{embeddings} embeddings of tokens", lambda f: _few(f.embeddings, 1)),
        ),
    ),
    "t5": NetworkClass(
        "T5-like encoder and decoder",
        "BR",
        (
            Clue("{across} of {attentions} attentions are to another text", lambda f: _enough(f.across, 1)),
            Clue("{norms} normalisations over each token", lambda f: _enough(f.norms, 2)),
        ),
    ),
    "bert": NetworkClass(
        "BERT-like",
        "BR",
        (
            Clue("{attentions} attentions", lambda f: _enough(f.attentions, 2)),
            Clue(
                "{causal} of them see only what came before", lambda f: _few(f.causal, max(1, f.attentions))
            ),
            Clue("{norms} normalisations over each token", lambda f: _enough(f.norms, 2)),
            Clue("{embeddings} embeddings of tokens", lambda f: 1.0 if f.embeddings else 0.7),
            Clue("{across} attentions to another text", lambda f: _few(f.across, 1)),
            Clue("{patches} convolutions into patches", lambda f: _few(f.patches, 1)),
            Clue("{over_frames} convolutions over frames", lambda f: _few(f.over_frames, 2)),
        ),
    ),
    "gpt": NetworkClass(
        "GPT-like decoder",
        "BR",
        (
            Clue(
                "{causal} of {attentions} attentions see only what came before",
                lambda f: _enough(f.causal, max(1, f.attentions)),
            ),
            Clue("{norms} normalisations over each token", lambda f: _enough(f.norms, 2)),
            Clue("{embeddings} embeddings of tokens", lambda f: 1.0 if f.embeddings else 0.7),
            Clue("{across} attentions to another text", lambda f: _few(f.across, 1)),
        ),
    ),
    "recommender": NetworkClass(
        "recommender",
        "RN",
        (
            Clue("{embeddings} tables are looked up", lambda f: _enough(f.embeddings - 1, 3)),
            Clue("{products} products", lambda f: _enough(f.products, 2)),
            Clue(
                "{attentions} attentions, {recurrent} recurrent layers, {convolutions} convolutions",
                lambda f: _few(f.attentions + f.recurrent + f.gates + f.convolutions, 2),
            ),
        ),
    ),
    "graph": NetworkClass(
        "graph network",
        "RN",
        (
            Clue(
                "{neighbourhoods} sums over neighbours in a graph that is given",
                lambda f: _enough(f.neighbourhoods, 2),
            ),
            Clue("{products} products", lambda f: _enough(f.products, 2)),
        ),
    ),
    "recurrent": NetworkClass(
        "LSTM or GRU",
        "RN",
        (
            Clue(
                "{recurrent} recurrent layers, and {gates} gates of sigmoids",
                lambda f: max(_enough(f.recurrent, 1), _enough(f.gates, 4)),
            ),
        ),
    ),
    "unet": NetworkClass(
        "U-Net",
        "RN",
        (
            Clue(
                "{skips} concatenations join what was upsampled with what was not",
                lambda f: _enough(f.skips, 2),
            ),
            Clue("{end_scales} scale of feature maps at the end", lambda f: _few(f.end_scales - 1, 2)),
            Clue("{convolutions} convolutions", lambda f: _enough(f.convolutions, 4)),
        ),
    ),
    "plain": NetworkClass(
        "plain CNN",
        "RN",
        (
            Clue("{convolutions} convolutions", lambda f: _enough(f.convolutions, 2)),
            Clue(
                "{residuals} residual additions",
                lambda f: _few((f.residuals + f.inverted_residuals) / max(1, f.convolutions), 0.1),
            ),
            Clue("{depthwise_share:.0%} depthwise convolutions", lambda f: _few(f.depthwise_share, 0.3)),
            Clue(
                "{joints} joints and {skips} skips of branches",
                lambda f: _few((f.joints + f.skips) / max(1, f.convolutions), 0.2),
            ),
            Clue("{attentions} attentions", lambda f: _few(f.attentions, 2)),
        ),
    ),
}
"""Class to what it is; their order is that of a tie."""

OTHER = "other"
"""What fits no class."""
EVIDENT = 0.5
"""The least strength of a match."""
