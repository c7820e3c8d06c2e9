"""Child processes: how they are started, send messages, are killed with all that they started, and ended.

A spawned child is a new interpreter. A fork takes some milliseconds, where that and its libraries take half a
second, and a forked child has everything that this process has loaded; a crash, exit, hang or leak of native
code in it ends the child alone.
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from select import POLLIN, poll
from typing import NoReturn

from planish.sandbox.confinement import cap_memory, die_with_parent
from planish.sandbox.limits import UNUSABLE, ExitStatus, describe_exit, is_external_signal, is_timeout
from planish.sandbox.linux import hide
from planish.sandbox.plain_data import MOST_BYTES, DataError, FrameReader, framed, write_all

_OUTPUT_BYTES = 2000
_READ_BYTES = 1 << 20
Send = Callable[[bytes], None]
"""Sends a message to the parent; it is plain data, for the child runs what may go wrong in any way."""
_OF_PROCESS = 2  # what Linux calls the clock of a process's time on the processor
_POLL_S = 1e-3
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT)
"""Signals that must end a forked child, though libraries in its parent, such as PoCL, ignore them."""
lifelines: set[int] = set()
"""The ends that this process holds; forked children that held them too would keep other children alive."""


class Child:
    """A process in a process group of its own, which is killed whole.

    Args:
        pid: its number.
        replies: the descriptor on which its messages come.
        most_bytes: size limit of a message.
    """

    def __init__(self, pid: int, replies: int, most_bytes: int = MOST_BYTES) -> None:
        self.pid, self.replies = pid, replies
        self._frames, self._malformed = FrameReader(most_bytes), ""
        # A child may be killed in the middle of a message: the rest must not be waited for.
        os.set_blocking(replies, False)

    def processor_s(self) -> float:
        """Return the processor time that it has used; 0 where that is not known, as after its end."""
        try:
            # As clock_getcpuclockid(3) makes it, which Python lacks for other processes.
            return time.clock_gettime((~self.pid << 3) | _OF_PROCESS)
        except OSError:
            return 0.0

    def reject(self, error: ValueError) -> NoReturn:
        """Believe nothing more of it, for it sent a message that is malformed; raises EOFError."""
        self._malformed = f"sent what is not an answer: {error}"
        raise EOFError(self._malformed) from error

    def _read(self) -> Iterator[bytes]:
        """Yield the messages that have come whole; there may be none.

        Raises:
            EOFError: it sends nothing any more, or sent what is not a message.
        """
        with suppress(BlockingIOError):
            if not (data := os.read(self.replies, _READ_BYTES)):
                raise EOFError
            try:
                yield from self._frames.feed(data)
            except DataError as error:
                self.reject(error)

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _status(self, code: int | None, output: str, separator: str) -> ExitStatus:
        """Return how it ended, by its exit code (None: it has not ended yet) and by what it printed."""
        ended = describe_exit(code) if code is not None else "closed its pipe"
        cause, believed = self._malformed or ended, None if self._malformed else code
        return ExitStatus(
            cause,
            f"{cause}{separator}{output}" if output else cause,
            external=believed is not None and is_external_signal(believed),
            hung=believed is not None and is_timeout(believed),
            exited=believed is not None and believed >= 0,
            unusable=believed == UNUSABLE,
        )


def open_lifeline() -> tuple[int, int]:
    """Return the end that a child watches (`die_with_parent`), and the one that this process holds."""
    watched, held = os.pipe()
    lifelines.add(held)
    return watched, held


def close_lifeline(held: int) -> None:
    """Close the end that this process holds."""
    lifelines.discard(held)
    os.close(held)


class ForkedProcess:
    """A process that is forked from this one, with the methods of `subprocess.Popen` that pools use.

    Args:
        main: what it does; then it ends.

    Attributes:
        pid: its number.
        ends: a descriptor that is ready once it has ended; empty where the system has none.
    """

    def __init__(self, main: Callable[[], object]) -> None:
        with warnings.catch_warnings():
            # With other threads, a fork may find a lock held for ever; the work must take none of theirs.
            warnings.simplefilter("ignore")
            self.pid = os.fork()
        if not self.pid:
            _call_and_exit(main)
        self._code: int | None = None
        self.ends: tuple[int, ...] = ()
        if sys.platform == "linux":
            with suppress(OSError):  # no more descriptors
                self.ends = (os.pidfd_open(self.pid),)

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
                for end in self.ends:
                    os.close(end)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises `subprocess.TimeoutExpired` where it takes longer."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if (left := end - time.monotonic()) <= 0:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            wait(self.ends, left if self.ends else _POLL_S)
        return code

    def kill(self) -> None:
        """End it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _call_and_exit(main: Callable[[], object]) -> NoReturn:
    code = 1
    try:
        _skip_exit_handlers()
        main()
        code = 0
    except BaseException:  # noqa: BLE001  (the child must not go on as if it were the parent)
        traceback.print_exc(file=sys.__stderr__)
    finally:
        # Not sys.exit: exit handlers and buffers are the parent's.
        os._exit(code)


