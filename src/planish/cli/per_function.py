"""`planish tune --per-function` for a whole module: each function by a list of its own, in one run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planish.cli.request import Request
from planish.core import PlanishError

if TYPE_CHECKING:
    from planish.store import Store
    from planish.tuning.recorder import Listener
    from planish.tuning.result import Result

OF_WHOLE_S = 20.0
"""Seconds of a search on a whole module, where the user says nothing else."""
FUNCTIONS = "functions"
"""The space of lists for single functions."""


def leads_by_time(objectives: tuple[str, ...]) -> bool:
    """Return whether time is what leads."""
    return objectives[:1] in (("time",), ("time_s",))


def by_function(request: Request) -> Request:
    """Return the request to search a module's functions, for their size where nothing else is asked for.

    Raises:
        PlanishError: the program has no functions, or another space is asked for.
    """
    from planish.levels.llvm.level import LlvmLevel

    level, settings = LlvmLevel(), request.settings
    if settings.level not in ("", level.name) or not level.accepts(request.program):
        raise PlanishError(f"'{request.program}' has no functions to tune", "Leave --per-function out.")
    if settings.space not in ("", FUNCTIONS):
        raise PlanishError(f"--per-function is the space '{FUNCTIONS}'", "Leave --space out.")
    objectives = settings.objectives or ("text_bytes",)
    finalists = settings.finalists
    if leads_by_time(objectives):
        # The search has compared each with the baseline; more would take the time from the best.
        finalists = finalists or 1
    chosen = replace(settings, level=level.name, space=FUNCTIONS, objectives=objectives, finalists=finalists)
    return request._replace(settings=chosen)


def tune_for_size(request: Request, store: Store, listener: Listener) -> Result:
    """Make a module smaller by what is inlined and a list for each function.

    A C file is compiled as clang -Oz does it, up to LLVM's passes.
    """
    from planish.levels.llvm.level import LlvmLevel
    from planish.levels.llvm.source import read_for_size
    from planish.measure.executors import ForkedExecutor
    from planish.tuning.api import tune_program

    return tune_program(
        LlvmLevel(),
        read_for_size(request.program, request.options),
        budget=request.budget,
        settings=request.settings,
        store=store,
        listener=listener,
        start=ForkedExecutor,
    )
