"""Process that does work in forked children, for a program that has threads and should not be forked.

The program and the process belong to the same user and exchange pickles. What the children send to the
process is plain data, as in every pool of forked children.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from planish.core import LostError, PlanishError, usable_cores
from planish.sandbox.child import close_lifeline, open_lifeline, wait
from planish.sandbox.confinement import die_with_parent
from planish.sandbox.fork_pool import Watchdog, forked
from planish.sandbox.limits import ExitStatus
from planish.sandbox.plain_data import FrameReader, framed, write_all

_MAIN = "import sys; from planish.sandbox.work_process import do_work; do_work(int(sys.argv[1]))"
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class ForkedWork:
    """Work on items, done by `planish.sandbox.fork_pool.forked`.

    Args:
        work: returns an item's answer.
        answer: the type of answers.
        jobs: children side by side; 0: one for each core.
        at_once: items of one child at most.
    """

    work: Callable[[Any, Watchdog], Any]
    answer: Any
    jobs: int
    at_once: int

    @property
    def processes(self) -> int:
        """Return the number of children side by side on this machine."""
        return self.jobs or usable_cores()


@dataclass(frozen=True)
class WorkReply:
    """Reply on an item.

    Args:
        position: the number that the item was sent with.
        answer: None where it was given up.
        refused: the parts of the work that ended a child.
        given_up: how the last child ended, where no answer will come.
    """

    position: int
    answer: Any
    refused: tuple[str, ...]
    given_up: ExitStatus | None


class WorkProcess:
    """A process that does work, batch after batch, until it is closed or this process ends.

    Args:
        work: what it does; it is pickled.
    """

    def __init__(self, work: ForkedWork) -> None:
        watched, self._lifeline = open_lifeline()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, str(watched)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            pass_fds=[watched],
            process_group=0,
        )
        os.close(watched)
        self._frames = FrameReader()
        # A thread writes, since the process reads the next batch once it has done this one.
        self._writer = ThreadPoolExecutor(1)
        self._send(work)

    def send(self, batch: Sequence[tuple[int, Any]]) -> None:
        """Have numbered items done, after those that were sent before."""
        if batch:
            self._send(batch)

    def replies(self, seconds: float) -> Sequence[WorkReply]:
        """Return the replies that have come, after so many seconds at most.

        Raises:
            PlanishError: whatever the work raises.
            LostError: the process has ended.
        """
        assert self._process.stdout is not None
        output, found = self._process.stdout.fileno(), list[WorkReply]()
        if not wait([output], seconds):
            return found
        if not (data := os.read(output, _READ_BYTES)):
            raise LostError("the process that does the work has ended")
        for body in self._frames.feed(data):
            reply = pickle.loads(body)
            if isinstance(reply, PlanishError):
                raise reply
            found.append(reply)
        return found

    def close(self) -> None:
        """End the process; its children end with it."""
        self._process.kill()
        self._process.wait()
        close_lifeline(self._lifeline)
        self._writer.shutdown()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _send(self, command: object) -> None:
        assert self._process.stdin is not None
        self._writer.submit(_write, self._process.stdin.fileno(), pickle.dumps(command))


def _write(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError):  # the process has ended, which `replies` reports
        write_all(descriptor, data)


def do_work(lifeline: int) -> None:
    """Do the work that standard input asks for, a batch at a time, until its end.

    Args:
        lifeline: the descriptor at whose end this process ends; see `die_with_parent`.
    """
    die_with_parent(lifeline)
    replies = os.dup(1)
    os.dup2(2, 1)
    with open(0, "rb", closefd=False) as commands:
        try:
            work: ForkedWork = pickle.load(commands)
            while True:
                batch: Sequence[tuple[int, Any]] = pickle.load(commands)
                numbers = {id(item): number for number, item in batch}
                items = [item for _, item in batch]
                for done in forked(items, work.work, work.answer, work.jobs, at_once=work.at_once):
                    reply = WorkReply(numbers[id(done.item)], done.answer, done.refused, done.given_up)
                    write_all(replies, framed(pickle.dumps(reply)))
        except EOFError:
            return
        except PlanishError as error:
            write_all(replies, framed(pickle.dumps(error)))
