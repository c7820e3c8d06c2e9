"""Settings of a search: everything that a user may ask for but the budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from planish.core import ArgumentError, Candidate
from planish.core.arguments import check_type, check_whole_number, wrong_argument

Constraint = Callable[[Candidate], bool]
"""Returns whether a candidate may be measured."""


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
        ArgumentError: one is of a wrong type, or there are to be no finalists, or fewer than no workers.

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
        for name, least in (("seed", 0), ("cores", 1), ("workers", None)):
            check_whole_number(name, getattr(self, name), least)
        if self.finalists is not None:
            check_whole_number("finalists", self.finalists)
            if self.finalists < 1:
                raise ArgumentError(
                    f"{self.finalists} finalists leave nothing to compare", "Ask for 1 at least."
                )
        if self.workers < 0:
            raise ArgumentError(f"{self.workers} workers cannot evaluate anything", "Ask for 1 at least.")
