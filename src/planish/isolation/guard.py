"""One bad candidate is a row, not an end: whatever an evaluator does becomes an answer."""

import platform
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from planish.core import (
    Candidate,
    Evaluator,
    Failed,
    Outcome,
    PlanishError,
    ProgramError,
    ScheduleError,
    Stage,
    StageClock,
)
from planish.core.checked_outcome import checked

HOST = platform.node()
_DETAIL = 1000


@dataclass(frozen=True)
class Answer:
    """What became of one candidate of a batch.

    Args:
        position: the candidate's place in the batch, from 0.
        outcome: measured, failed or lost.
        seconds: seconds by stage, "wait" for the wait for the machine, "worker" for the rest.
        host: the name of the machine that measured.
    """

    position: int
    outcome: Outcome
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    host: str = HOST


class WorkerClock(StageClock, Protocol):
    """The clock that evaluators are given, as a worker sees it.

    Attributes:
        failed: the stage where an error arose that went through it.
    """

    failed: Stage | None

    def restart(self) -> None:
        """Begin with a new candidate."""
        ...

    def stop(self) -> Mapping[str, float]:
        """Give the seconds by phase up to now."""
        ...

    def folders(self) -> Sequence[Path]:
        """Name the folders that it goes on to read; called before the worker is confined."""
        ...


def answer(evaluator: Evaluator, position: int, candidate: Candidate, clock: WorkerClock) -> Answer:
    """Evaluate one candidate; an exception becomes `Failed` in the stage where it arose."""
    clock.restart()
    try:
        outcome = checked(evaluator.evaluate(candidate, clock))
    except (Exception, SystemExit) as error:  # noqa: BLE001  (any error is this candidate's answer)
        outcome = _failure(clock.failed or "worker", error)
    return Answer(position, outcome, clock.stop())


def _failure(stage: Stage, error: BaseException) -> Failed:
    match error:
        case MemoryError():
            return Failed(stage, "out of memory", str(error)[:_DETAIL])
        case ScheduleError() | ProgramError():
            return Failed(stage, "illegal step", str(error)[:_DETAIL])
        case PlanishError():
            return Failed(stage, type(error).__name__, str(error)[:_DETAIL])
        case _:
            return Failed(stage, type(error).__name__, f"{error} ({_place(error)})"[:_DETAIL])


def _place(error: BaseException) -> str:
    """Name the line that raised."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f"{frame.f_code.co_name}, line {line} of {frame.f_code.co_filename}"
