"""Measurement: timing, alone and interleaved, and comparison of candidates with a baseline."""

from planish.measure.clock import deadline, ends_by, runqueue_delay, seconds_left
from planish.measure.comparison_rounds import CutShortError, Plan, Variant
from planish.measure.intervals import Evidence, PairedSamples, judged
from planish.measure.machine_lock import exclusive
from planish.measure.timing import (
    FINAL_TIMING,
    SEARCH_TIMING,
    Clocks,
    PairedTimer,
    Runs,
    Samples,
    SharedBaselineTime,
    Timer,
    Timing,
    by_processor_time,
    repeated,
    time_call,
    wait_for_idle_threads,
)

__all__ = [
    "FINAL_TIMING",
    "SEARCH_TIMING",
    "Clocks",
    "CutShortError",
    "Evidence",
    "PairedSamples",
    "PairedTimer",
    "Plan",
    "Runs",
    "Samples",
    "SharedBaselineTime",
    "Timer",
    "Timing",
    "Variant",
    "by_processor_time",
    "deadline",
    "ends_by",
    "exclusive",
    "judged",
    "repeated",
    "runqueue_delay",
    "seconds_left",
    "time_call",
    "wait_for_idle_threads",
]
