"""Protocol between an executor and its workers: messages with a length in front, over pipes.

Commands are pickles: the executor itself writes them, they hold any spec, candidate and clock, and the worker
that reads them runs code for the executor anyway. Replies come from a process that runs what is evaluated. So
they are plain data (`planish.sandbox.plain_data`), which is checked when it is read.
"""

import math
import os
import pickle
import platform
import struct
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from planish.core import (
    STAGES,
    Candidate,
    DeviceLostError,
    Evaluator,
    Failed,
    Measured,
    Outcome,
    PlanishError,
    ProgramError,
    ScheduleError,
    Stage,
    StageClock,
)
from planish.core.trial import checked
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.plain_data import DataError, ErrorData, dumps, framed, loads

# "worker" comes first: memory that was not written yet reads as that.
PHASES = ("worker", *(stage for stage in STAGES if stage != "worker"), "wait")
_BITS = 3  # for the phase, in the word that says in which phase the worker is
STAGE_CLOCK_BYTES = 8 * (1 + len(PHASES))
_ZEROS = memoryview(bytes(STAGE_CLOCK_BYTES)).cast("Q")


class StageClockShm:
    """Shared memory: one word `start << 3 | phase`, then the nanoseconds spent in each phase.

    Phase and start share a word so that a reader never sees one without the other.

    Args:
        memory: `STAGE_CLOCK_BYTES` bytes, aligned to 8.
    """

    def __init__(self, memory: memoryview) -> None:
        self._words = memory.cast("Q")

    def reset(self) -> None:
        """Forget the last candidate."""
        self._words[:] = _ZEROS

    def switch(self, old: int, since: int, new: int, now: int) -> None:
        """Add the time since `since` to the old phase, and start the new one."""
        self._words[1 + old] += now - since
        # As if the phase had no breaks, so that its limit holds for the whole of it.
        start = now - self._words[1 + new]
        # Last: a reader of the new phase then sees the time of the old one.
        self._words[0] = start << _BITS | new

    def current(self) -> tuple[str, float]:
        """Return the current phase and when it started, in seconds of the monotonic clock."""
        word = self._words[0]
        return PHASES[word & (1 << _BITS) - 1], (word >> _BITS) * 1e-9

    def seconds(self) -> dict[str, float]:
        """Return the seconds spent in each phase; phases without any are skipped."""
        spent = zip(PHASES, self._words.tolist()[1:], strict=True)
        return {phase: nanoseconds * 1e-9 for phase, nanoseconds in spent if nanoseconds}


HOST = platform.node()
_DETAIL = 1000


@dataclass(frozen=True)
class EvaluationReply:
    """Reply on one candidate; the executor knows the candidate by its position.

    Args:
        position: the candidate's index among those submitted, from 0.
        outcome: measured, failed or lost.
        seconds: seconds by stage, "wait" for the wait for the machine, "worker" for the rest.
        host: the name of the machine that measured.
    """

    position: int
    outcome: Outcome
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    host: str = HOST


class WorkerClock(StageClock, Protocol):
    """Clock of an evaluator, as a worker sees it.

    Attributes:
        failed: the stage in which an error was raised.
    """

    failed: Stage | None

    def restart(self) -> None:
        """Begin with a new candidate."""
        ...

    def stop(self) -> Mapping[str, float]:
        """Return the seconds by phase up to now."""
        ...

    def folders(self) -> Sequence[Path]:
        """Return the folders that it reads later on; called before the worker is confined."""
        ...


def evaluate_one(
    evaluator: Evaluator, candidate: Candidate, clock: WorkerClock
) -> tuple[Outcome, Mapping[str, float]]:
    """Evaluate one candidate; return its outcome and the seconds by stage.

    An exception becomes `Failed` in the stage where it arose.
    """
    clock.restart()
    try:
        outcome = checked(evaluator.evaluate(candidate, clock))
    except (Exception, SystemExit) as error:  # noqa: BLE001  (any error is this candidate's outcome)
        outcome = _failure(clock.failed or "worker", error)
    return outcome, clock.stop()


