"""How good and how fast a compiled module is: its error on examples, and the time of a batch or a step."""

from planish.hlo.scoring.predicting import Inference
from planish.hlo.scoring.prediction import Errors, NotFiniteError, Prediction, error_of
from planish.hlo.scoring.training import Course, Trainer

__all__ = ["Course", "Errors", "Inference", "NotFiniteError", "Prediction", "Trainer", "error_of"]