def _skip_exit_handlers() -> None:
    """Have exit(), which native code calls, end this process at once.

    Its handlers are the parent's, and some wait for threads that only the parent has.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "on_exit"):  # in glibc alone; the last that is registered is called first
        library.on_exit(library._exit, None)


def redirect(output: int, scratch: Path) -> None:
    """Set up this forked child: empty input, output, and a folder for temporary files."""
    for ours, theirs in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
        os.dup2(ours, theirs)
    os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)


class ForkedChild(Child):
    """A child in a process group of its own, which is killed whole: at its end, and when this process dies.

    Its standard input is empty, and what it prints is kept for `end`.

    Args:
        work: what the child does; it is given what sends its answers.
        memory_bytes: that the child may have beyond this process's; 0: no limit.
        scratch: where its temporary files go.

    Attributes:
        pid: its number.
        ends: to be waited for; one is ready when it has sent something, or is dead.
    """

    def __init__(self, work: Callable[[Send], object], memory_bytes: int, scratch: Path) -> None:
        with ExitStack() as theirs, ExitStack() as ours:
            answers, sends = os.pipe()
            ours.callback(os.close, answers)
            theirs.callback(os.close, sends)
            lifeline, held = open_lifeline()
            ours.callback(close_lifeline, held)
            theirs.callback(os.close, lifeline)
            self._output = ours.enter_context(tempfile.TemporaryFile())

            def main() -> None:
                os.close(answers)
                self._separate(lifeline, memory_bytes, scratch)
                work(lambda body: write_all(sends, framed(body)))

            self._process = ForkedProcess(main)
            super().__init__(self._process.pid, answers)
            with suppress(OSError):  # it was quicker
                os.setpgid(self.pid, self.pid)
            self.ends = (answers, *self._process.ends)
            self._ours = ours.pop_all()

    def receive(self) -> list[bytes]:
        """Read the messages that have come whole, once one of the ends is ready; there may be none yet.

        Raises:
            EOFError: it is dead, or sends nothing any more; a descendant may still hold its pipe. Or
                it sent what is not a message: then it is killed.
        """
        dead = bool(wait(self._process.ends, 0))
        try:
            messages = list(self._read())
        except EOFError:
            self._kill_group()
            raise
        # What it had sent before it died counts.
        if dead and not messages:
            raise EOFError
        return messages

    def reject(self, error: ValueError) -> NoReturn:
        """Kill it for a message that is malformed; raises EOFError."""
        self._kill_group()
        super().reject(error)

    def end(self) -> ExitStatus:
        """Wait for its death, end what it started, and say how it ended."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # until it is buried, its group is its own
        self._kill_group()
        code = self._process.wait()
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - _OUTPUT_BYTES))
        output = self._output.read().decode(errors="replace").strip()
        self._ours.close()
        return self._status(code, output, ": ")

    def kill(self) -> None:
        """End it and all that it started."""
        self._kill_group()
        self.end()

    def _separate(self, lifeline: int, memory_bytes: int, scratch: Path) -> None:
        with suppress(OSError):  # the parent was quicker
            os.setpgid(0, 0)
        # Siblings' ends: this child would keep them alive after the parent's death.
        for held in lifelines:
            os.close(held)
        lifelines.clear()
        die_with_parent(lifeline)
        hide()
        faulthandler.disable()  # a crash is expected here
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for fatal in (*CRASHES, signal.SIGALRM, signal.SIGPROF):
            # The watchdog's timers must kill, too, whatever handler the parent has for these signals.
            signal.signal(fatal, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        redirect(self._output.fileno(), scratch)
        if memory_bytes:
            cap_memory(memory_bytes)


def wait(ends: Iterable[int], seconds: float | None) -> set[int]:
    """Wait for the first ends of children that are ready, up to a timeout in seconds; None: no limit."""
    polled = poll()
    for end in ends:
        polled.register(end, POLLIN)
    # Rounded up: a fraction of a millisecond is not a reason to ask again and again.
    limit = None if seconds is None or seconds == math.inf else math.ceil(seconds * 1e3)
    return {end for end, _ in polled.poll(limit)}


def forget_output() -> None:
    """Drop what this child has printed: it belongs to what is finished."""
    os.ftruncate(1, 0)
    os.lseek(1, 0, os.SEEK_SET)
