"""Classes of networks, and recognition of a network's class by its graph alone.

A class has clues. Each states how strongly a graph shows one property, from 0 to 1; the class's strength is
their product, so that each is needed. The numbers were chosen on the models of examples/graph/models that
are not held out, with room to both sides; experiments/architecture_aware/recognise.py tests them on others.
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
class Clue:
    """One property of a class.

    Args:
        says: what is seen, for people; it may name features in braces.
        strength: how strongly a graph shows it, from 0 to 1.
    """

    says: str
    strength: Callable[[Features], float]


class NetworkClass:
    """A class of networks.

    Args:
        title: for people.
        paper: the symbol of the passes of table 4 that it begins with. The paper has RN, MN, SSD and BR; of
            the classes that it lacks, decoders begin with BERT's, the others with ResNet's.
        clues: what speaks for it, the strongest first.
    """

    def __init__(self, title: str, paper: str, *clues: Clue) -> None:
        self.title, self.paper, self.clues = title, paper, clues

    def strength(self, found: Features) -> float:
        """Return how strongly a graph shows all clues, from 0 to 1."""
        return math.prod(clue.strength(found) for clue in self.clues)

    def reasons(self, found: Features) -> tuple[str, ...]:
        """Return what each clue shows of a graph."""
        seen = found.to_json()
        return tuple(clue.says.format_map(seen) for clue in self.clues)


def _enough(value: float, full: float) -> float:
    """Rise from 0 to 1 as a value reaches what is enough."""
    return max(0.0, min(1.0, value / full))


def _few(value: float, none_left: float) -> float:
    """Fall from 1 to 0 as a value reaches what is too much."""
    return 1.0 - _enough(value, none_left)


def _has(feature: str, full: float, says: str) -> Clue:
    """Make a clue of a feature that is there, in full from some number."""
    return Clue(_shown(feature) + says, lambda found: _enough(getattr(found, feature), full))


def _lacks(feature: str, none_left: float, says: str) -> Clue:
    """Make a clue of a feature that is not there, or less than some number."""
    return Clue(_shown(feature) + says, lambda found: _few(getattr(found, feature), none_left))


def _shown(feature: str) -> str:
    return f"{{{feature}:.0%}}" if feature.endswith("_share") else f"{{{feature}}}"


def _efficient(found: Features) -> float:
    """Return how far blocks squeeze as EfficientNet's do: nearly all of them, between swishes."""
    squeezed = _enough(found.squeezes / max(1, found.depthwise), 0.6)
    return squeezed * _enough(found.swishes / max(1, found.depthwise), 1)


_ATTENTIONS = _has("attentions", 2, " attentions")
_DEPTHWISE = _has("depthwise", 3, " depthwise convolutions")
_EMBEDDINGS = Clue("{embeddings} embeddings of tokens", lambda f: 1.0 if f.embeddings else 0.7)
_NO_OTHER_TEXT = _lacks("across", 1, " attentions to another text")
_NORMS = _has("norms", 2, " normalisations over each token")
_PRODUCTS = _has("products", 2, " products")
_ENDS = "{end_convolutions} convolutions end at {end_scales} scales of feature maps"


