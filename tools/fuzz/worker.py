"""Worker processes that try cases; they are replaced when a kernel ends them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fuzz.candidates import cases
from fuzz.case import Case, Verdict, judge

PATIENCE_S = 120
"""Of one case; the system ends a process that takes longer."""


class Position(NamedTuple):
    """Which case: the number of its program, and its own number among that program's."""

    program: int
    case: int


class Tried(NamedTuple):
    """A case and what came of it."""

    case: Case
    verdict: Verdict
    message: str


class Plan(NamedTuple):
    """What a run tries.

    Args:
        seed: of programs, candidates and inputs.
        jobs: worker processes; each takes every so-manieth program.
        backends: those to try.
        inputs: "plain", "special" or "both".
        programs: the kind of all programs; empty for any.
    """

    seed: int
    jobs: int
    backends: Sequence[str]
    inputs: str = "both"
    programs: str = ""

    def takes(self, case: Case) -> bool:
        """Whether a case is to be tried."""
        kind = "special" if case.special else "plain"
        return case.backend in self.backends and self.inputs in ("both", kind)


def work(plan: Plan, start: Position) -> None:
    """Try programs from a position on, for ever; a line is written before and after each case."""
    first = start.case
    number = start.program
    while True:
        for i, case in enumerate(cases(plan.seed, number, plan.programs)):
            if i >= first and plan.takes(case):
                _say("begin", number, i, vars(case))
                signal.alarm(PATIENCE_S)
                verdict, message = judge(case)
                signal.alarm(0)
                _say("end", verdict, message)
        number, first = number + plan.jobs, 0


def _say(*words: object) -> None:
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


_Found = Tried | RuntimeError


def try_cases(plan: Plan, first: int, most: int, seconds: float) -> Iterator[Tried]:
    """Try random cases.

    Args:
        plan: which.
        first: number of the first program.
        most: how many cases, or a few more.
        seconds: when to end.

    Raises:
        RuntimeError: a program or its candidates cannot be drawn.
    """
    found: queue.Queue[_Found] = queue.Queue()
    stop = threading.Event()
    crew = [
        threading.Thread(target=_serve, args=(plan, Position(first + i, 0), found, stop))
        for i in range(plan.jobs)
    ]
    end = time.monotonic() + seconds
    for thread in crew:
        thread.start()
    try:
        for _ in range(most):
            try:
                item = found.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                return
            if isinstance(item, RuntimeError):
                raise item
            yield item
    finally:
        stop.set()
        for thread in crew:
            thread.join()


def _serve(plan: Plan, start: Position, found: queue.Queue[_Found], stop: threading.Event) -> None:
    """Keep one worker at work until the end."""
    while not stop.is_set():
        words = [sys.executable, "-m", "fuzz", "--worker", json.dumps([plan, start])]
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=paths) as worker:
            assert worker.stdout is not None
            position, case = start, None
            for line in worker.stdout:
                kind, *words_ = json.loads(line)
                if kind == "begin":
                    position, case = Position(words_[0], words_[1]), Case(**words_[2])
                elif case is not None:
                    found.put(Tried(case, *words_))
                    case = None
                if stop.is_set():
                    break
            if stop.is_set():
                with contextlib.suppress(OSError):
                    worker.kill()
                return
        if case is None:
            found.put(
                RuntimeError(f"the fuzzer itself failed at program {position.program}, or just behind it")
            )
            return
        found.put(Tried(case, "crashed", ended(worker.returncode)))
        start = Position(position.program, position.case + 1)


def ended(code: int) -> str:
    """Say how a process ended."""
    with contextlib.suppress(ValueError):
        name = signal.Signals(-code).name
        return "it took too long" if name == "SIGALRM" else f"the kernel ended the process: {name}"
    return f"the process ended with code {code}"


def words_of(data: str) -> tuple[Plan, Position]:
    """Read a worker's argument back."""
    plan, position = json.loads(data)
    return Plan(*plan), Position(*position)
