"""Who evaluates candidates: this process, workers or a recorded table; and the comparison at the end."""

from planish.executors.inline import InlineExecutor
from planish.executors.local import LocalExecutor
from planish.executors.recording import Recording, load_recording, save_recording
from planish.executors.remeasure import remeasure, remeasure_all
from planish.executors.replay import ReplayExecutor, record

__all__ = [
    "InlineExecutor",
    "LocalExecutor",
    "Recording",
    "ReplayExecutor",
    "load_recording",
    "record",
    "remeasure",
    "remeasure_all",
    "save_recording",
]