CLASSES: Mapping[str, NetworkClass] = {
    "ssd": NetworkClass(
        "SSD-like",
        "SSD",
        Clue(
            _ENDS + ", with {suppressions} non-maximum suppressions",
            lambda f: max(_enough(f.end_scales - 1, 2), _enough(f.suppressions, 1)),
        ),
        _lacks("skips", 2, " joints of what was upsampled"),
    ),
    "yolo": NetworkClass(
        "YOLO-like",
        "SSD",
        _has("skips", 2, " joints of what was upsampled"),
        Clue(_ENDS, lambda f: _enough(f.end_scales - 1, 1.5)),
    ),
    "resnet": NetworkClass(
        "ResNet-like",
        "RN",
        _has("residuals", 2, " residual additions around ordinary convolutions"),
        _has("residual_share", 0.4, " of the convolutions lie in their branches"),
    ),
    "mobilenet": NetworkClass(
        "MobileNet-like",
        "MN",
        _DEPTHWISE,
        _has("depthwise_share", 0.15, " of the convolutions are depthwise"),
        _has("pointwise_share", 0.4, " of the others are 1x1"),
        Clue(
            "{over_frames} of the depthwise ones go along one axis alone",
            lambda f: _few(f.over_frames / max(1, f.depthwise), 1),
        ),
        Clue("{squeezes} squeezes, {swishes} swishes", lambda f: 1 - _efficient(f)),
    ),
    "efficientnet": NetworkClass(
        "EfficientNet-like",
        "MN",
        _DEPTHWISE,
        Clue("{squeezes} squeezes between {swishes} swishes", _efficient),
    ),
    "conformer": NetworkClass(
        "Conformer-like",
        "BR",
        _has("over_frames", 2, " depthwise convolutions along one axis"),
        _ATTENTIONS,
        _NORMS,
    ),
    "vit": NetworkClass(
        "ViT-like",
        "BR",
        _has("patches", 1, " convolution into patches"),
        _ATTENTIONS,
        _NORMS,
        _lacks("embeddings", 1, " embeddings of tokens"),
    ),
    "t5": NetworkClass(
        "T5-like encoder and decoder",
        "BR",
        _has("across", 1, " of {attentions} attentions are to another text"),
        _NORMS,
    ),
    "bert": NetworkClass(
        "BERT-like",
        "BR",
        _ATTENTIONS,
        Clue("{causal} of them see only what came before", lambda f: _few(f.causal, max(1, f.attentions))),
        _NORMS,
        _EMBEDDINGS,
        _NO_OTHER_TEXT,
        _lacks("patches", 1, " convolutions into patches"),
        _lacks("over_frames", 2, " convolutions over frames"),
    ),
    "gpt": NetworkClass(
        "GPT-like decoder",
        "BR",
        Clue(
            "{causal} of {attentions} attentions see only what came before",
            lambda f: _enough(f.causal, max(1, f.attentions)),
        ),
        _NORMS,
        _EMBEDDINGS,
        _NO_OTHER_TEXT,
    ),
    "recommender": NetworkClass(
        "recommender",
        "RN",
        Clue("{embeddings} tables are looked up", lambda f: _enough(f.embeddings - 1, 3)),
        _PRODUCTS,
        Clue(
            "{attentions} attentions, {recurrent} recurrent layers, {convolutions} convolutions",
            lambda f: _few(f.attentions + f.recurrent + f.gates + f.convolutions, 2),
        ),
    ),
    "graph": NetworkClass(
        "graph network",
        "RN",
        _has("neighbourhoods", 2, " sums over neighbours in a graph that is given"),
        _PRODUCTS,
    ),
    "recurrent": NetworkClass(
        "LSTM or GRU",
        "RN",
        Clue(
            "{recurrent} recurrent layers, and {gates} gates of sigmoids",
            lambda f: max(_enough(f.recurrent, 1), _enough(f.gates, 4)),
        ),
    ),
    "unet": NetworkClass(
        "U-Net",
        "RN",
        _has("skips", 2, " concatenations join what was upsampled with what was not"),
        Clue("{end_scales} scale of feature maps at the end", lambda f: _few(f.end_scales - 1, 2)),
        _has("convolutions", 4, " convolutions"),
    ),
    "plain": NetworkClass(
        "plain CNN",
        "RN",
        _has("convolutions", 2, " convolutions"),
        Clue(
            "{residuals} residual additions",
            lambda f: _few((f.residuals + f.inverted_residuals) / max(1, f.convolutions), 0.1),
        ),
        _lacks("depthwise_share", 0.3, " depthwise convolutions"),
        Clue(
            "{joints} joints and {skips} skips of branches",
            lambda f: _few((f.joints + f.skips) / max(1, f.convolutions), 0.2),
        ),
        _lacks("attentions", 2, " attentions"),
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
    found = features(model)
    strengths = {name: kind.strength(found) for name, kind in CLASSES.items()}
    # The sort is stable: of equals, the first of the table leads.
    ranked = sorted(CLASSES, key=lambda name: -strengths[name])
    matches = tuple(
        Match(name, CLASSES[name].title, strengths[name], CLASSES[name].reasons(found))
        for name in ranked
        if strengths[name] >= EVIDENT
    )
    if matches:
        return Recognition(matches, found)
    kind, strength = CLASSES[ranked[0]], strengths[ranked[0]]
    if strength:
        nearest = f"nearest is {kind.title}, with a strength of {strength:.2f} where {EVIDENT} is needed"
        reasons = (nearest, *kind.reasons(found))
    else:
        first = list(found.operations.items())[:_LISTED]
        summary = ", ".join(f"{count} {op}" for op, count in first) or "it has no operations"
        reasons = (f"no class's marks are seen in it: {summary}",)
    return Recognition((Match(OTHER, "other", 0.0, reasons),), found)


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
