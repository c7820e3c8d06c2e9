"""Which class of network a model is, seen from its graph alone, and which passes its class begins with."""

from planish.graph.architecture.features import Features, features
from planish.graph.architecture.recognition import Match, Recognition, recognise, recognise_features

__all__ = ["Features", "Match", "Recognition", "features", "recognise", "recognise_features"]
