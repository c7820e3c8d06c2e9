"""Measuring: timing, alone and interleaved, and the comparison of what was measured."""

from planish.measure.clock import deadline, delayed_since, ends_by, seconds_left
from planish.measure.comparison import remeasure, remeasure_all
from planish.measure.intervals import Evidence, PairedSamples, judged, noise
from planish.measure.machine_lock import exclusive
from planish.measure.rounds import CutShortError, Plan, Variant
from planish.measure.timing import (
    FINAL_TIMING,
    SEARCH_TIMING,
    Beside,
    Clocks,
    Runs,
    Samples,
    Timer,
    Timing,
    Yardstick,
    by_processor_time,
    repeated,
    rest,
    time_call,
)

__all__ = [
    "FINAL_TIMING",
    "SEARCH_TIMING",
    "Beside",
    "Clocks",
    "CutShortError",
    "Evidence",
    "PairedSamples",
    "Plan",
    "Runs",
    "Samples",
    "Timer",
    "Timing",
    "Variant",
    "Yardstick",
    "by_processor_time",
    "deadline",
    "delayed_since",
    "ends_by",
    "exclusive",
    "judged",
    "noise",
    "remeasure",
    "remeasure_all",
    "repeated",
    "rest",
    "seconds_left",
    "time_call",
]
