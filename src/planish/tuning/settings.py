"""Settings of a search: everything that a user may ask for but the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from planish.core import PlanishError


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
        finalists: how many of the best are measured again at the end, at least 1, beside the first guess
            and the baseline. None: 3, and 8 of the front of several objectives.
        remeasure: measure candidates again that the store knows, in a run of its own.

    Raises:
        PlanishError: there are to be no finalists, or fewer than no workers.
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

    def __post_init__(self) -> None:
        if self.finalists is not None and self.finalists < 1:
            raise PlanishError(f"{self.finalists} finalists leave nothing to compare", "Ask for 1 at least.")
        if self.workers < 0:
            raise PlanishError(f"{self.workers} workers cannot evaluate anything", "Ask for 1 at least.")
