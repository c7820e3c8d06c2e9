"""Evaluators and specs that workers import by name."""

import math
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from planish.core import Candidate, Failed, Measured, Outcome, PlanishError, StageClock
from planish.sandbox import Limits
from planish.sandbox.plain_data import ErrorData, framed
from planish.sandbox.protocol import REPLY_BYTES, EvaluationReply, EvaluatorReady, encode_reply
from planish.testing.synthetic import KilledEvaluator, LoggingEvaluator, LoggingSpec, ScriptedEvaluator

SHORT_LIMITS = Limits(build=0.3)


class WithNotes(ScriptedEvaluator):
    """Evaluator with a note."""

    notes = ("it is late",)


class WithEnvironment(ScriptedEvaluator):
    """Evaluator whose notes are the names of some variables of its environment."""

    notes = tuple(sorted({"OMP_NUM_THREADS", "PGPASSWORD", "PLANISH_STORE"} & set(os.environ)))


@dataclass(frozen=True)
class WithLimits(LoggingSpec):
    """Spec with limits of its own."""

    limits: Limits = SHORT_LIMITS


@dataclass(frozen=True)
class LowPriority:
    """Spec of evaluators that run at idle priority on one processor.

    Args:
        processor: the processor's number.
    """

    processor: int

    def __call__(self) -> "LowPriority":
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        os.sched_setaffinity(0, {self.processor})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with suppress(OSError):  # some kernels schedule sessions first
            Path("/proc/self/autogroup").write_text("19")
        return ScriptedEvaluator().evaluate(candidate, clock)


class ClosedThenKilled(KilledEvaluator):
    """Closes its descriptors a while before the signal, as a process that ends on a busy machine."""

    def count(self) -> None:
        with self.path.open("ab") as file:
            file.write(b".")
        if self.path.stat().st_size <= self.times:
            os.closerange(3, 256)
            time.sleep(0.5)
            os.kill(os.getpid(), self.number)


class KilledWhileCreated(KilledEvaluator):
    """Spec whose process is killed while the evaluator is created."""

    def __call__(self) -> KilledEvaluator:
        self.count()
        return KilledEvaluator(self.path, 0)


@dataclass(frozen=True)
class PidSpec(LoggingSpec):
    """Spec of evaluators whose samples are their process ids; each evaluation takes a while."""

    pause: float = 0.05

    def __call__(self) -> "PidEvaluator":
        return PidEvaluator(self.path, self.pause)


class PidEvaluator(LoggingEvaluator):
    def __init__(self, path: Path, pause: float) -> None:
        super().__init__(path)
        self._pause = pause

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        super().evaluate(candidate, clock)
        with clock("run"):
            time.sleep(self._pause)
        return Measured({"cost": 1.0}, {"cost": (float(os.getpid()),)})


@dataclass(frozen=True)
class KilledBeforeCreated(PidSpec):
    """`PidSpec` whose first processes are killed before their evaluator is created.

    Args:
        creations: the file that counts them.
        times: the number of processes that are killed.
        code: exit code with which they exit instead; 0 for the signal.
    """

    creations: Path = Path()
    times: int = 0
    code: int = 0

    def __call__(self) -> "PidEvaluator":
        with self.creations.open("a+b") as file:
            file.write(b".")
            file.flush()
            if file.tell() <= self.times and self.code:
                os._exit(self.code)
            if file.tell() <= self.times:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__()


class TimedEvaluator(LoggingEvaluator):
    """Evaluator that fails if it took too long by the wall clock, as one that waits for a program."""

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        began = time.monotonic()
        outcome = super().evaluate(candidate, clock)
        return outcome if time.monotonic() - began < 1.5 else Failed("verify", "wrong answer", "too late")


@dataclass(frozen=True)
class TimedSpec(LoggingSpec):
    """Spec of `TimedEvaluator`."""

    def __call__(self) -> TimedEvaluator:
        return TimedEvaluator(self.path)


@dataclass(frozen=True)
class ExitingSpec(LoggingSpec):
    """Spec of evaluators whose workers exit shortly after their reply."""

    def __call__(self) -> LoggingEvaluator:
        return ExitingLater(self.path)


class ExitingLater(LoggingEvaluator):
    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        threading.Timer(0.3, os._exit, (77,)).start()
        return super().evaluate(candidate, clock)


class Trap:
    """Object that creates a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self._folder),)


@dataclass(frozen=True)
class ForgingEvaluator:
    """Evaluator that writes a forged reply to the pipe of its worker if a candidate has steps.

    Args:
        what: a name of `FORGERIES`.
        folder: created when the forged reply is unpickled.
    """

    what: str
    folder: Path

    def __call__(self) -> "ForgingEvaluator":
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        del clock
        if candidate.steps:
            replies = int(sys.argv[2])
            os.write(replies, FORGERIES[self.what](self.folder))
            time.sleep(60)
        return Measured({"cost": 1.0})


FORGERIES: dict[str, Callable[[Path], bytes]] = {
    "a pickle": lambda folder: framed(pickle.dumps(Trap(folder))),
    "an endless message": lambda _: b"\xff" * 8,
    "an answer to another candidate": lambda _: encode_reply(EvaluationReply(5, Measured({"cost": 0.0}))),
    "no number": lambda _: encode_reply(EvaluationReply(0, Measured({"cost": math.nan}))),
    "a number larger than any float": lambda _: encode_reply(EvaluationReply(0, Measured({"cost": 10**400}))),
    "no number of a part": lambda _: encode_reply(
        EvaluationReply(0, Measured({"cost": 1.0}, parts={"f": math.nan}))
    ),
    "seconds larger than any float": lambda _: encode_reply(
        EvaluationReply(0, Measured({"cost": 1.0}), {"run": 10**400})
    ),
    "seconds that are no number": lambda _: encode_reply(
        EvaluationReply(0, Measured({"cost": 1.0}), {"run": math.nan})
    ),
    "more than a reply": lambda _: (REPLY_BYTES + 1).to_bytes(8, "little"),
    "an evaluator that was not asked for": lambda _: encode_reply(EvaluatorReady(1)),
    "an error for the user": lambda _: encode_reply(
        EvaluatorReady(1, error=ErrorData.of(PlanishError("no")))
    ),
}
"""Forged replies, by name."""
