"""How good and how fast a compiled module is: what a metric says of its answers, and its time."""

from planish.hlo.scoring.calling import Calling
from planish.hlo.scoring.metrics import error_of, metric_of
from planish.hlo.scoring.not_finite import MetricError, NotFiniteError
from planish.hlo.scoring.predicting import Inference
from planish.hlo.scoring.prediction import Prediction, Scores
from planish.hlo.scoring.suiting import check_suits, first_call
from planish.hlo.scoring.train_steps import Course, Trainer

__all__ = [
    "Calling",
    "Course",
    "Inference",
    "MetricError",
    "NotFiniteError",
    "Prediction",
    "Scores",
    "Trainer",
    "check_suits",
    "error_of",
    "first_call",
    "metric_of",
]
