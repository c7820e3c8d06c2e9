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
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import NoReturn

from planish.isolation.confinement import cap_memory, die_with_parent
from planish.isolation.endings import End, ending_of, is_from_outside, is_timeout

_SAID = 2000
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
        answers: what it sends.
    """

    def __init__(self, work: Callable[[Connection], object], memory_bytes: int, scratch: Path) -> None:
        self.answers, sends = Pipe(duplex=False)
        lifeline, self._held = os.pipe()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `end`)
        _lifelines.add(self._held)
        with warnings.catch_warnings():
            # With other threads, a fork may find a lock held for ever; the work must take none of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if not self.pid:
            self._work_and_exit(work, sends, lifeline, memory_bytes, scratch)
        with suppress(OSError):  # it was quicker
            os.setpgid(self.pid, self.pid)
        sends.close()
        os.close(lifeline)

    def end(self) -> End:
        """Wait for its death, end what it started, and say how it ended."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # until it is buried, its group is its own
        self._kill_group()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.answers.close()
        _lifelines.discard(self._held)
        os.close(self._held)
        cause = ending_of(code)
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _SAID))
        said = self._said.read().decode(errors="replace").strip()
        self._said.close()
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
            self.answers.close()
            self._settle(lifeline, memory_bytes, scratch)
            work(sends)
            code = 0
        except BaseException:  # noqa: BLE001  (the child must not go on as if it were the parent)
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)

    def _settle(self, lifeline: int, memory_bytes: int, scratch: Path) -> None:
        with suppress(OSError):  # the parent was quicker
            os.setpgid(0, 0)
        for held in _lifelines:
            os.close(held)
        _lifelines.clear()
        die_with_parent(lifeline)
        faulthandler.disable()  # a crash is no news here
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for timer in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(timer, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for ours, theirs in ((nothing, 0), (self._said.fileno(), 1), (self._said.fileno(), 2)):
            os.dup2(ours, theirs)
        if memory_bytes:
            cap_memory(memory_bytes)


def forget_output() -> None:
    """Drop what this child has printed: it belongs to what is finished."""
    os.ftruncate(1, 0)
    os.lseek(1, 0, os.SEEK_SET)
