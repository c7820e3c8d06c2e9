"""Pool of worker processes, as the parent process sees them."""

from __future__ import annotations

import faulthandler
import gc
import mmap
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from planish.core import Candidate, PlanishError
from planish.sandbox.child import (
    CRASHES,
    Child,
    ForkedProcess,
    close_lifeline,
    lifelines,
    open_lifeline,
    redirect,
)
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.limits import ExitStatus
from planish.sandbox.linux import descendants, threads
from planish.sandbox.plain_data import write_all
from planish.sandbox.protocol import (
    REPLY_BYTES,
    STAGE_CLOCK_BYTES,
    Chunk,
    CreateEvaluator,
    EvaluatorReady,
    Reply,
    Setup,
    StageClockShm,
    WorkerClock,
    decode_reply,
    encode_command,
)
from planish.sandbox.scratch import Scratch

_LOOK_S = 0.1  # how often it is looked at
_STARVES = 10


class _Sample(NamedTuple):
    """Threads of a process and of its descendants at one time, by their ids.

    The kernel adds what a thread has waited to `waited` when it runs again.
    """

    time: float
    states: dict[int, str]
    """One letter."""
    ran: dict[int, float]
    """Seconds for which it had a processor."""
    waited: dict[int, float]
    """Seconds for which it could have run and had none."""

    @staticmethod
    def of(pid: int) -> _Sample:
        sample = _Sample(time.monotonic(), {}, {}, {})
        for thread in chain.from_iterable(map(threads, descendants(pid))):
            number = int(thread.name)
            with suppress(OSError, ValueError):  # it ended meanwhile, or this system does not show it
                # "pid (name) state ...", and the name may hold anything
                sample.states[number] = (thread / "stat").read_text().rpartition(")")[2].split()[0]
                # See "schedstat" in the kernel's sched-stats.rst: nanoseconds run, nanoseconds waited.
                ran, waited, _ = (thread / "schedstat").read_text().split()
                sample.ran[number], sample.waited[number] = int(ran) * 1e-9, int(waited) * 1e-9
        return sample


class StallDetector:
    """Counts the seconds for which a process and its descendants were kept from running; on Linux alone.

    Of the time between two looks it is what one of them was stopped or waited for a processor, as far as
    they had no processor meanwhile. What sleeps waits for nothing of ours, so a process that hangs is not
    excused by it.

    Args:
        pid: of the process.

    Attributes:
        stopped: seconds that it was stopped.
        starved: seconds that others had the processor.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.restart()

    def restart(self) -> None:
        """Count from 0."""
        self.stopped = self.starved = 0.0
        self._last: _Sample | None = None
        self._next = time.monotonic() + _LOOK_S

    @property
    def seconds(self) -> float:
        """All seconds in which it was kept from running."""
        return self.stopped + self.starved

    def exceeds(self, limit: float) -> str:
        """Return "stopped" or "starved", whichever has lasted too long; empty where neither has.

        Args:
            limit: seconds that it may be stopped. It may starve for longer: with a tenth of a processor it
                goes on.
        """
        if self.stopped > limit:
            return "stopped"
        return "starved" if self.starved > _STARVES * limit else ""

    def look(self) -> None:
        """Count up to now; it is called often, and looks now and then."""
        if time.monotonic() < self._next:
            return
        last, now = self._last, _Sample.of(self._pid)
        self._last, self._next = now, now.time + _LOOK_S
        if last is None:
            return
        ran = sum(seconds - last.ran.get(thread, 0.0) for thread, seconds in now.ran.items())
        # Several threads may have run for longer than the clock: then it was not kept from running.
        idle = max(0.0, now.time - last.time - ran)
        if not {"T", "t"}.isdisjoint(now.states.values()):
            self.stopped += idle
        elif any(state == last.states.get(thread) == "R" for thread, state in now.states.items()):
            self.starved += idle  # it waits still, or has waited in between
        else:
            waits = (seconds - last.waited.get(thread, 0.0) for thread, seconds in now.waited.items())
            # The longest wait of one thread, and not the sum: they waited at the same time.
            self.starved += min(idle, max(waits, default=0.0))


WORKER = "planish.sandbox.worker"
"""The module that a worker process runs."""
_TAIL_BYTES = 4096
_TAIL_LINES = 12
_READ_BYTES = 1 << 16
_READS = 16  # at once: what prints without end must not keep the time limits from being looked at
_FAREWELL_S = 1.0  # for an idle worker to end by itself
_DEATH_S = 5.0  # for a worker that closed its pipe to be dead: on a busy machine that takes a while


def _environment() -> dict[str, str]:
    """Return the environment without the store's location and what reaches a PostgreSQL server."""
    return {
        name: value
        for name, value in os.environ.items()
        if name != "PLANISH_STORE" and not name.startswith("PG")
    }


