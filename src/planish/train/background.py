"""Learning in the background: programs of a level are recorded, and what its searches begin with is fitted.

The trials are in a store, so that recording goes on where it was stopped. After every few programs a model or
a table is fitted to all of them. Searches use it only where it is better than what they would use without it
on programs to which it was not fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from planish.core import PlanishError, Program, unknown
from planish.core.installation import install_command
from planish.core.registry import level_named
from planish.models.model_files import SavedModel, models_folder
from planish.models.provenance import HeldOut
from planish.tuning.batch import RecordedProgram
from planish.tuning.settings import Settings
from planish.tuning.transfer import KnownTask

SEED = 2609
"""Of the programs of `loops`; the shipped model has learnt from those of another one."""
HELD_OUT = ("bzip2", "lua5.4", "redis", "sqlite3", "zlib")
"""Packages of the sample of functions that benchmarks use; nothing is fitted to them."""
LEVELS = ("loops", "llvm", "hlo")
# A third of the trials is random, the others are near what is good. Without a model: what one holds for good
# would be most of what the next one learns from.
LOOPS = Settings("loops", searcher="genetic", searcher_options={"population": 32, "model": "none"})
"""Search of each program of `loops`."""


@dataclass(frozen=True)
class Fitted:
    """What was fitted.

    Args:
        what: it is: "a model".
        programs: to how many it was fitted.
        held_out: its comparison on programs to which it was not fitted; None where there was none.
        is_used: whether searches use it.
    """

    what: str
    programs: int
    held_out: HeldOut | None
    is_used: bool


@dataclass(frozen=True)
class LearningPlan:
    """Plan of learning for a level.

    Args:
        settings: of the search of each program.
        trials: of each program.
        first: programs after which something is fitted for the first time.
        every: programs after which it is fitted again.
        fit: fits to what is recorded, and writes what searches use.
    """

    settings: Settings
    trials: int
    first: int
    every: int
    fit: Callable[[Sequence[KnownTask]], Fitted]


def plan_of(level: str) -> LearningPlan:
    """Return the plan of a level.

    Raises:
        PlanishError: nothing is learnt for it so, or XGBoost is not installed, which `loops` needs.
    """
    match level:
        case "loops":
            from planish.models.trees import can_grow

            if not can_grow():
                what = "models are trained by XGBoost, which is not installed"
                raise PlanishError(what, install_command("learn"))
            return LearningPlan(LOOPS, 96, 30, 10, _fit_model)
        case "llvm":
            # Without the policy: the coreset is tried as a whole, and beyond it what no list had.
            return LearningPlan(Settings(level, searcher_options={"policy": "none"}), 128, 20, 20, _fit_lists)
        case "hlo":
            return LearningPlan(Settings(level), 32, 5, 1, _fit_gains)
        case _:
            raise unknown("nothing is learnt in the background for the level", level, LEVELS)


def programs_of(level: str, sources: Sequence[str]) -> Iterator[Program]:
    """Yield the programs that are recorded: those named, or else drawn ones.

    Args:
        level: of them.
        sources: texts or files; of `llvm` each function of a module is a program.

    Raises:
        PlanishError: none is named, and the level `hlo` has none of its own; or one cannot be read.
    """
    if not sources:
        return _usual_programs(level)
    loaded = (level_named(level).load(source, {}) for source in sources)
    if level != "llvm":
        return loaded
    return chain.from_iterable(level_named(level).functions(module).values() for module in loaded)


def _usual_programs(level: str) -> Iterator[Program]:
    match level:
        case "loops":
            from planish.train.cost_models import random_programs

            return random_programs(SEED)
        case "llvm":
            from planish.train.corpus.reader import read_corpus

            rows = (row for row in read_corpus() if row.split == "train" and row.package not in HELD_OUT)
            return (level_named(level).load(row.ir, {}) for row in rows)
        case _:
            what = f"there are no random programs of the level '{level}' to learn from"
            raise PlanishError(what, "Name modules of yours: planish learn --level hlo FILE...")


def _fit_model(tasks: Sequence[KnownTask]) -> Fitted:
    from planish.train.cost_models import fit_recorded

    model: SavedModel = fit_recorded(tasks)
    is_used = model.held_out is None or not model.held_out.is_worse
    return Fitted("a model", model.programs, model.held_out, is_used)


def _fit_lists(tasks: Sequence[KnownTask]) -> Fitted:
    from planish.train.own_tables import fit_lists

    table = fit_lists(tasks)
    table.keep()
    return Fitted("lists", table.programs, table.held_out, table.held_out.is_better)


def _fit_gains(tasks: Sequence[KnownTask]) -> Fitted:
    from planish.train.own_tables import fit_gains

    table = fit_gains(tasks)
    table.keep()
    return Fitted("gains of edits", table.programs, table.held_out, table.held_out.is_better)


def default_store() -> Path:
    """Return the store of recorded programs: beside the user's models, apart from the user's runs."""
    return models_folder().parent / "learned.db"


def improve(
    recorded: Iterable[RecordedProgram],
    tasks: Callable[[], Sequence[KnownTask]],
    plan: LearningPlan,
) -> Iterator[tuple[RecordedProgram, Fitted | None]]:
    """Fit after every few programs that are recorded.

    Args:
        recorded: programs, each when it is in the store.
        tasks: reads what the store knows of the level by now.
        plan: of the level.

    Yields:
        Each program when it is recorded, with what was fitted then; None: nothing was due.

    Raises:
        PlanishError: what is fitted cannot be written.
    """
    for one in recorded:
        is_due = one.programs >= plan.first and (one.programs - plan.first) % plan.every == 0
        yield one, plan.fit(tasks()) if is_due else None
