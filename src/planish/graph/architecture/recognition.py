"""Recognising a network's class from its graph alone, and telling why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import ProgramError
from planish.graph.architecture.classes import CLASSES, EVIDENT, OTHER, NetworkClass
from planish.graph.architecture.features import Features, features

if TYPE_CHECKING:
    from onnx import ModelProto

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
        """Give the match as JSON."""
        strength = round(self.strength, 3)
        return {"class": self.name, "title": self.title, "strength": strength, "reasons": list(self.reasons)}


@dataclass(frozen=True)
class Recognition:
    """What a network was recognised as.

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
