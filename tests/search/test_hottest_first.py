"""Search that changes one part at a time, the costliest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from numpy.random import Generator

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanVaryParts,
    Failed,
    Lost,
    Measured,
    Objective,
    Outcome,
    SearchContext,
    Step,
    Trial,
)
from planish.search import fitting_searchers
from planish.search.hottest_first import HottestFirst
from planish.testing.searchers import drive, drive_disorderly

TIME = Objective("time_s", "s")
COSTS = {"a": 1.0, "b": 6.0, "c": 3.0, "d": 0.1}


@dataclass(frozen=True)
class Set(Step):
    """Assign a number to a part, by which its cost is divided."""

    part: str
    number: int


@dataclass
class Parts(CanVaryParts):
    """A space of parts that have numbers, from 1 to 9; each number is suggested or drawn."""

    suggested: Sequence[int] = (2, 1)
    least: float = 0.5
    seen: list[float] = field(default_factory=list[float])

    def start(self) -> Candidate:
        return Candidate()

    def parts(self, measured: Mapping[str, float]) -> Sequence[str]:
        return sorted((name for name in measured if measured[name] >= self.least), key=lambda n: -measured[n])

    def suggestions(
        self, candidate: Candidate, part: str, context: SearchContext = EMPTY_CONTEXT
    ) -> Sequence[Candidate]:
        del context
        return [_with(candidate, part, number) for number in self.suggested]

    def vary(self, candidate: Candidate, part: str, rng: Generator) -> Candidate:
        return _with(candidate, part, int(rng.integers(1, 10)))


def _with(candidate: Candidate, part: str, number: int) -> Candidate:
    others = tuple(step for step in candidate.steps if isinstance(step, Set) and step.part != part)
    return Candidate((*others, Set(part, number)))


def numbers(candidate: Candidate) -> dict[str, int]:
    return {step.part: step.number for step in candidate.steps if isinstance(step, Set)}


def outcome(candidate: Candidate) -> Outcome:
    own = numbers(candidate)
    parts = {part: cost / own.get(part, 1) for part, cost in COSTS.items()}
    return Measured({"time_s": sum(parts.values())}, parts={} if own else parts)


def search(space: Parts, seed: int = 0, **options: float) -> HottestFirst:
    return HottestFirst(space, [TIME], seed, **options)  # pyright: ignore[reportArgumentType]


def test_the_costliest_part_comes_first_and_what_gains_is_kept() -> None:
    trials = drive(search(Parts()), outcome, 7, 3)
    assert [numbers(t.candidate) for t in trials] == [
        {},
        {"b": 2},
        {"b": 1},
        {"b": 2, "c": 2},
        {"b": 2, "c": 1},
        {"b": 2, "c": 2, "a": 2},
        {"b": 2, "c": 2, "a": 1},
    ]


def test_what_gains_less_than_asked_is_not_kept() -> None:
    trials = drive(search(Parts(), gain=0.9), outcome, 30, 3)
    assert all(len(numbers(trial.candidate)) <= 1 for trial in trials)


def test_costly_parts_are_varied_more_often() -> None:
    trials = drive(search(Parts(suggested=())), outcome, 20, 3)
    last = [list(numbers(trial.candidate))[-1] for trial in trials[1:]]
    assert last.count("b") > last.count("c") > 0
    assert "d" not in last


def test_it_ends_where_nothing_is_new() -> None:
    trials = drive(search(Parts(least=5.0)), outcome, 100, 3)
    assert len(trials) == 10  # the start, and nine numbers of one part
    assert min(t.outcome.values["time_s"] for t in trials if isinstance(t.outcome, Measured)) < 5.0


@pytest.mark.parametrize(
    "start", [Failed("run", "timeout"), Lost("run", "killed"), Measured({"time_s": 1.0})], ids=str
)
def test_it_ends_where_it_is_not_known_what_parts_cost(start: Outcome) -> None:
    assert [t.candidate for t in drive(search(Parts()), lambda _: start, 10, 3)] == [Candidate()]


def test_failed_changes_are_passed_over() -> None:
    def failing(candidate: Candidate) -> Outcome:
        return Failed("build", "refused") if numbers(candidate) == {"b": 2} else outcome(candidate)

    trials = drive(search(Parts()), failing, 40, 4)
    best = min(trials, key=lambda trial: trial.cost(TIME) or 100.0)
    assert numbers(best.candidate)["b"] > 2


@pytest.mark.parametrize("shuffle", [1, 2, 3])
def test_neither_the_order_of_answers_nor_how_many_are_asked_for_steers_it(shuffle: int) -> None:
    whole = [trial.candidate for trial in drive(search(Parts(), 3), outcome, 40, 1)]
    asked = drive_disorderly(search(Parts(), 3), outcome, 40, shuffle)
    assert asked == whole[: len(asked)]


def test_it_fits_spaces_of_parts() -> None:
    assert "hottest-first" in fitting_searchers(Parts())


def test_the_start_is_reported_to_it_first() -> None:
    searcher = search(Parts())
    searcher.tell([Trial(Candidate(), outcome(Candidate()))])
    assert searcher.ask(3) == [Candidate()]
