"""Who is measured again at the end of a run with one objective."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from planish.core import (
    Candidate,
    Failed,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    Task,
    Trial,
    best_harmless,
)
from planish.levels.loops.build import Backend
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.steps import Unroll, Vectorize
from planish.levels.loops.workloads import matmul
from planish.settings import Settings
from planish.tuning.selection import choose
from tuning.final.tried import Tried

LEVEL = LoopsLevel()
GUESS = Candidate((Vectorize("n"),))
LUCKY = [Candidate((Unroll(axis),)) for axis in "mnk"]


def task(objective: str) -> Task:
    program = matmul(8, 8, 8)
    return Task(program, LEVEL.target(program, 1), (LEVEL.objectives[objective],), LEVEL.version)


def trials(objective: Objective, costs: list[float], guess: Outcome) -> list[Trial]:
    """Trials of the lucky ones with values of these costs, and of the first guess."""
    values = [cost if objective.direction == "down" else 1 / cost for cost in costs]
    outcomes = [guess, *(Measured({objective.name: value}) for value in values)]
    pairs = zip([GUESS, *LUCKY], outcomes, strict=True)
    return [Trial(c, o, i, 0, {}, "here", 0.0) for i, (c, o) in enumerate(pairs)]


def finalists(tuned: Task, tried: Iterable[Trial], count: int | None, first: Candidate) -> list[Candidate]:
    return choose(LEVEL, tuned, Tried(tried), count, first)[0]


def chosen(name: str, guess: Outcome, count: int | None = None) -> list[Candidate]:
    tuned = task(name)
    found = finalists(tuned, trials(tuned.objectives[0], [1.0, 1.1, 1.2], guess), count, GUESS)
    return [c for c in found if not any(isinstance(step, Backend) for step in c.steps)]


@pytest.mark.parametrize(
    ("name", "value"), [("time_s", 1.9), ("gflops", 1 / 1.9), ("time_s", 90.0), ("gflops", 0.01)]
)
def test_the_first_guess_is_always_measured_again_and_not_as_the_last(name: str, value: float) -> None:
    best, *others = LUCKY
    assert chosen(name, Measured({name: value})) == [best, GUESS, *others]
    assert chosen(name, Measured({name: value}), 1) == [best, GUESS]


def test_a_first_guess_that_was_not_searched_is_measured_at_the_end() -> None:
    tuned = task("time_s")
    tried = trials(tuned.objectives[0], [1.0, 1.1, 1.2], Failed("build", "refused"))[1:]
    assert finalists(tuned, tried, 1, GUESS)[:2] == [LUCKY[0], GUESS]


def test_the_first_guess_is_compared_with_a_front_too() -> None:
    both = task("time_s")
    both = replace(both, objectives=(LEVEL.objectives["time_s"], LEVEL.objectives["gflops"]))
    values = {"time_s": 1.0, "gflops": 1.0}
    tried = [
        Trial(candidate, Measured({**values, "time_s": time}), place, 0, {}, "here", 0.0)
        for place, (candidate, time) in enumerate([(LUCKY[0], 1.0), (GUESS, 3.0)])
    ]
    assert finalists(both, tried, None, GUESS) == [LUCKY[0], GUESS]


def test_the_best_that_is_worse_than_the_baseline_in_nothing_is_found_on_the_way() -> None:
    both = task("time_s")
    both = replace(both, objectives=(LEVEL.objectives["time_s"], LEVEL.objectives["gflops"]))
    figures = [
        (LEVEL.baseline(both), 2.0, 1.0),
        (LUCKY[0], 1.0, 0.5),
        (LUCKY[1], 1.5, 1.0),
        (LUCKY[2], 1.5, 2.0),
    ]
    tried = [
        Trial(candidate, Measured({"time_s": time, "gflops": rate}), place, 0, {}, "here", 0.0)
        for place, (candidate, time, rate) in enumerate(figures)
    ]
    _, best = choose(LEVEL, both, Tried(tried), None, GUESS)
    assert best == tried[2], "the earliest of equals"
    assert best == best_harmless(tried, both.objectives, LEVEL.baseline(both))


def test_the_unchanged_program_is_no_guess() -> None:
    tuned = task("time_s")
    tried = trials(tuned.objectives[0], [1.0, 1.1, 1.2], Measured({"time_s": 3.0}))
    assert Candidate() not in finalists(tuned, tried, None, Candidate())


def test_a_first_guess_that_failed_is_left_out() -> None:
    assert chosen("time_s", Failed("verify", "wrong answer")) == LUCKY


def test_it_is_chosen_once() -> None:
    assert chosen("time_s", Measured({"time_s": 0.5})) == [GUESS, *LUCKY[:2]]


@pytest.mark.parametrize("count", [0, -1])
def test_no_finalists_are_refused(count: int) -> None:
    with pytest.raises(
        PlanishError, match=f"^{count} finalists leave nothing to compare. Ask for 1 at least"
    ):
        Settings(finalists=count)
