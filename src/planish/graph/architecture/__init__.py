"""Which class of network a model is, seen from its graph alone, and which passes its class begins with."""

from planish.graph.architecture.classes import CLASSES
from planish.graph.architecture.features import Features, features
from planish.graph.architecture.paper_lists import PaperPass, starting_list, table4
from planish.graph.architecture.recognition import (
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
    "PaperPass",
    "Recognition",
    "features",
    "recognise",
    "recognise_features",
    "recognise_file",
    "starting_list",
    "table4",
]
