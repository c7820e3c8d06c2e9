"""Settings and budget of a search: all that a user may ask for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from planish.core.arguments import (
    check_finite,
    check_keywords,
    check_positive,
    check_type,
    check_whole_number,
    wrong_argument,
)

if TYPE_CHECKING:
    from planish.tuning.constraint import Constraint

_SYNONYMS = {
    "trials": "iterations max_evals max_fevals max_trials n_calls n_iter n_trials",
    "seconds": "duration max_time time_budget time_limit timeout",
    "target": "target_value threshold",
    "searcher": "algo algorithm optimizer sampler strategy tuner",
    "objective": "direction metric metrics objectives",
    "objectives": "direction metric metrics objective",
    "cores": "n_threads num_threads threads",
    "workers": "jobs n_jobs n_workers num_workers parallelism",
    "seed": "random_seed random_state rng",
    "store": "cache database db storage study",
    "callbacks": "callback",
    "where": "constraint constraints restrictions",
    "show_progress": "progress show_progress_bar verbose",
    "searcher_options": "options searcher_kwargs set",
    "remeasure": "force rerun",
}


def synonyms_of(names: Iterable[str]) -> dict[str, str]:
    """Return the names that other libraries have for arguments, each with the argument's name here."""
    return {word: name for name in names for word in _SYNONYMS.get(name, "").split()}


@check_keywords(synonyms_of(("trials", "seconds", "target")))
@dataclass(frozen=True)
class Budget:
    """Limits of a search, which ends when the first one is reached; None means no limit.

    Args:
        trials: distinct candidates, those that the store knows already included.
        seconds: wall-clock seconds of the search; the end of the run takes as many again at most, or 5.
        target: a value of the leading objective that is good enough.

    Raises:
        ArgumentError: an argument is unknown, or a limit is not a positive number.

    Examples:
        >>> from planish import Budget
        >>> Budget(trials=200, seconds=60)
        Budget(trials=200, seconds=60, target=None)
        >>> Budget(trials=0)
        Traceback (most recent call last):
        ...
        planish.core.errors.ArgumentError: trials= takes a whole number of at least 1, not 0
    """

    trials: int | None = None
    seconds: float | None = None
    target: float | None = None

    def __post_init__(self) -> None:
        if self.trials is not None:
            check_whole_number("trials", self.trials, 1)
        if self.seconds is not None:
            check_positive("seconds", self.seconds)
        if self.target is not None:
            check_finite("target", self.target)

    @property
    def limited(self) -> bool:
        """Return whether the budget bounds the search."""
        return self.trials is not None or self.seconds is not None

    def trials_left(self, done: int) -> int | None:
        """Return the number of trials left; None for no limit."""
        return None if self.trials is None else max(0, self.trials - done)

    def seconds_left(self, started: float, clock: Callable[[], float] = time.monotonic) -> float:
        """Return the seconds left, for a search that began at this time of the clock."""
        return math.inf if self.seconds is None else self.seconds - (clock() - started)


@check_keywords(
    synonyms_of(
        ("objectives", "searcher", "searcher_options", "seed", "cores", "workers", "remeasure", "where")
    )
)
@dataclass(frozen=True)
class Settings:
    """Settings of a search. Empty names stand for the level's defaults.

    Args:
        level: the level's name; empty to find it from the program.
        objectives: names of what is to be improved; the first leads.
        searcher: as listed by `planish searchers`.
        space: the name of one of the level's spaces.
        searcher_options: option name to value.
        seed: all the search's randomness comes from it; not negative.
        cores: how many cores the program may use.
        workers: processes that build and verify at the same time, one for each core at most; timed runs never
            overlap. 0 takes one, and one more for each core that the program leaves free.
        finalists: how many of the best are measured again at the end, at least 1, and the default candidate
            and the baseline. None: 3, and 8 of the front of several objectives.
        remeasure: measure candidates again that the store knows, in a run of its own.
        where: the constraint on candidates: a function of a `planish.core.Candidate` that returns whether it
            may be measured. A run is resumed by the same constraint (see `planish.tuning.constraint`).

    Raises:
        ArgumentError: an argument is unknown, or has a wrong type or value.

    Examples:
        >>> from planish import Settings
        >>> Settings(searcher="genetic", seed=7).searcher
        'genetic'
        >>> Settings(seed="7")
        Traceback (most recent call last):
        ...
        planish.core.errors.ArgumentError: seed= takes a whole number, not '7' (str). Write seed=7.
    """

    level: str = ""
    objectives: tuple[str, ...] = ()
    searcher: str = ""
    space: str = ""
    searcher_options: Mapping[str, str | int | float | bool] = field(
        default_factory=dict[str, str | int | float | bool]
    )
    seed: int = 0
    cores: int = 1
    workers: int = 0
    finalists: int | None = None
    remeasure: bool = False
    where: Constraint | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("level", "searcher", "space"):
            check_type(name, getattr(self, name), str, "a name")
        names = cast("Any", self.objectives)
        if not isinstance(names, tuple | list) or not all(isinstance(each, str) for each in names):
            hint = f"Write objectives=({names!r},)." if isinstance(names, str) else ""
            raise wrong_argument("objectives", names, "a tuple of names", hint)
        object.__setattr__(self, "objectives", tuple(names))
        check_type("searcher_options", self.searcher_options, Mapping, "a dict of option names to values")
        check_type("remeasure", self.remeasure, bool, "True or False")
        if isinstance(self.where, type) or not (self.where is None or callable(self.where)):
            raise wrong_argument("where", self.where, "a function of a candidate")
        for name, least in (("seed", 0), ("cores", 1), ("workers", 0)):
            check_whole_number(name, getattr(self, name), least)
        if self.finalists is not None:
            check_whole_number("finalists", self.finalists, 1)
