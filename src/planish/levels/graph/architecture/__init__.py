"""Recognition of the class of a network by its graph alone."""

from planish.levels.graph.architecture.features import Features, features
from planish.levels.graph.architecture.recognition import (
    CLASSES,
    Match,
    Recognition,
    recognise,
    recognise_features,
    recognise_file,
)

__all__ = [
    "CLASSES",
    "Features",
    "Match",
    "Recognition",
    "features",
    "recognise",
    "recognise_features",
    "recognise_file",
]
