"""Classes of networks, and recognition of a network's class by its graph alone.

A class has indicators. Each states how strongly a graph shows one property, from 0 to 1; the class's strength
is their product, so that each is needed. The numbers were chosen on the models of examples/graph/models that
are not held out, with room to both sides; experiments/architecture_aware/recognize.py tests them on others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import ProgramError
from planish.levels.graph.architecture.features import Features, features

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True)
class Indicator:
    """One property of a class.

    Args:
        text: what is seen, for people; it may name features in braces.
    """

    text: str
    strength: Callable[[Features], float]


class NetworkClass:
    """A class of networks.

    Args:
        paper: the symbol of the passes of table 4 that it begins with. The paper has RN, MN, SSD and BR; of
            the classes that it lacks, decoders begin with BERT's, the others with ResNet's.
    """

    def __init__(self, title: str, paper: str, *indicators: Indicator) -> None:
        self.title, self.paper, self.indicators = title, paper, indicators

    def strength(self, found: Features) -> float:
        """Return how strongly a graph shows all indicators, from 0 to 1."""
        return math.prod(indicator.strength(found) for indicator in self.indicators)

    def reasons(self, found: Features) -> tuple[str, ...]:
        """Return the value of each indicator for a graph."""
        seen = found.to_json()
        return tuple(indicator.text.format_map(seen) for indicator in self.indicators)


def _ramp_up(value: float, full_at: float) -> float:
    """Return a strength that rises linearly from 0 at 0 to 1 at `full_at`."""
    return max(0.0, min(1.0, value / full_at))


def _ramp_down(value: float, zero_at: float) -> float:
    """Return a strength that falls linearly from 1 at 0 to 0 at `zero_at`."""
    return 1.0 - _ramp_up(value, zero_at)


def _present(feature: str, full_at: float, text: str) -> Indicator:
    """Make an indicator of a feature that is present, of full strength from some number on."""
    return Indicator(_shown(feature) + text, lambda found: _ramp_up(getattr(found, feature), full_at))


def _absent(feature: str, zero_at: float, text: str) -> Indicator:
    """Make an indicator of a feature that is absent, or rarer than some number."""
    return Indicator(_shown(feature) + text, lambda found: _ramp_down(getattr(found, feature), zero_at))


def _shown(feature: str) -> str:
    return f"{{{feature}:.0%}}" if feature.endswith("_share") else f"{{{feature}}}"


def _efficient(found: Features) -> float:
    """Return how far blocks squeeze as EfficientNet's do: nearly all of them, between swishes."""
    squeezed = _ramp_up(found.squeezes / max(1, found.depthwise), 0.6)
    return squeezed * _ramp_up(found.swishes / max(1, found.depthwise), 1)


_ATTENTIONS = _present("attentions", 2, " attentions")
_DEPTHWISE = _present("depthwise", 3, " depthwise convolutions")
_EMBEDDINGS = Indicator("{embeddings} embeddings of tokens", lambda f: 1.0 if f.embeddings else 0.7)
_NO_OTHER_TEXT = _absent("across", 1, " attentions to another text")
_NORMS = _present("norms", 2, " normalizations over each token")
_PRODUCTS = _present("products", 2, " products")
_ENDS = "{end_convolutions} convolutions end at {end_scales} scales of feature maps"


