"""Factories that workers import by name."""

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
from planish.testing.acting import Actor, Diarist, Diary, Mortal

HASTY = Limits(build=0.3)


class Telling(Actor):
    """An actor with something to say."""

    notes = ("it is late",)


class Environed(Actor):
    """An actor that names some variables of its environment."""

    notes = tuple(sorted({"OMP_NUM_THREADS", "PGPASSWORD", "PLANISH_STORE"} & set(os.environ)))


@dataclass(frozen=True)
class Hasty(Diary):
    """A spec that asks for limits of its own."""

    limits: Limits = HASTY


@dataclass(frozen=True)
class Humble:
    """Makes evaluators that leave one processor to all other processes, then do something.

    Args:
        processor: which.
    """

    processor: int

    def __call__(self) -> "Humble":
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        os.sched_setaffinity(0, {self.processor})
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with suppress(OSError):  # some kernels share a processor out among sessions first
            Path("/proc/self/autogroup").write_text("19")
        return Actor().evaluate(candidate, clock)


class Fading(Mortal):
    """Closes its descriptors a while before the signal, as a process does that dies on a busy machine."""

    def live(self) -> None:
        with self.path.open("ab") as file:
            file.write(b".")
        if self.path.stat().st_size <= self.times:
            os.closerange(3, 256)
            time.sleep(0.5)
            os.kill(os.getpid(), self.number)


class Dying(Mortal):
    """Is killed while the evaluator is made."""

    def __call__(self) -> Mortal:
        self.live()
        return Mortal(self.path, 0)


@dataclass(frozen=True)
class Signed(Diary):
    """Makes evaluators whose samples are the numbers of their processes; each evaluation takes a while."""

    pause: float = 0.05

    def __call__(self) -> "Signing":
        return Signing(self.path, self.pause)


class Signing(Diarist):
    def __init__(self, path: Path, pause: float) -> None:
        super().__init__(path)
        self._pause = pause

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        super().evaluate(candidate, clock)
        with clock("run"):
            time.sleep(self._pause)
        return Measured({"cost": 1.0}, {"cost": (float(os.getpid()),)})


@dataclass(frozen=True)
class Stillborn(Signed):
    """Makes evaluators as `Signed` does; the first processes are killed before theirs is made.

    Args:
        births: the file that counts them.
        times: how many are killed.
        code: with which they exit instead.
    """

    births: Path = Path()
    times: int = 0
    code: int = 0

    def __call__(self) -> "Signing":
        with self.births.open("a+b") as file:
            file.write(b".")
            file.flush()
            if file.tell() <= self.times and self.code:
                os._exit(self.code)
            if file.tell() <= self.times:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__()


class Hurried(Diarist):
    """Fails where the clock on the wall shows that it took too long, as one does that waits for a program."""

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        began = time.monotonic()
        outcome = super().evaluate(candidate, clock)
        return outcome if time.monotonic() - began < 1.5 else Failed("verify", "wrong answer", "too late")


@dataclass(frozen=True)
class Hurry(Diary):
    """Makes such evaluators."""

    def __call__(self) -> Hurried:
        return Hurried(self.path)


@dataclass(frozen=True)
class Idling(Diary):
    """Makes evaluators whose workers exit in a moment, after they have answered."""

    def __call__(self) -> Diarist:
        return ExitingLater(self.path)


class ExitingLater(Diarist):
    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        threading.Timer(0.3, os._exit, (77,)).start()
        return super().evaluate(candidate, clock)


class Trap:
    """Whatever unpickles it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self._folder),)


@dataclass(frozen=True)
class Forger:
    """Makes evaluators that write to their worker's pipe of replies where a candidate has steps.

    Args:
        what: a name of `FORGERIES`.
        folder: is made by whatever unpickles what is written.
    """

    what: str
    folder: Path

    def __call__(self) -> "Forger":
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
"""What may be written to the pipe of replies in place of an answer."""
