"""Who evaluates candidates: this process, workers or a recorded table."""

from planish.executors.inline import InlineExecutor
from planish.executors.local import LocalExecutor
from planish.executors.recording import Recording, load_recording, save_recording
from planish.executors.replay import ReplayExecutor, record

__all__ = [
    "InlineExecutor",
    "LocalExecutor",
    "Recording",
    "ReplayExecutor",
    "load_recording",
    "record",
    "save_recording",
]
