"""Measuring: timing, alone and in turns, and how what was found is compared."""

from planish.measure.comparison_rounds import CutShortError
from planish.measure.deadline import deadline, ends_by, seconds_left
from planish.measure.delays import delayed_since
from planish.measure.evidence import Evidence
from planish.measure.exclusion import exclusive
from planish.measure.measuring_plan import Plan, Variant
from planish.measure.noise import noise
from planish.measure.paired import Beside, Yardstick
from planish.measure.paired_samples import PairedSamples, judged
from planish.measure.remeasure import remeasure, remeasure_all
from planish.measure.resting import rest
from planish.measure.samples import Samples, by_processor_time
from planish.measure.timed_blocks import Clocks, Runs, repeated
from planish.measure.timing import FINAL_TIMING, SEARCH_TIMING, Timer, Timing, time_call

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