def _forget_parent(inherited: Sequence[int]) -> None:
    """Drop the descriptors, signal handlers and variables of the process that this one was forked from."""
    kept = {0, 1, 2, *inherited}
    # Pipes of siblings, above all: one shows a death only when no other process holds it.
    for descriptor in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        if descriptor not in kept:
            with suppress(OSError):  # that of the listing
                os.close(descriptor)
    lifelines.clear()
    gc.freeze()  # a collection here would read, and so copy, all that the parent has
    sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115  (it lasts as long as the process)
    sys.stdout = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    signal.set_wakeup_fd(-1)
    faulthandler.disable()  # it would restore the parent's handlers at a crash
    for number in signal.valid_signals():
        if number in CRASHES or callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    for name in set(os.environ) - set(_environment()):
        del os.environ[name]


class WorkerProcess(Child):
    """A worker process, started at once in a session and process group of its own.

    Temporary files of it, and of what it starts, go to a folder of its own, which ends with it.

    Args:
        setup: the first message to it.
        forks: whether it is forked from this process, and so has the libraries that are loaded here.

    Attributes:
        serial: the number of the evaluator that it was last asked to create.
        creating: whether that evaluator is not ready yet.
        sandbox: the one in which the evaluator was created.
        evaluated: the number of candidates whose reply it has sent.
        pending: positions sent and without a reply; the first is being evaluated.
        last_activity: when it last replied or was sent something, monotonic seconds.
        grace: seconds since then in which the executor did not read its replies.
        stalls: counts the seconds since then in which it was kept from running.
        replies, errors: descriptors to listen on.
    """

    def __init__(self, setup: Setup, *, forks: bool = False) -> None:
        command_end, self._commands = os.pipe()
        replies, reply_end = os.pipe()
        self.errors, error_end = os.pipe()
        lifeline, self._lifeline = open_lifeline()
        shared_clock = _shared_memory()
        inherited = (command_end, reply_end, shared_clock, lifeline)
        self._scratch = Scratch()
        start = _forked if forks else _spawned
        self._process = start(inherited, error_end, self._scratch.path)
        super().__init__(self._process.pid, replies, REPLY_BYTES)
        self.clock = StageClockShm(memoryview(mmap.mmap(shared_clock, STAGE_CLOCK_BYTES)))
        # The child's ends: a pipe shows its death only when no other process holds them.
        for descriptor in (*inherited, error_end):
            os.close(descriptor)
        os.set_blocking(self.errors, False)
        self._tail = b""
        self.serial = 0
        self.sandbox: SandboxPolicy | None = None
        self.creating = False
        self.evaluated = 0
        self.pending: deque[int] = deque()
        self.stalls = StallDetector(self.pid)
        self._send(encode_command(setup))

    @property
    def busy(self) -> bool:
        """Return whether a reply is outstanding."""
        return self.creating or bool(self.pending)

    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        return self._process.poll() is None

    def create_evaluator(self, serial: int, spec: bytes, sandbox: SandboxPolicy | None) -> None:
        """Send the command to create another evaluator, in the same sandbox if it has one."""
        self.serial, self.creating, self.sandbox = serial, True, sandbox
        self._send(encode_command(CreateEvaluator(serial, spec, sandbox)))

    def evaluate(self, positions: Sequence[int], candidates: Sequence[Candidate]) -> None:
        """Send candidates to evaluate; only while it is not busy, or the pipe may block."""
        frame = encode_command(Chunk(positions, candidates))
        self.pending.extend(positions)
        self._send(frame)

    def read(self) -> Iterator[Reply]:
        """Yield the messages that have come.

        Raises:
            EOFError: no more will come.
        """
        for body in self._read():
            self._tail = b""  # whatever it printed belongs to what is finished
            self._mark()
            try:
                reply = decode_reply(body)
                self._note(reply)
            except ValueError as error:
                # Evaluated code may write to the pipe: then nothing that comes after can be believed.
                self.reject(error)
            yield reply

    def _note(self, reply: Reply) -> None:
        if isinstance(reply, EvaluatorReady) and self.creating and reply.serial == self.serial:
            self.creating = False
        elif isinstance(reply, EvaluatorReady):
            raise ValueError(f"no evaluator {reply.serial} is being made")
        elif self.pending and self.pending[0] == reply.position:
            self.pending.popleft()
            self.evaluated += 1
        else:
            raise ValueError(f"position {reply.position} is not under way")

    def drain(self) -> bool:
        """Read its output, and keep the end; return False at the end of the stream."""
        with suppress(BlockingIOError):
            for _ in range(_READS):
                if not (data := os.read(self.errors, _READ_BYTES)):
                    return False
                self._tail = (self._tail + data)[-_TAIL_BYTES:]
        return True

    def is_overdue(self, since: float, limit: float) -> bool:
        """Return whether a phase that began at a monotonic time has exceeded its limit.

        The seconds in which it was kept from running do not count.
        """
        return time.monotonic() - max(since, self.last_activity) > limit + self.grace + self.stalls.seconds

    def exit_status(self) -> ExitStatus:
        """Return the exit status."""
        try:
            # One that sent what is not an answer is alive, and is ended because of that.
            code = self._process.wait(0.0 if self._malformed else _DEATH_S)
        except subprocess.TimeoutExpired:
            code = None
        self.drain()
        last = self._tail.decode(errors="replace").splitlines()[-_TAIL_LINES:]
        return self._status(code, "\n".join(last), "\n")

    def kill(self) -> None:
        """End it and all that it started."""
        self._kill_group()
        self._process.kill()  # one that was forked just now has no group yet
        self._process.wait()  # else the dead child stays as a zombie
        close_lifeline(self._lifeline)
        self._scratch.remove()  # files that a descendant in another session writes meanwhile stay
        for descriptor in (self._commands, self.replies, self.errors):
            with suppress(OSError):
                os.close(descriptor)

    def close_commands(self) -> None:
        """Close the pipe of commands, at which it ends; `kill` must follow."""
        os.close(self._commands)
        self._commands = -1

    def join(self) -> None:
        """Wait up to a second for it to end by itself, after `close_commands`."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_FAREWELL_S)

    def _send(self, frame: bytes) -> None:
        self._mark()
        with suppress(BrokenPipeError):  # it died: that will show where we listen
            write_all(self._commands, frame)

    def _mark(self) -> None:
        self.last_activity = time.monotonic()
        self.grace = 0.0
        self.stalls.restart()


def _spawned(inherited: Sequence[int], output: int, scratch: Path) -> subprocess.Popen[bytes]:
    """Run the worker's module in a new interpreter."""
    return subprocess.Popen(
        # -P: a file in the folder where planish was started must not shadow a module.
        [sys.executable, "-P", "-m", WORKER, *map(str, inherited)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=inherited,
        start_new_session=True,
        env={**_environment(), "TMPDIR": str(scratch)},
    )


def _forked(inherited: Sequence[int], output: int, scratch: Path) -> ForkedProcess:
    def serve() -> None:
        os.setsid()
        redirect(output, scratch)
        _forget_parent(inherited)
        # Late: a new interpreter runs this module, which its package must not have imported by then.
        from planish.sandbox.worker import main

        main(inherited)

    return ForkedProcess(serve)


def _shared_memory() -> int:
    if sys.platform == "linux":
        # Without a file system: a full /dev/shm or /tmp cannot stop a worker.
        descriptor = os.memfd_create("planish-stage-clock")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, STAGE_CLOCK_BYTES)
    return descriptor


