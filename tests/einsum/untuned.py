"""Planners that tune nothing: one takes each backend in turn, others always the same kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from planish.core import Task
from planish.einsum.backends import EinsumBackend
from planish.einsum.planning import Planner, TaskHistory, default_schedule
from planish.einsum.selection import Selection
from planish.store import Store

Record = Callable[[Store, Task, Selection, int, TaskHistory], bool]


def untuned(select: Callable[..., Selection], record: Record | None = None) -> Planner:
    """Return a planner that knows the default schedule of each kernel, selects so, and records nothing."""
    return Planner(
        workers=lambda _task, _request: nullcontext(),
        known=lambda task, _: [default_schedule(task)],
        select=select,
        record=record or (lambda _store, _task, _found, _kernels, _history: True),
    )


def choosing(name: str, cores: int | None = None) -> Planner:
    """Return a planner that selects a backend by its name, and cores."""

    def select(backends: Sequence[EinsumBackend], *_: object) -> Selection:
        found = (b for b in backends if b.name == name and cores in (None, b.cores))
        return Selection(next(found), {})

    return untuned(select)


class InTurn:
    """Selects kernels and NumPy's backends in turn.

    Attributes:
        taken: how often each was.
    """

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()
        self.planner = untuned(self._select)

    def _select(self, backends: Sequence[EinsumBackend], *_: object) -> Selection:
        kernels = [backend for backend in backends if backend.name == "kernel"]
        number = self.taken.total()
        backend = kernels[number % len(kernels)] if number % 2 else backends[number // 2 % len(backends)]
        self.taken[backend.name] += 1
        return Selection(backend, {})