DEVICE_LOST = "device lost"
"""Reason of a failure after which a worker can evaluate nothing more."""


def _failure(stage: Stage, error: BaseException) -> Failed:
    match error:
        case MemoryError():
            return Failed(stage, "out of memory", str(error)[:_DETAIL])
        case ScheduleError() | ProgramError():
            return Failed(stage, "illegal step", str(error)[:_DETAIL])
        case DeviceLostError():
            return Failed(stage, DEVICE_LOST, str(error)[:_DETAIL])
        case PlanishError():
            return Failed(stage, type(error).__name__, str(error)[:_DETAIL])
        case _:
            return Failed(stage, type(error).__name__, f"{error} ({_line_of(error)})"[:_DETAIL])


def _line_of(error: BaseException) -> str:
    """Return the location of the line that raised."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f"{frame.f_code.co_name}, line {line} of {frame.f_code.co_filename}"


REPLY_BYTES = 16 << 20
"""Size limit of a reply, in bytes."""
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Setup:
    """First message to a worker: its settings.

    Args:
        import_path: the search path of its modules.
        memory_bytes: limit of the memory that it allocates after its start, in bytes.
        clock: returns the clock that is passed to its evaluators.
    """

    import_path: Sequence[str]
    memory_bytes: int
    clock: Callable[[StageClockShm], WorkerClock]


@dataclass(frozen=True)
class CreateEvaluator:
    """Command to create an evaluator from its pickled spec, in a sandbox, and to drop the previous one.

    The sandbox is a field of its own, because reading a spec loads libraries, whose threads could not be
    confined later.
    """

    serial: int
    spec: bytes
    sandbox: SandboxPolicy | None = None


@dataclass(frozen=True)
class Chunk:
    """Command to evaluate candidates, in this order."""

    positions: Sequence[int]
    candidates: Sequence[Candidate]


@dataclass(frozen=True)
class EvaluatorReady:
    """Reply that an evaluator is ready, or could not be created.

    Args:
        serial: the number from `CreateEvaluator`.
        notes: notes of the evaluator for the user.
        error: why it could not be created; None when it is ready.
    """

    serial: int
    notes: tuple[str, ...] = ()
    error: ErrorData | None = None


Reply = EvaluatorReady | EvaluationReply


def encode_command(message: Setup | CreateEvaluator | Chunk) -> bytes:
    """Encode a message to a worker for the pipe."""
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)  # see the module's docstring
    return _LENGTH.pack(len(body)) + body


def encode_reply(reply: Reply) -> bytes:
    """Encode a message of a worker for the pipe.

    Raises:
        DataError: it holds something else than its types say.
    """
    return framed(dumps(reply, Reply))


def decode_reply(body: bytes) -> Reply:
    """Read a message of a worker.

    Raises:
        DataError: it is malformed, or holds numbers that are not finite, or seconds that are negative.
    """
    reply: Reply = loads(body, Reply)
    if isinstance(reply, EvaluationReply):
        if not _all_finite(reply.seconds.values()) or min(reply.seconds.values(), default=0) < 0:
            raise DataError("seconds that are negative or not finite")
        if isinstance(outcome := reply.outcome, Measured) and not _all_finite(
            chain(outcome.values.values(), outcome.parts.values(), *outcome.samples.values())
        ):
            raise DataError("a value that is not finite")
    return reply


def _all_finite(numbers: Iterable[float]) -> bool:
    try:
        return all(map(math.isfinite, numbers))
    except OverflowError:  # an integer that is larger than any float
        return False


def receive_command(descriptor: int) -> Any:
    """Wait for the next message to a worker and read it.

    Raises:
        EOFError: the executor is gone.
    """
    (length,) = _LENGTH.unpack(_exactly(descriptor, _LENGTH.size))
    return pickle.loads(_exactly(descriptor, length))  # see the module's docstring


def _exactly(descriptor: int, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
