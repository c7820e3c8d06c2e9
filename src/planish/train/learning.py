"""Improvement of the cost model of `loops` for this machine, from random programs that are recorded on it.

The trials are in a store, so that recording goes on where it was stopped. After every few programs a model
is fitted to all of them. Searches ask it together with the shipped one, unless that makes predictions for
held-back programs no better.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from pathlib import Path

from planish.core import Executor, ExecutorFactory, PlanishError
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.measure.executors import LocalExecutor
from planish.models.model_files import SavedModel, models_folder, suffix_of, write_model
from planish.models.provenance import OWN
from planish.store import Store
from planish.train.cost_models import fit_model, read_trials
from planish.train.random_programs import random_programs
from planish.tuning.api import task_of, tune_program
from planish.tuning.engine import count_workers
from planish.tuning.settings import Budget, Settings

SEED = 2609
"""Of the programs; the shipped model has learnt from those of another one."""
TRIALS, POPULATION = 96, 32
"""Of the genetic search of a program: a third of the trials is random, the others are near what is good."""
FIRST, EVERY = 30, 10
"""Programs with which the first model is fitted, some six of them held back; and after each further ten."""
NAME = f"{OWN}loops-time_s-learned"
# Without a model: what one holds for good would be most of what the next one learns from.
_SETTINGS = Settings(
    "loops", searcher="genetic", searcher_options={"population": POPULATION, "model": "none"}
)


def default_store() -> Path:
    """Return the store of recorded programs: beside the user's models, apart from the user's runs."""
    return models_folder().parent / "learned.db"


def model_path() -> Path:
    """Return the file of the model."""
    return models_folder() / f"{NAME}{suffix_of('trees')}"


@dataclass(frozen=True)
class RecordedProgram:
    """A program that was recorded.

    Args:
        program: it.
        trials: of it.
        programs: recorded in the store by now, this one included.
    """

    program: Program
    trials: int
    programs: int


def record(
    store: Store,
    programs: Iterable[Program],
    trials: int = TRIALS,
    seconds: float | None = None,
    start: ExecutorFactory = LocalExecutor,
) -> Iterator[RecordedProgram]:
    """Measure candidates of programs that are not yet in a store.

    Args:
        store: where the trials go.
        programs: in order.
        trials: of each program.
        seconds: after which it ends, in the middle of a program too, which is then resumed; None: no end.
        start: starts the workers.

    Yields:
        Each program when all its trials are stored.
    """
    level, end = LoopsLevel(), inf if seconds is None else time.monotonic() + seconds
    done = {run.task_key for run in store.runs() if run.status == "finished" and run.trials >= trials}
    with ExitStack() as stack:
        workers: Executor | None = None
        for program in programs:
            task = task_of(level, program, _SETTINGS)
            if task.key in done:
                continue
            if (left := end - time.monotonic()) <= 0:
                return
            spec = level.evaluator(task)
            if workers is None:
                workers = stack.enter_context(start(spec, workers=count_workers(_SETTINGS)))
            else:
                workers.serve(spec)
            budget = Budget(trials=trials, seconds=None if seconds is None else left)
            found = tune_program(
                level,
                program,
                budget=budget,
                settings=_SETTINGS,
                store=store,
                executor=workers,
                compares=False,
            )
            if found.stopped or time.monotonic() >= end:
                return
            done.add(task.key)
            yield RecordedProgram(program, found.run.trials, len(done))


def improve_model(
    store: Store,
    programs: Iterable[Program] | None = None,
    *,
    trials: int = TRIALS,
    first: int = FIRST,
    every: int = EVERY,
    seconds: float | None = None,
    start: ExecutorFactory = LocalExecutor,
) -> Iterator[tuple[RecordedProgram, SavedModel | None]]:
    """Record programs that are not yet in a store, and fit a model after every few of them.

    Args:
        store: of the recorded programs.
        programs: in order; None for random ones without end.
        trials: of each program.
        first: programs with which the first model is fitted.
        every: programs after which another model is fitted.
        seconds: after which it ends; None: no end.
        start: starts the workers.

    Yields:
        Each program when it is recorded, with the model that was fitted and written then; None: none was due.

    Raises:
        PlanishError: XGBoost is not installed.
    """
    some = random_programs(SEED) if programs is None else programs
    for one in record(store, some, trials, seconds, start):
        is_due = one.programs >= first and (one.programs - first) % every == 0
        yield one, fit_recorded(store) if is_due else None


def fit_recorded(store: Store) -> SavedModel:
    """Fit a model to all recorded programs, and write it for searches.

    Raises:
        PlanishError: the store has no trials, XGBoost is not installed, or the file cannot be written.
    """
    model, path = fit_model("loops", read_trials(store, LoopsLevel(), "time_s")), model_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_model(model, path)
    except OSError as error:
        raise PlanishError(f"cannot write {path}: {error.strerror}", "Free space there.") from error
    return model
