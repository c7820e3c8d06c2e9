"""Steps of finalists: what each does alone and with others, and those that do nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fake_executors import SameProcessExecutor
from planish.core import Attribution, Candidate, Level, Objective, Task
from planish.store import Store, open_store
from planish.testing.synthetic import Set
from planish.tuning.ablation import is_additive, prune, suggested
from planish.tuning.api import task_of
from planish.tuning.comparison import Finalist
from planish.tuning.final_state import FinalState, SearchOutcome
from planish.tuning.recorder import Progress, Trials
from planish.tuning.settings import Settings
from tuning.tradeoff_level import Plain, Text


def pair(one: int, other: int, *, additive: bool) -> Attribution:
    return Attribution((one, other), {"time_s": 0.5}, {"time_s": additive, "error": True})


def test_triples_are_those_whose_pairs_are_not_what_their_steps_make() -> None:
    pairs = [pair(0, 1, additive=False), pair(0, 3, additive=False), pair(1, 3, additive=True)]
    assert suggested([*pairs, pair(2, 3, additive=True)]) == [(0, 1, 3)]
    assert suggested(pairs[:1]) == [], "one pair suggests nothing"
    assert suggested([Attribution((0, 1)), Attribution((0, 2), why="it fails")]) == [], "nothing is known"


@pytest.mark.parametrize(
    ("together", "parts", "additive"),
    [
        (0.25, (0.5, 0.5), True),
        (0.252, (0.5, 0.5), True),
        (0.26, (0.5, 0.5), False),
        (0.0, (0.0, 0.5), True),  # what takes no memory alone takes none
        (0.5, (0.0, 0.5), False),
        (math.inf, (math.inf, 0.5), True),
        (0.5, (math.inf, 0.5), False),
        (0.5, (math.inf, 0.0), False),
    ],
)
def test_ratios_of_steps_multiply(together: float, parts: tuple[float, ...], additive: bool) -> None:
    alone = [{"memory": each} for each in parts]
    assert is_additive(Objective("memory"), {"memory": together}, alone, 0.01) is additive


def test_differences_of_steps_add_up() -> None:
    counted = Objective("count", exact=True)
    assert is_additive(counted, {"count": -3.0}, [{"count": -1.0}, {"count": -2.0}], 0.0)
    assert not is_additive(counted, {"count": -3.0}, [{"count": -1.0}, {"count": -1.0}], 0.0)


@dataclass
class Identifying(Plain):
    """The level of `trading`, which knows that knob 3 is idle."""

    @contextmanager
    def identities(self, task: Task) -> Generator[Callable[[Candidate], str]]:
        del task
        yield lambda candidate: str(
            [step for step in candidate.steps if not str(step).startswith("Set(knob=3")]
        )


def finished_search(level: Level, task: Task, settings: Settings, store: Store) -> SearchOutcome:
    """A search of nine seconds that has stored nothing."""
    trials, progress = Trials(store, "run", level.steps), Progress(task, "run")
    return SearchOutcome(
        level, task, settings, store, progress, trials, {}, 9.0, stopped=False, start=SameProcessExecutor
    )


def test_finalists_stay_in_their_order_and_of_equals_the_first(tmp_path: Path) -> None:
    level, settings = Identifying(), Settings(objectives=("time",))
    task = task_of(level, Text(), settings)
    idle, one, other, last = Set(3, 1), Set(0, 1), Set(1, 2), Set(2, 1)
    found = [(other, idle), (one, idle), (other,), (last,)]
    assert str(idle).startswith("Set(knob=3")
    with open_store(tmp_path / "a.db") as store:
        search = finished_search(level, task, settings, store)
        finalists = tuple(Finalist(candidate=Candidate(steps)) for steps in found)
        done, late = (prune(search, FinalState(finalists), end) for end in (math.inf, 0.0))
    left = done.finalists
    assert done.notes == ()
    assert [each.candidate.steps for each in late.finalists] == found
    assert late.notes == ("ran out of time while removing redundant steps",)
    assert [each.candidate.steps for each in left] == [(other,), (one,), (last,)]


@dataclass
class Counting(Plain):
    """The level of `trading`, of which a count tells: knob 0 costs two, knob 1 saves one, others nothing."""

    @contextmanager
    def identities(self, task: Task) -> Generator[Callable[[Candidate], int]]:
        del task
        worth = {"Set(knob=0": 2, "Set(knob=1": -1}
        yield lambda candidate: 9 + sum(worth.get(str(step)[:10], 0) for step in candidate.steps)


def test_where_a_count_tells_less_will_do_too(tmp_path: Path) -> None:
    level, settings = Counting(), Settings(objectives=("time",))
    task = task_of(level, Text(), settings)
    found = Candidate((Set(3, 1), Set(0, 1), Set(1, 2), Set(2, 1)))
    with open_store(tmp_path / "a.db") as store:
        search = finished_search(level, task, settings, store)
        done = prune(search, FinalState((Finalist(candidate=found),)), math.inf)
    assert [each.candidate.steps for each in done.finalists] == [(Set(1, 2),)]
    assert done.notes == ()
