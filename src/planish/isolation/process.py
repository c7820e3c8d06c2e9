"""The parent's hold on one worker process: its pipes, what it is at, and its end."""

import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from planish.core import Candidate
from planish.isolation.cage import Cage
from planish.isolation.child import ChildProcess
from planish.isolation.dial import DIAL_BYTES, Dial
from planish.isolation.endings import End, ending_of, is_from_outside
from planish.isolation.plain_data import FrameReader
from planish.isolation.wire import (
    REPLY_BYTES,
    Chunk,
    Made,
    Make,
    Reply,
    Setup,
    decode_reply,
    encode_command,
    send,
)
from planish.isolation.withheld import Withheld

WORKER = "planish.isolation.worker"
"""What a worker process runs."""
_TAIL_BYTES = 4096
_TAIL_LINES = 12
_READ_BYTES = 1 << 16
_READS = 16  # at once: what prints without end must not keep the time limits from being looked at
_FAREWELL_S = 1.0  # for an idle worker to end by itself
_DEATH_S = 0.2  # for a worker that closed its pipe to be dead


class WorkerProcess:
    """A worker process, started at once in a session and process group of its own.

    Temporary files of it, and of what it starts, go to a folder of its own, which ends with it.

    Args:
        setup: how the worker shall live.

    Attributes:
        serial: the number of the evaluator that it was last asked to make.
        making: whether it is still making it.
        cage: in which it made it.
        evaluated: how many candidates it has answered for.
        pending: positions sent and not answered; the first is the one under way.
        heard: when it last said something or was given something, monotonic seconds.
        slack: seconds since then in which nobody listened to it.
        withheld: what it lacked the processor since then.
        replies, errors: descriptors to listen on.
    """

    def __init__(self, setup: Setup) -> None:
        command_end, self._commands = os.pipe()
        self.replies, reply_end = os.pipe()
        self.errors, error_end = os.pipe()
        dial = _shared_memory()
        inherited = (command_end, reply_end, dial)
        self._child = ChildProcess(
            WORKER, inherited, stdin=subprocess.DEVNULL, stdout=error_end, stderr=error_end
        )
        self._process = self._child.process
        self.dial = Dial(memoryview(mmap.mmap(dial, DIAL_BYTES)))
        # The child's ends: a pipe tells of its death only when nobody else holds them.
        for descriptor in (*inherited, error_end):
            os.close(descriptor)
        # A worker may be killed in the middle of an answer: the rest must not be waited for.
        os.set_blocking(self.replies, False)
        os.set_blocking(self.errors, False)
        self._frames = FrameReader(REPLY_BYTES)
        self._tail = b""
        self._malformed = ""
        self.serial = 0
        self.cage: Cage | None = None
        self.making = False
        self.evaluated = 0
        self.pending: deque[int] = deque()
        self.withheld = Withheld(self._process.pid)
        self._send(encode_command(setup))

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def busy(self) -> bool:
        """Whether an answer of it is awaited."""
        return self.making or bool(self.pending)

    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def make(self, serial: int, spec: bytes, cage: Cage | None) -> None:
        """Have it make another evaluator; in the cage in which it is, where it is in one."""
        self.serial, self.making, self.cage = serial, True, cage
        self._send(encode_command(Make(serial, spec, cage)))

    def evaluate(self, positions: Sequence[int], candidates: Sequence[Candidate]) -> None:
        """Have it evaluate these; only while it is not busy, or the pipe may block."""
        frame = encode_command(Chunk(positions, candidates))
        self.pending.extend(positions)
        self._send(frame)

    def read(self) -> Iterator[Reply]:
        """Give the messages that have come.

        Raises:
            EOFError: no more will come.
        """
        with suppress(BlockingIOError):
            data = os.read(self.replies, _READ_BYTES)
            if not data:
                raise EOFError
            self._tail = b""  # whatever it printed belongs to what is finished
            self._mark()
            try:
                for body in self._frames.feed(data):
                    reply = decode_reply(body)
                    self._note(reply)
                    yield reply
            except ValueError as error:
                # Evaluated code may write to the pipe: then nothing that comes after can be believed.
                self._malformed = f"sent what is not an answer: {error}"
                raise EOFError(self._malformed) from error

    def _note(self, reply: Reply) -> None:
        if isinstance(reply, Made) and self.making and reply.serial == self.serial:
            self.making = False
        elif isinstance(reply, Made):
            raise ValueError(f"no evaluator {reply.serial} is being made")
        elif self.pending and self.pending[0] == reply.position:
            self.pending.popleft()
            self.evaluated += 1
        else:
            raise ValueError(f"position {reply.position} is not under way")

    def drain(self) -> bool:
        """Take what it printed, and keep the end of it; False when it can print no more."""
        with suppress(BlockingIOError):
            for _ in range(_READS):
                if not (data := os.read(self.errors, _READ_BYTES)):
                    return False
                self._tail = (self._tail + data)[-_TAIL_BYTES:]
        return True

    def is_overdue(self, since: float, limit: float) -> bool:
        """Whether it has been at one thing, since a monotonic time, for longer than its limit.

        What was withheld from it does not count.
        """
        return time.monotonic() - max(since, self.heard) > limit + self.slack + self.withheld.seconds

    def autopsy(self) -> End:
        """Say how it ended."""
        code, exited = 0, False
        try:
            # One that sent what is not an answer is alive, and is ended because of that.
            code = self._process.wait(0.0 if self._malformed else _DEATH_S)
        except subprocess.TimeoutExpired:
            cause = self._malformed or "closed its pipe"
        else:
            cause = self._malformed or ending_of(code)
            exited = code >= 0 and not self._malformed
        self.drain()
        last = self._tail.decode(errors="replace").splitlines()[-_TAIL_LINES:]
        outside = is_from_outside(code) and not self._malformed
        return End(cause, "\n".join([cause, *last]), outside, exited=exited)

    def kill(self) -> None:
        """End it and all that it started."""
        self._child.kill()
        for descriptor in (self._commands, self.replies, self.errors):
            with suppress(OSError):
                os.close(descriptor)

    def dismiss(self) -> None:
        """Ask it to end; `kill` must follow."""
        os.close(self._commands)
        self._commands = -1

    def leave(self) -> None:
        """Wait a moment for a dismissed worker to end by itself."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_FAREWELL_S)

    def _send(self, frame: bytes) -> None:
        self._mark()
        with suppress(BrokenPipeError):  # it died: that will show where we listen
            send(self._commands, frame)

    def _mark(self) -> None:
        self.heard = time.monotonic()
        self.slack = 0.0
        self.withheld.restart()


def _shared_memory() -> int:
    if sys.platform == "linux":
        # Without a file system: a full /dev/shm or /tmp cannot stop a worker.
        descriptor = os.memfd_create("planish-dial")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, DIAL_BYTES)
    return descriptor
