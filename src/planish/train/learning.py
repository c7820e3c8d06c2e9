"""Improvement of the cost model of `loops` for this machine, from random programs that are recorded on it.

The trials are in a store, so that recording goes on where it was stopped. After every few programs a model
is fitted to all of them. Searches ask it together with the shipped one, unless that makes predictions for
held-back programs no better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from planish.core import PlanishError
from planish.models.model_files import SavedModel, models_folder, suffix_of, write_model
from planish.models.provenance import OWN
from planish.train.cost_models import fit_model, read_trials
from planish.tuning.batch import RecordedProgram
from planish.tuning.settings import Settings
from planish.tuning.transfer import KnownTask

SEED = 2609
"""Of the programs; the shipped model has learnt from those of another one."""
TRIALS, POPULATION = 96, 32
"""Of the genetic search of a program: a third of the trials is random, the others are near what is good."""
FIRST, EVERY = 30, 10
"""Programs with which the first model is fitted, some six of them held back; and after each further ten."""
NAME = f"{OWN}loops-time_s-learned"
# Without a model: what one holds for good would be most of what the next one learns from.
SETTINGS = Settings("loops", searcher="genetic", searcher_options={"population": POPULATION, "model": "none"})


def default_store() -> Path:
    """Return the store of recorded programs: beside the user's models, apart from the user's runs."""
    return models_folder().parent / "learned.db"


def model_path() -> Path:
    """Return the file of the model."""
    return models_folder() / f"{NAME}{suffix_of('trees')}"


def improve_model(
    recorded: Iterable[RecordedProgram],
    tasks: Callable[[], Sequence[KnownTask]],
    first: int = FIRST,
    every: int = EVERY,
) -> Iterator[tuple[RecordedProgram, SavedModel | None]]:
    """Fit a model after every few programs that are recorded.

    Args:
        recorded: programs, each when it is in the store.
        tasks: reads what the store knows of the level by now.
        first: programs with which the first model is fitted.
        every: programs after which another model is fitted.

    Yields:
        Each program when it is recorded, with the model that was fitted and written then; None: none was due.

    Raises:
        PlanishError: XGBoost is not installed.
    """
    for one in recorded:
        is_due = one.programs >= first and (one.programs - first) % every == 0
        yield one, fit_recorded(tasks()) if is_due else None


def fit_recorded(tasks: Sequence[KnownTask]) -> SavedModel:
    """Fit a model to all recorded programs, and write it for searches.

    Raises:
        PlanishError: there are no trials, XGBoost is not installed, or the file cannot be written.
    """
    model, path = fit_model("loops", read_trials(tasks, "loops", "time_s")), model_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_model(model, path)
    except OSError as error:
        raise PlanishError(f"cannot write {path}: {error.strerror}", "Free space there.") from error
    return model
