"""Running models by ONNX Runtime: sessions, inputs, and whether answers are right."""

from planish.graph.running.answers import Tolerance, difference, not_finite, similarity, tolerance
from planish.graph.running.feeds import Feed, make_feeds
from planish.graph.running.labels import accuracy, check_labels, labelled
from planish.graph.running.ort_session import (
    PROVIDERS,
    ModelSession,
    RefusedError,
    SessionSettings,
    weights_of,
)
from planish.graph.running.runtimes import open_session

__all__ = [
    "PROVIDERS",
    "Feed",
    "ModelSession",
    "RefusedError",
    "SessionSettings",
    "Tolerance",
    "accuracy",
    "check_labels",
    "difference",
    "labelled",
    "make_feeds",
    "not_finite",
    "open_session",
    "similarity",
    "tolerance",
    "weights_of",
]
