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
from planish.graph.running.rounding import moved_answers
from planish.graph.running.runtimes import open_session
from planish.graph.running.verifier import Batch, Verifier

__all__ = [
    "PROVIDERS",
    "Batch",
    "Feed",
    "ModelSession",
    "RefusedError",
    "SessionSettings",
    "Tolerance",
    "Verifier",
    "accuracy",
    "check_labels",
    "difference",
    "labelled",
    "make_feeds",
    "moved_answers",
    "not_finite",
    "open_session",
    "similarity",
    "tolerance",
    "weights_of",
]
