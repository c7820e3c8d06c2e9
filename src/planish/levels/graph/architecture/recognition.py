"""Classes of networks, and recognition of a network's class by its graph alone.

A class has clues. Each states how strongly a graph shows one property, from 0 to 1; the class's strength is
their product, so that each is needed. The numbers were chosen on the models of examples/graph/models that
are not held out, with room to both sides; experiments/architecture_aware/recognise.py tests them on others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import ProgramError
from planish.levels.graph.architecture.features import Features, features

if TYPE_CHECKING:
    from onnx import ModelProto

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
        paper: the symbols of the passes of table 4 that it begins with. The paper has RN, MN, SSD and BR; of
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
    """Return how far blocks squeeze as EfficientNet's do: nearly all of them, between swishes."""
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


_LISTED = 6


@dataclass(frozen=True)
class Match:
    """A class that a network belongs to.

    Args:
        name: of the class; "other" for none.
        title: for people.
        strength: from 0.5, where it is in doubt, to 1; 0 for "other".
        reasons: what was seen.
    """

    name: str
    title: str
    strength: float
    reasons: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the match as JSON."""
        strength = round(self.strength, 3)
        return {"class": self.name, "title": self.title, "strength": strength, "reasons": list(self.reasons)}


@dataclass(frozen=True)
class Recognition:
    """Recognition of a network.

    Args:
        matches: its classes, the strongest first; several for a mixture, such as a detector on a ResNet
            (the paper's section 3.2), and "other" alone where none fits.
        features: what that was seen by.
    """

    matches: tuple[Match, ...]
    features: Features

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, the strongest first."""
        return tuple(match.name for match in self.matches)

    def __str__(self) -> str:
        return " + ".join(match.title for match in self.matches)


def recognise(model: ModelProto) -> Recognition:
    """Recognise a network by its graph; names of the model, its nodes and its values play no part.

    Args:
        model: of any exporter, optimised or not.
    """
    return recognise_features(features(model))


def recognise_file(path: Path) -> Recognition:
    """Recognise the network of a file; its external data may be missing.

    Raises:
        ProgramError: the file cannot be read, or is no model.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path, load_external_data=False)
    except OSError as error:
        raise ProgramError(f"cannot read '{path}': {error.strerror}", "Check the path.") from error
    except DecodeError as error:
        raise ProgramError(f"'{path}' is no ONNX model, or is cut short", "Export it again.") from error
    return recognise(model)


def recognise_features(found: Features) -> Recognition:
    """Recognise a network by what was counted in its graph."""
    strengths = {name: _strength(kind, found) for name, kind in CLASSES.items()}
    # The sort is stable: of equals, the first of the table leads.
    evident = sorted((n for n, s in strengths.items() if s >= EVIDENT), key=lambda n: -strengths[n])
    matches = tuple(
        Match(name, CLASSES[name].title, strengths[name], tuple(_reasons(CLASSES[name], found)))
        for name in evident
    )
    return Recognition(matches or (_other(strengths, found),), found)


def _strength(kind: NetworkClass, found: Features) -> float:
    return math.prod(clue.strength(found) for clue in kind.clues)


def _reasons(kind: NetworkClass, found: Features) -> Sequence[str]:
    seen = found.to_json()
    return [clue.says.format_map(seen) for clue in kind.clues]


def _other(strengths: dict[str, float], found: Features) -> Match:
    name, strength = max(strengths.items(), key=lambda pair: pair[1])
    if not strength:
        return Match(OTHER, "other", 0.0, (f"no class's marks are seen in it: {_summary(found)}",))
    kind = CLASSES[name]
    nearest = f"nearest is {kind.title}, with a strength of {strength:.2f} where {EVIDENT} is needed"
    return Match(OTHER, "other", 0.0, (nearest, *_reasons(kind, found)))


def _summary(found: Features) -> str:
    first = list(found.operations.items())[:_LISTED]
    return ", ".join(f"{count} {op}" for op, count in first) or "it has no operations"
