"""A forked child: what native code does there (crash, exit, hang, leak) ends the child alone.

A fork costs some milliseconds, where a new interpreter and its libraries take half a second; and it has at
once what this process has read.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NoReturn

from planish.isolation.confinement import cap_memory, die_with_parent
from planish.isolation.endings import End, ending_of, is_from_outside, is_timeout

_SAID = 2000
_OF_PROCESS = 2  # what Linux calls the clock of a process's time on the processor
_lifelines: set[int] = set()
"""The ends that this process holds; children that held them too would keep each other alive."""


class ForkedChild:
    """A child in a process group of its own, which is killed whole: at its end, and when this process dies.

    Its standard input is empty, and what it prints is kept for `end`.

    Args:
        work: what the child does; it sends its answers through the connection.
        memory_bytes: that the child may have beyond this process's; 0: no limit.
        scratch: where its temporary files go.

    Attributes:
        pid: its number.
        ends: to be waited for; one is ready when it has sent something, or is dead.
    """

    def __init__(self, work: Callable[[Connection], object], memory_bytes: int, scratch: Path) -> None:
        with ExitStack() as theirs, ExitStack() as ours:
            self._answers, sends = Pipe(duplex=False)
            ours.enter_context(self._answers)
            theirs.enter_context(sends)
            lifeline, held = os.pipe()
            ours.callback(_let_go, held)
            theirs.callback(os.close, lifeline)
            _lifelines.add(held)
            self._said = ours.enter_context(tempfile.TemporaryFile())
            self.pid = _fork()
            if not self.pid:
                self._work_and_exit(work, sends, lifeline, memory_bytes, scratch)
            with suppress(OSError):  # it was quicker
                os.setpgid(self.pid, self.pid)
            death = _death_of(self.pid)
            if death is not None:
                ours.callback(os.close, death)
            self.ends: tuple[Connection | int, ...] = (self._answers, *([] if death is None else [death]))
            self._ours = ours.pop_all()

    def processor_s(self) -> float:
        """Tell what it has used of the processor; 0 where that is not known, as when it is over."""
        try:
            # As clock_getcpuclockid(3) makes it, which Python lacks for other processes.
            return time.clock_gettime((~self.pid << 3) | _OF_PROCESS)
        except OSError:
            return 0.0

    def receive(self) -> Any:
        """Give what it has sent, once one of its ends is ready.

        Raises:
            EOFError: it is dead, or sends nothing any more; whoever it started may hold its pipe still.
            OSError: the same, in the middle of what it sent.
        """
        if wait(self.ends[1:], 0):
            # It is dead: what it had sent is there, and nothing more will come to be waited for.
            os.set_blocking(self._answers.fileno(), False)
        if not self._answers.poll():
            raise EOFError
        return self._answers.recv()

    def end(self) -> End:
        """Wait for its death, end what it started, and say how it ended."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # until it is buried, its group is its own
        self._kill_group()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        cause = ending_of(code)
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _SAID))
        said = self._said.read().decode(errors="replace").strip()
        self._ours.close()
        return End(cause, f"{cause}: {said}" if said else cause, is_from_outside(code), is_timeout(code))

    def kill(self) -> None:
        """End it and all that it started."""
        self._kill_group()
        self.end()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _work_and_exit(
        self,
        work: Callable[[Connection], object],
        sends: Connection,
        lifeline: int,
        memory_bytes: int,
        scratch: Path,
    ) -> NoReturn:
        code = 1
        try:
            self._answers.close()
            self._settle(lifeline, memory_bytes, scratch)
            work(sends)
            code = 0
        except BaseException:  # noqa: BLE001  (the child must not go on as if it were the parent)
            traceback.print_exc(file=sys.__stderr__)
        finally:
            # Not sys.exit: exit handlers and buffers are the parent's.
            os._exit(code)

    def _settle(self, lifeline: int, memory_bytes: int, scratch: Path) -> None:
        with suppress(OSError):  # the parent was quicker
            os.setpgid(0, 0)
        # Siblings' ends: this child would keep them alive after the parent's death.
        for held in _lifelines:
            os.close(held)
        _lifelines.clear()
        die_with_parent(lifeline)
        faulthandler.disable()  # a crash is no news here
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for timer in (signal.SIGALRM, signal.SIGPROF):
            # The watchdog's timers must kill, whatever handler the parent has for these signals.
            signal.signal(timer, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for ours, theirs in ((nothing, 0), (self._said.fileno(), 1), (self._said.fileno(), 2)):
            os.dup2(ours, theirs)
        if memory_bytes:
            cap_memory(memory_bytes)


def _fork() -> int:
    with warnings.catch_warnings():
        # With other threads, a fork may find a lock held for ever; the work must take none of theirs.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _death_of(pid: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError):  # an old system, or no more descriptors: its pipe will tell
            return os.pidfd_open(pid)
    return None


def _let_go(lifeline: int) -> None:
    _lifelines.discard(lifeline)
    os.close(lifeline)


def forget_output() -> None:
    """Drop what this child has printed: it belongs to what is finished."""
    os.ftruncate(1, 0)
    os.lseek(1, 0, os.SEEK_SET)