class WorkerPool:
    """Worker processes, as many as are wanted once `fill` was called.

    Args:
        count: how many.
        memory_bytes: what each may have beyond its start.
        clock: makes the clock that a worker's evaluators are given; it is pickled.
        forks: whether workers are forked from this process.

    Attributes:
        count: how many are wanted.
        workers: those that run.
    """

    def __init__(
        self,
        count: int,
        memory_bytes: int,
        clock: Callable[[StageClockShm], WorkerClock],
        *,
        forks: bool = False,
    ) -> None:
        self.count, self._forks = count, forks
        self.workers: list[WorkerProcess] = []
        self._memory_bytes = memory_bytes
        self._clock = clock
        self._selector = selectors.DefaultSelector()

    def fill(self) -> None:
        """Replace the workers that have ended.

        Raises:
            PlanishError: the system starts no more processes.
        """
        for worker in [w for w in self.workers if not w.busy and not w.is_alive()]:
            self.kill(worker)
        while len(self.workers) < self.count:
            setup = Setup(tuple(sys.path), self._memory_bytes, self._clock)
            try:
                worker = WorkerProcess(setup, forks=self._forks)
            except OSError as error:
                raise PlanishError(
                    f"a worker cannot be started: {error}", "Ask for fewer workers."
                ) from error
            self.workers.append(worker)
            for descriptor in (worker.replies, worker.errors):
                self._selector.register(descriptor, selectors.EVENT_READ, worker)

    def recycle_old(self, lifetime: int) -> None:
        """End idle workers that have evaluated this number of candidates; `fill` replaces them."""
        for worker in [w for w in self.workers if not w.busy and w.evaluated >= lifetime]:
            self.kill(worker)

    def recycle_if_changed(self, sandbox: SandboxPolicy | None) -> None:
        """End workers whose sandbox differs: a sandbox cannot be relaxed."""
        for worker in [w for w in self.workers if w.serial and w.sandbox != sandbox]:
            self.kill(worker)

    def ready(self, seconds: float) -> Iterator[WorkerProcess]:
        """Yield the workers that reply, or end, within a timeout in seconds.

        Their output is drained on the way. A worker may be killed meanwhile.
        """
        for key, _ in self._selector.select(seconds):
            worker: WorkerProcess = key.data
            # Killed while the events of this round were handled.
            if worker not in self.workers:
                continue
            if key.fd == worker.replies:
                yield worker
            elif not worker.drain():
                self._selector.unregister(worker.errors)

    def kill(self, worker: WorkerProcess) -> None:
        """End a worker and all that it started."""
        for descriptor in (worker.replies, worker.errors):
            with suppress(KeyError):  # one that reached its end is no longer listened to
                self._selector.unregister(descriptor)
        self.workers.remove(worker)
        worker.kill()

    def close(self) -> None:
        """Close the pipes of idle workers, so that they end by themselves, and kill the others."""
        for worker in self.workers:
            # All before any is waited for, so that they end side by side.
            worker.close_commands()
        for worker in list(self.workers):
            if not worker.busy:
                worker.join()
            self.kill(worker)
        self._selector.close()
