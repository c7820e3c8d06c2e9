"""Has einsum take each backend that there is, by turns, without tuning any."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from planish.core import Candidate, Task
from planish.einsum import call, decision_store, planning
from planish.einsum.backends import EinsumBackend
from planish.einsum.selection import Selection
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space import TemplateSpace


def _nothing(*_: object) -> None:
    """Tune nothing."""


def _kept(*_: object) -> bool:
    """Record nothing."""
    return True


def _nobody(*_: object) -> nullcontext[None]:
    return nullcontext()


def _first_guess(task: Task, _: object) -> Sequence[Candidate]:
    program = task.program
    assert isinstance(program, Program)
    return [TemplateSpace(program, task.target).start()]


@contextmanager
def every_backend() -> Generator[dict[str, int]]:
    """Use kernels and NumPy's backends by turns; yields how often each was used."""
    taken: dict[str, int] = {}
    turns = itertools.count()

    def turn(backends: Sequence[EinsumBackend], *_: object) -> Selection:
        kernels = [backend for backend in backends if backend.name == "kernel"]
        number = next(turns)
        backend = kernels[number % len(kernels)] if number % 2 else backends[number // 2 % len(backends)]
        taken[backend.name] = taken.get(backend.name, 0) + 1
        return Selection(backend, {})

    with (
        patch.object(planning, "tune_kernels", _nothing),
        patch.object(planning, "best_known", _first_guess),
        patch.object(planning, "select_fastest", turn),
        patch.object(planning, "_workers", _nobody),
        patch.object(decision_store, "record", _kept),
    ):
        forget()
        yield taken
        forget()


def forget() -> None:
    """Begin anew, as a fresh process does."""
    made: Any = call
    for known in (
        made._backends,
        made._tables,
        made._calls,
        made._negative_cache,
        made._provisional,
        made._warned,
    ):
        known.clear()