CLASSES: Mapping[str, NetworkClass] = {
    "ssd": NetworkClass(
        "SSD-like",
        "SSD",
        Indicator(
            _ENDS + ", with {suppressions} non-maximum suppressions",
            lambda f: max(_ramp_up(f.end_scales - 1, 2), _ramp_up(f.suppressions, 1)),
        ),
        _absent("skips", 2, " joints of what was upsampled"),
    ),
    "yolo": NetworkClass(
        "YOLO-like",
        "SSD",
        _present("skips", 2, " joints of what was upsampled"),
        Indicator(_ENDS, lambda f: _ramp_up(f.end_scales - 1, 1.5)),
    ),
    "resnet": NetworkClass(
        "ResNet-like",
        "RN",
        _present("residuals", 2, " residual additions around ordinary convolutions"),
        _present("residual_share", 0.4, " of the convolutions lie in their branches"),
    ),
    "mobilenet": NetworkClass(
        "MobileNet-like",
        "MN",
        _DEPTHWISE,
        _present("depthwise_share", 0.15, " of the convolutions are depthwise"),
        _present("pointwise_share", 0.4, " of the others are 1x1"),
        Indicator(
            "{over_frames} of the depthwise ones go along one axis alone",
            lambda f: _ramp_down(f.over_frames / max(1, f.depthwise), 1),
        ),
        Indicator("{squeezes} squeezes, {swishes} swishes", lambda f: 1 - _efficient(f)),
    ),
    "efficientnet": NetworkClass(
        "EfficientNet-like",
        "MN",
        _DEPTHWISE,
        Indicator("{squeezes} squeezes between {swishes} swishes", _efficient),
    ),
    "conformer": NetworkClass(
        "Conformer-like",
        "BR",
        _present("over_frames", 2, " depthwise convolutions along one axis"),
        _ATTENTIONS,
        _NORMS,
    ),
    "vit": NetworkClass(
        "ViT-like",
        "BR",
        _present("patches", 1, " convolution into patches"),
        _ATTENTIONS,
        _NORMS,
        _absent("embeddings", 1, " embeddings of tokens"),
    ),
    "t5": NetworkClass(
        "T5-like encoder and decoder",
        "BR",
        _present("across", 1, " of {attentions} attentions are to another text"),
        _NORMS,
    ),
    "bert": NetworkClass(
        "BERT-like",
        "BR",
        _ATTENTIONS,
        Indicator(
            "{causal} of them see only what came before", lambda f: _ramp_down(f.causal, max(1, f.attentions))
        ),
        _NORMS,
        _EMBEDDINGS,
        _NO_OTHER_TEXT,
        _absent("patches", 1, " convolutions into patches"),
        _absent("over_frames", 2, " convolutions over frames"),
    ),
    "gpt": NetworkClass(
        "GPT-like decoder",
        "BR",
        Indicator(
            "{causal} of {attentions} attentions see only what came before",
            lambda f: _ramp_up(f.causal, max(1, f.attentions)),
        ),
        _NORMS,
        _EMBEDDINGS,
        _NO_OTHER_TEXT,
    ),
    "recommender": NetworkClass(
        "recommender",
        "RN",
        Indicator("{embeddings} tables are looked up", lambda f: _ramp_up(f.embeddings - 1, 3)),
        _PRODUCTS,
        Indicator(
            "{attentions} attentions, {recurrent} recurrent layers, {convolutions} convolutions",
            lambda f: _ramp_down(f.attentions + f.recurrent + f.gates + f.convolutions, 2),
        ),
    ),
    "graph": NetworkClass(
        "graph network",
        "RN",
        _present("neighborhoods", 2, " sums over neighbors in a graph that is given"),
        _PRODUCTS,
    ),
    "recurrent": NetworkClass(
        "LSTM or GRU",
        "RN",
        Indicator(
            "{recurrent} recurrent layers, and {gates} gates of sigmoids",
            lambda f: max(_ramp_up(f.recurrent, 1), _ramp_up(f.gates, 4)),
        ),
    ),
    "unet": NetworkClass(
        "U-Net",
        "RN",
        _present("skips", 2, " concatenations join what was upsampled with what was not"),
        Indicator("{end_scales} scale of feature maps at the end", lambda f: _ramp_down(f.end_scales - 1, 2)),
        _present("convolutions", 4, " convolutions"),
    ),
    "plain": NetworkClass(
        "plain CNN",
        "RN",
        _present("convolutions", 2, " convolutions"),
        Indicator(
            "{residuals} residual additions",
            lambda f: _ramp_down((f.residuals + f.inverted_residuals) / max(1, f.convolutions), 0.1),
        ),
        _absent("depthwise_share", 0.3, " depthwise convolutions"),
        Indicator(
            "{joints} joints and {skips} skips of branches",
            lambda f: _ramp_down((f.joints + f.skips) / max(1, f.convolutions), 0.2),
        ),
        _absent("attentions", 2, " attentions"),
    ),
}
"""Class to what it is; their order is that of a tie."""

OTHER = "other"
"""Class of what fits no other."""
MATCH_THRESHOLD = 0.5
"""The least strength with which a class matches."""


_LISTED = 6


@dataclass(frozen=True)
class Match:
    """A class that a network belongs to.

    Args:
        strength: from 0.5, where it is uncertain, to 1; 0 for "other".
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
    """

    matches: tuple[Match, ...]
    features: Features

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, the strongest first."""
        return tuple(match.name for match in self.matches)

    def __str__(self) -> str:
        return " + ".join(match.title for match in self.matches)


def recognize(model: ModelProto) -> Recognition:
    """Recognize a network by its graph; names of the model, its nodes and its values play no part."""
    found = features(model)
    strengths = {name: kind.strength(found) for name, kind in CLASSES.items()}
    # The sort is stable: of equals, the first of the table leads.
    ranked = sorted(CLASSES, key=lambda name: -strengths[name])
    matches = tuple(
        Match(name, CLASSES[name].title, strengths[name], CLASSES[name].reasons(found))
        for name in ranked
        if strengths[name] >= MATCH_THRESHOLD
    )
    if matches:
        return Recognition(matches, found)
    kind, strength = CLASSES[ranked[0]], strengths[ranked[0]]
    if strength:
        nearest = (
            f"nearest is {kind.title}, with a strength of {strength:.2f} where {MATCH_THRESHOLD} is needed"
        )
        reasons = (nearest, *kind.reasons(found))
    else:
        first = list(found.operations.items())[:_LISTED]
        summary = ", ".join(f"{count} {op}" for op, count in first) or "it has no operations"
        reasons = (f"none of its features indicates a class: {summary}",)
    return Recognition((Match(OTHER, "other", 0.0, reasons),), found)


def recognize_file(path: Path) -> Recognition:
    """Recognize the network of a file; its external data may be missing.

    Raises:
        ProgramError: the file cannot be read, or is not a model.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(path, load_external_data=False)
    except OSError as error:
        raise ProgramError(f"cannot read '{path}': {error.strerror}", "Check the path.") from error
    except DecodeError as error:
        raise ProgramError(f"'{path}' is not an ONNX model, or is truncated", "Export it again.") from error
    return recognize(model)
