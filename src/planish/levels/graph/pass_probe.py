"""Probe of graph passes: a process that applies them to a model, and that they may crash."""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from select import select
from typing import Any

from planish.core import PlanishError
from planish.core.files import copy_regular
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.sessions import SessionSettings, weights_of
from planish.sandbox import DEVNULL, PIPE, SpawnedChild, describe_exit
from planish.sandbox.plain_data import DataError, FrameReader, loads

PATIENCE_S = 40.0
"""Seconds for one answer, and one more for each 20 MB of the model."""
_PACE = 20e6
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Optimised:
    """What the runtime makes of a model: its name, and its nodes by type."""

    name: str
    counts: Mapping[str, int]


ANSWERS: Mapping[str, Any] = {
    "name": str,
    "counts": Mapping[str, int],
    "load": bool,
    "fired": Mapping[str, bool],
    "optimised": Optimised,
    "write": bool,
}
"""Questions, and the types of their answers."""


def reply_type(what: str) -> Any:
    """Return the type of a reply: the answer, else why there is none; and the processor's seconds so far."""
    return tuple[ANSWERS[what] | None, str, float]


class ExaminerError(PlanishError):
    """A pass failed, crashed or hung."""

    exit_code = 3


class Examiner:
    """Applies passes to a model in a process of its own, which is started again where one ends it.

    Args:
        program: the model.
        settings: of the runtime's sessions.
        patience_s: seconds for one answer; by default by the model's size.
    """

    def __init__(self, program: GraphProgram, settings: SessionSettings, patience_s: float = 0.0) -> None:
        self._program, self._settings = program, settings
        self._patience = patience_s or PATIENCE_S + program.size / _PACE
        self._child: _Child | None = None
        self._lost = self._running = 0.0
        self._names: dict[tuple[str, ...], str] = {}

    @property
    def spent(self) -> float:
        """Seconds of a processor that answers took, so far; what was lost with a process, by the clock."""
        return self._lost + self._running

    @property
    def pid(self) -> int | None:
        """The process's number; None while there is none."""
        return self._child.pid if self._child else None

    def name(self, rewrites: Sequence[str]) -> str:
        """Name the model after some rewriting passes; where one fails, the list names itself."""
        wanted = tuple(rewrites)
        if wanted not in self._names:
            try:
                self._names[wanted] = self._ask("name", wanted)
            except ExaminerError:
                self._names[wanted] = " ".join(("fails:", *wanted))
        return self._names[wanted]

    def made(self, rewrites: Sequence[str]) -> str:
        """Name the model after some rewriting passes; raises ExaminerError where one fails."""
        wanted = tuple(rewrites)
        if wanted not in self._names:
            self._names[wanted] = self._ask("name", wanted)
        return self._names[wanted]

    def counts(self, rewrites: Sequence[str]) -> Mapping[str, int]:
        """Count the nodes by type after some rewriting passes; raises ExaminerError where one fails."""
        return self._ask("counts", rewrites)

    def load(self, rewrites: Sequence[str]) -> None:
        """Load the model after some rewriting passes by the runtime.

        Raises:
            ExaminerError: a rewriting pass fails, or the runtime does not take what it makes.
        """
        self._ask("load", rewrites)

    def fired(self, rewrites: Sequence[str]) -> Mapping[str, bool]:
        """Return which of the runtime's transformers there are, and whether each changes the model.

        Raises:
            ExaminerError: a rewriting pass fails, or the runtime does not take what it makes.
        """
        return self._ask("fired", rewrites)

    def optimised(
        self, rewrites: Sequence[str], disabled: Sequence[str] = (), optimization: str = ""
    ) -> Optimised:
        """Return the name and the nodes of what the runtime makes where some of its passes are left out.

        Args:
            rewrites: rewriting passes, in their order.
            disabled: the runtime's passes that are left out.
            optimization: the session's level; by default that of the settings.

        Raises:
            ExaminerError: a rewriting pass fails, or the runtime does not take what it makes.
        """
        return self._ask("optimised", rewrites, sorted(disabled), optimization)

    def write(
        self, rewrites: Sequence[str], file: Path, disabled: Sequence[str] = (), *, offline: bool
    ) -> None:
        """Write the model after some rewriting passes.

        Args:
            rewrites: rewriting passes, in their order.
            file: where to write it; its weights go beside it (`weights_of`) where it is optimised offline.
            disabled: the runtime's passes that are left out.
            offline: whether the runtime optimises it, too.

        Raises:
            ExaminerError: a rewriting pass fails, or the runtime does not take what it makes.
            OSError: a file cannot be written.
        """
        self._ask("write", rewrites, sorted(disabled), [file.name], ["offline"] if offline else [])
        assert self._child is not None
        made = self._child.scratch / file.name
        copy_regular(made, file)
        if os.path.lexists(weights_of(made)):
            copy_regular(weights_of(made), weights_of(file))

    def close(self) -> None:
        """End the process; harmless when called twice."""
        if self._child is not None:
            self._child.close()
            self._child = None
            self._lost, self._running = self.spent, 0.0

    def _ask(self, what: str, *of: Sequence[str]) -> Any:
        if self._child is None:
            self._child = _Child(self._program, self._settings)
        start = time.monotonic()
        try:
            answer, error, self._running = self._child.ask(what, of, self._patience)
        except ExaminerError:
            self.close()
            # By the clock: how much of the processor a dead process used is no longer known.
            self._lost += time.monotonic() - start
            raise
        if answer is None:
            raise ExaminerError(error)
        return answer


class _Child:
    """The process, with the folder that it works in; both end with this object."""

    def __init__(self, program: GraphProgram, settings: SessionSettings) -> None:
        child = SpawnedChild(
            "planish.levels.graph.pass_probe_server",
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
        )
        self._process, self._frames = child.process, FrameReader()
        self.scratch = child.scratch.path
        self.pid = self._process.pid
        # Also where it is not closed.
        self.close = weakref.finalize(self, child.kill)
        self._write(
            {
                "program": replace(program, stored="").text,
                "settings": asdict(settings),
                "scratch": str(child.scratch.path),
            }
        )

    def ask(self, what: str, of: Sequence[Sequence[str]], patience: float) -> tuple[Any, str, float]:
        """Wait for a reply; raises ExaminerError where none comes."""
        deadline = time.monotonic() + patience
        with suppress(BrokenPipeError):  # it ended: that is seen below
            self._write({"what": what, "of": of})
        try:
            return loads(self._message(deadline, patience), reply_type(what))
        except DataError as error:
            raise ExaminerError(f"the process sent what is not an answer: {error}") from error

    def _message(self, deadline: float, patience: float) -> bytes:
        assert self._process.stdout is not None
        messages: list[bytes] = []
        while not messages:
            if not select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise ExaminerError(f"no answer in {patience:.0f} s")
            data = os.read(self._process.stdout.fileno(), _READ_BYTES)
            if not data:
                code = self._process.wait()
                raise ExaminerError(
                    f"the process {describe_exit(code)}" if code >= 0 else describe_exit(code)
                )
            messages = list(self._frames.feed(data))
        if len(messages) > 1:
            raise DataError("more than one answer")
        return messages[0]

    def _write(self, document: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(document)}\n".encode())
        self._process.stdin.flush()
