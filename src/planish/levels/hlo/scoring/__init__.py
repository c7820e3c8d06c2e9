"""Scores of compiled modules: what a metric gives for their answers, and their time."""

from planish.levels.hlo.scoring.metrics import (
    MetricError,
    NotFiniteError,
    check_suits,
    error_of,
    metric_of,
)
from planish.levels.hlo.scoring.scorers import Calling, Inference, Prediction, Scores, Trainer, TrainingRun

__all__ = [
    "Calling",
    "Inference",
    "MetricError",
    "NotFiniteError",
    "Prediction",
    "Scores",
    "Trainer",
    "TrainingRun",
    "check_suits",
    "error_of",
    "metric_of",
]
