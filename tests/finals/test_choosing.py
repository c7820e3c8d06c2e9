"""Who is measured again at the end of a run with one objective."""

from __future__ import annotations

import pytest

from planish.core import Candidate, Failed, Measured, Objective, Outcome, Task, Trial
from planish.finals.choosing import finalists
from planish.loops.level import LoopsLevel
from planish.loops.library import Backend
from planish.loops.steps import Unroll, Vectorize
from planish.loops.workloads import matmul

LEVEL = LoopsLevel()
GUESS = Candidate((Vectorize("n"),))
LUCKY = [Candidate((Unroll(axis),)) for axis in "mnk"]


def task(objective: str) -> Task:
    return Task(matmul(8, 8, 8), LEVEL.target(1), (LEVEL.objectives[objective],), LEVEL.version)


def trials(objective: Objective, costs: list[float], guess: Outcome) -> list[Trial]:
    """Trials of the lucky ones with values of these costs, and of the first guess."""
    values = [cost if objective.direction == "down" else 1 / cost for cost in costs]
    outcomes = [guess, *(Measured({objective.name: value}) for value in values)]
    pairs = zip([GUESS, *LUCKY], outcomes, strict=True)
    return [Trial(c, o, i, 0, {}, "here", 0.0) for i, (c, o) in enumerate(pairs)]


def chosen(name: str, guess: Outcome, count: int | None = None) -> list[Candidate]:
    tuned = task(name)
    found = finalists(LEVEL, tuned, trials(tuned.objectives[0], [1.0, 1.1, 1.2], guess), count, GUESS)
    return [c for c in found if Backend("portable") not in c.steps]


@pytest.mark.parametrize(("name", "value"), [("time_s", 1.9), ("gflops", 1 / 1.9)])
def test_the_first_guess_is_measured_again_beside_the_luckiest(name: str, value: float) -> None:
    assert chosen(name, Measured({name: value})) == [*LUCKY, GUESS]
    assert chosen(name, Measured({name: value}), 1) == [LUCKY[0], GUESS]
    assert chosen(name, Measured({name: value}), 0) == []


@pytest.mark.parametrize(("name", "value"), [("time_s", 2.1), ("gflops", 1 / 2.1)])
def test_a_first_guess_far_behind_is_left_out(name: str, value: float) -> None:
    assert chosen(name, Measured({name: value})) == LUCKY


def test_a_first_guess_that_failed_is_left_out() -> None:
    assert chosen("time_s", Failed("verify", "wrong answer")) == LUCKY


def test_it_is_chosen_once() -> None:
    assert chosen("time_s", Measured({"time_s": 0.5})) == [GUESS, *LUCKY[:2]]
