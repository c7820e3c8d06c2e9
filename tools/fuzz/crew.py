"""Worker processes that try cases, are replaced when a kernel ends them, and what they found."""

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
from collections.abc import Iterator

from fuzz.case import Case
from fuzz.worker import Place, Plan, Tried

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
        threading.Thread(target=_serve, args=(plan, Place(first + i, 0), found, stop))
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


def _serve(plan: Plan, start: Place, found: queue.Queue[_Found], stop: threading.Event) -> None:
    """Keep one worker at work until the end."""
    while not stop.is_set():
        words = [sys.executable, "-m", "fuzz", "--worker", json.dumps([plan, start])]
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=paths) as worker:
            assert worker.stdout is not None
            place, case = start, None
            for line in worker.stdout:
                kind, *words_ = json.loads(line)
                if kind == "begin":
                    place, case = Place(words_[0], words_[1]), Case(**words_[2])
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
            found.put(RuntimeError(f"the fuzzer itself failed at program {place.program}, or just behind it"))
            return
        found.put(Tried(case, "crashed", ended(worker.returncode)))
        start = Place(place.program, place.case + 1)


def ended(code: int) -> str:
    """Say how a process ended."""
    with contextlib.suppress(ValueError):
        name = signal.Signals(-code).name
        return "it took too long" if name == "SIGALRM" else f"the kernel ended the process: {name}"
    return f"the process ended with code {code}"


def words_of(data: str) -> tuple[Plan, Place]:
    """Read a worker's argument back."""
    plan, place = json.loads(data)
    return Plan(*plan), Place(*place)
