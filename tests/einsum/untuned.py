"""Has einsum take each way that there is, by turns, without tuning any."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from planish.core import Candidate, Task
from planish.einsum import call, decision_store, planning
from planish.einsum.backends import Way
from planish.einsum.selection import Choice
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
def every_way() -> Generator[dict[str, int]]:
    """Let calls that a kernel can compute take kernels and NumPy's ways by turns; gives how often each."""
    taken: dict[str, int] = {}
    turns = itertools.count()

    def turn(ways: Sequence[Way], *_: object) -> Choice:
        kernels = [way for way in ways if way.name == "kernel"]
        number = next(turns)
        way = kernels[number % len(kernels)] if number % 2 else ways[number // 2 % len(ways)]
        taken[way.name] = taken.get(way.name, 0) + 1
        return Choice(way, {})

    with (
        patch.object(planning, "tune_kernels", _nothing),
        patch.object(planning, "best_known", _first_guess),
        patch.object(planning, "fastest", turn),
        patch.object(planning, "_workers", _nobody),
        patch.object(decision_store, "record", _kept),
    ):
        forget()
        yield taken
        forget()


def forget() -> None:
    """Begin anew, as a fresh process does."""
    made: Any = call
    for known in (made._ways, made._tables, made._calls, made._barren, made._for_now, made._said):
        known.clear()
