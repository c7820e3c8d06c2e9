"""Worker processes, and commands of `planish cc`, forked from a process that has imported all levels.

The imports of a worker take a second, or two, and a run starts a worker for each of its stages. The process
that is forked imports, and does nothing else, so what it becomes is as a process that was started alone: with
nothing of the tests' process, and a worker in a session, a sandbox and a folder of its own.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

from planish.sandbox.child import redirect

IMPORTED = (
    "jax",
    "planish.cc.driver",
    "planish.cc.optimize",
    "planish.levels.graph.evaluator",
    "planish.levels.hlo.evaluator",
    "planish.levels.llvm.evaluator",
    "planish.levels.loops.evaluator",
    "planish.sandbox.worker",
    "planish.tuning.api",
)
_BYTES = 1 << 16
_MOST = 16
"""Descriptors that are sent at once."""


@dataclass(frozen=True)
class Worker:
    """A worker, which is given the descriptors of `planish.sandbox.worker` and that of its output."""

    environment: dict[str, str]
    folder: str
    scratch: str

    def __call__(self, descriptors: list[int]) -> None:
        from planish.sandbox.worker import main

        *inherited, output = descriptors
        redirect(output, Path(self.scratch))
        os.close(output)
        main(inherited)


@dataclass(frozen=True)
class Command:
    """`planish cc`, or `c++`, with the words after it; it is given its standard files."""

    environment: dict[str, str]
    folder: str
    words: Sequence[str]
    plus: bool

    def __call__(self, descriptors: list[int]) -> None:
        from planish.cc.command import leave

        for standard, descriptor in enumerate(descriptors):
            os.dup2(descriptor, standard)
            os.close(descriptor)
        warnings.simplefilter("error")
        leave([*self.words], plus=self.plus)


class PreparedProcess:
    """A worker, with the methods of `subprocess.Popen` that pools use.

    Args:
        pid: its number.
        workers: whose child it is.
    """

    def __init__(self, pid: int, workers: PreparedWorkers) -> None:
        self.pid, self._workers = pid, workers
        self._ended = os.pidfd_open(pid)
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises `subprocess.TimeoutExpired` where it takes longer."""
        if self._code is None:
            polled = select.poll()
            polled.register(self._ended, select.POLLIN)
            if not polled.poll(None if timeout is None else 1000 * timeout):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            os.close(self._ended)
            self._code = self._workers.ask(self.pid)
        return self._code

    def kill(self) -> None:
        """End it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class PreparedWorkers:
    """A process that forks workers; it is started with the first one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self, inherited: Sequence[int], output: int, scratch: Path) -> PreparedProcess:
        """Start a worker, as `planish.sandbox.workers` starts one."""
        environment = {k: v for k, v in os.environ.items() if k != "PLANISH_STORE" and not k.startswith("PG")}
        worker = Worker(environment, str(Path.cwd()), str(scratch))
        return PreparedProcess(self.ask(worker, (*inherited, output)), self)

    def run(self, command: Command, given: bytes) -> tuple[int, bytes, bytes]:
        """Run a command; return its exit code, its output and its messages."""
        with TemporaryFile() as standard, TemporaryFile() as output, TemporaryFile() as messages:
            standard.write(given)
            standard.seek(0)
            files = standard, output, messages
            process = PreparedProcess(self.ask(command, [file.fileno() for file in files]), self)
            code = process.wait()
            for file in files:
                file.seek(0)
            return code, output.read(), messages.read()

    def ask(self, request: Worker | Command | int, descriptors: Sequence[int] = ()) -> int:
        """Have a worker or a command forked, and return its number; or, of a number, return the exit code."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._begin()
            socket.send_fds(self._socket, [pickle.dumps(request)], descriptors)
            return int(self._socket.recv(_BYTES))

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._socket.close()
            self._process.wait()

    def _begin(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )


def serve(requests: socket.socket) -> None:
    """Fork workers and commands, and tell how they ended, until the tests' process has ended."""
    for name in IMPORTED:
        with suppress(ImportError):  # what an extra brings
            import_module(name)
    while True:
        message, descriptors, *_ = socket.recv_fds(requests, _BYTES, _MOST)
        if not message:
            return
        request = pickle.loads(message)
        if isinstance(request, int):
            answer = os.waitstatus_to_exitcode(os.waitpid(request, 0)[1])
        else:
            answer = os.fork() or _become(requests, request, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
        requests.send(str(answer).encode())


def _become(requests: socket.socket, request: Worker | Command, descriptors: list[int]) -> int:
    code = 1
    try:
        requests.close()
        os.setsid()
        os.environ.clear()
        os.environ.update(request.environment)
        os.chdir(request.folder)
        request(descriptors)
        code = 0
    except BaseException:  # noqa: BLE001  (the child must not go on as if it were its parent)
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    from prepared_workers import serve as serve_prepared  # not of __main__, as the requests

    serve_prepared(socket.socket(fileno=int(sys.argv[1])))
