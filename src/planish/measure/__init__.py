"""Where candidates are evaluated: workers, limits, timing, and the comparison at the end."""

from planish.measure.beside import Beside, Yardstick
from planish.measure.compare import Standing, remeasure, remeasure_all
from planish.measure.deadline import deadline, ends_by, seconds_left
from planish.measure.exclusion import exclusive
from planish.measure.guard import Answer
from planish.measure.inline import InlineExecutor
from planish.measure.interval import NOTICED, Ratio, Verdict
from planish.measure.limits import Limits
from planish.measure.local import LocalExecutor
from planish.measure.losses import LostError, loss_notes
from planish.measure.noise import noise
from planish.measure.plan import Entrant, Plan
from planish.measure.rounds import CutShortError
from planish.measure.timing import (
    FINAL_TIMING,
    SEARCH_TIMING,
    Runs,
    Samples,
    Timer,
    Timing,
    repeated,
    time_call,
)

__all__ = [
    "FINAL_TIMING",
    "NOTICED",
    "SEARCH_TIMING",
    "Answer",
    "Beside",
    "CutShortError",
    "Entrant",
    "InlineExecutor",
    "Limits",
    "LocalExecutor",
    "LostError",
    "Plan",
    "Ratio",
    "Runs",
    "Samples",
    "Standing",
    "Timer",
    "Timing",
    "Verdict",
    "Yardstick",
    "deadline",
    "ends_by",
    "exclusive",
    "loss_notes",
    "noise",
    "remeasure",
    "remeasure_all",
    "repeated",
    "seconds_left",
    "time_call",
]
