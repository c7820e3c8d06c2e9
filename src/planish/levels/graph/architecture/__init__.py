"""Recognition of the class of a network by its graph alone."""

from planish.levels.graph.architecture.features import Features, features
from planish.levels.graph.architecture.recognition import CLASSES, Recognition, recognize, recognize_file

__all__ = ["CLASSES", "Features", "Recognition", "features", "recognize", "recognize_file"]
