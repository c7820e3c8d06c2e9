"""Attacks on a sandbox from within a worker, which imports this module by its name."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from planish.core import Candidate, Evaluator, EvaluatorSpec, Measured, Outcome, StageClock
from planish.sandbox import Limits
from planish.sandbox.confinement import SandboxPolicy


@dataclass(frozen=True)
class Attacker:
    """Makes a level's evaluator, and tries the attacks with each candidate.

    Args:
        inner: the level's spec, whose sandbox and limits are asked for.
        secret: a file of the user.
        port: of a server that listens.
        parent: the process that started the worker.
    """

    inner: EvaluatorSpec
    secret: Path
    port: int
    parent: int

    @property
    def sandbox(self) -> SandboxPolicy | None:
        return SandboxPolicy.of(self.inner)

    @property
    def limits(self) -> Limits:
        return Limits.of(self.inner)

    def __call__(self) -> Attacking:
        return Attacking(self, self.inner())


class Attacking:
    def __init__(self, spec: Attacker, inner: Evaluator) -> None:
        self._spec, self._inner = spec, inner

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Evaluate as the level does; the values say what was possible beside it."""
        outcome = self._inner.evaluate(candidate, clock)
        if not isinstance(outcome, Measured):
            return outcome
        tried = {name: float(_works(act)) for name, act in attacks(self._spec).items()}
        return Measured({**tried, "free threads": free_threads()})


@dataclass(frozen=True)
class ProcessIds:
    """Makes evaluators whose value is the id of their process.

    Args:
        writes: folders that they may write.
    """

    writes: tuple[str, ...] = ()

    @property
    def sandbox(self) -> SandboxPolicy:
        return SandboxPolicy.for_code(map(Path, self.writes))

    def __call__(self) -> ProcessIds:
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        del candidate, clock
        return Measured({"pid": float(os.getpid())})


def attacks(spec: Attacker) -> Mapping[str, Callable[[], object]]:
    """Return the attacks by name, and `scratch`, which is allowed."""
    secret, beside = spec.secret, spec.secret.with_name("new")
    return {
        "write": lambda: secret.write_text("stolen"),
        "make": beside.touch,
        "remove": secret.unlink,
        "connect": lambda: socket.create_connection(("127.0.0.1", spec.port), 5).close(),
        "unix": lambda: socket.socket(socket.AF_UNIX).close(),
        "signal": lambda: os.kill(spec.parent, signal.SIGURG),
        "session": _leave_session,
        "scratch": lambda: (Path(tempfile.gettempdir()) / "own").write_text("mine"),
    }


def free_threads() -> float:
    """Count the threads of this process on which fewer filters of calls lie than on this one."""
    filters: list[int] = []
    for status in Path("/proc/self/task").glob("*/status"):
        with suppress(OSError):
            text = status.read_text(encoding="ascii")
            filters.append(int(text.partition("Seccomp_filters:")[2].split()[0]))
    return float(sum(each < max(filters) for each in filters))


def _leave_session() -> None:
    child = os.fork()
    if not child:
        with suppress(OSError):
            os.setsid()
            os._exit(0)
        os._exit(1)
    if os.waitpid(child, 0)[1]:
        raise PermissionError


def _works(act: Callable[[], object]) -> bool:
    try:
        act()
    except OSError:
        return False
    return True
