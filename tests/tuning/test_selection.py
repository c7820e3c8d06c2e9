"""Selection of the finalists that are measured again, of one objective and of several."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, Failed, Measured, Objective, Outcome, PlanishError, Target, Task, Trial
from planish.core.front import Costs, best_non_regressing, bounds, front_of
from planish.levels.graph.passes import Offline
from planish.levels.loops.backends import UseBackend
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.steps import Unroll, Vectorize
from planish.levels.loops.workloads import matmul
from planish.testing.synthetic import Set
from planish.tuning.finish import choose, finalist_label, greedy_hypervolume_order
from planish.tuning.settings import Settings
from tuning.tradeoff_level import ERROR, TIME, Plain, Text
from tuning.trials import Tried

LEVEL = LoopsLevel()
GUESS = Candidate((Vectorize("n"),))
LUCKY = [Candidate((Unroll(axis),)) for axis in "mnk"]


def task(objective: str) -> Task:
    program = matmul(8, 8, 8)
    return Task(program, LEVEL.target(program, 1), (LEVEL.objectives[objective],), LEVEL.version)


def trials(objective: Objective, costs: list[float], guess: Outcome) -> list[Trial]:
    """Trials of the lucky ones with values of these costs, and of the default candidate."""
    values = [cost if objective.direction == "down" else 1 / cost for cost in costs]
    outcomes = [guess, *(Measured({objective.name: value}) for value in values)]
    pairs = zip([GUESS, *LUCKY], outcomes, strict=True)
    return [Trial(c, o, i, 0, {}, "here", 0.0) for i, (c, o) in enumerate(pairs)]


def finalists(tuned: Task, tried: Iterable[Trial], count: int | None, first: Candidate) -> list[Candidate]:
    return choose(LEVEL, tuned, Tried(tried), count, first)[0]


def chosen(name: str, guess: Outcome, count: int | None = None) -> list[Candidate]:
    tuned = task(name)
    found = finalists(tuned, trials(tuned.objectives[0], [1.0, 1.1, 1.2], guess), count, GUESS)
    return [c for c in found if not any(isinstance(step, UseBackend) for step in c.steps)]


@pytest.mark.parametrize(
    ("name", "value"), [("time_s", 1.9), ("gflops", 1 / 1.9), ("time_s", 90.0), ("gflops", 0.01)]
)
def test_the_default_candidate_is_always_measured_again_and_not_as_the_last(name: str, value: float) -> None:
    best, *others = LUCKY
    assert chosen(name, Measured({name: value})) == [best, GUESS, *others]
    assert chosen(name, Measured({name: value}), 1) == [best, GUESS]


def test_a_default_candidate_that_was_not_searched_is_measured_at_the_end() -> None:
    tuned = task("time_s")
    tried = trials(tuned.objectives[0], [1.0, 1.1, 1.2], Failed("build", "refused"))[1:]
    assert finalists(tuned, tried, 1, GUESS)[:2] == [LUCKY[0], GUESS]


def test_the_default_candidate_is_compared_with_a_front_too() -> None:
    both = task("time_s")
    both = replace(both, objectives=(LEVEL.objectives["time_s"], LEVEL.objectives["gflops"]))
    values = {"time_s": 1.0, "gflops": 1.0}
    tried = [
        Trial(candidate, Measured({**values, "time_s": time}), index, 0, {}, "here", 0.0)
        for index, (candidate, time) in enumerate([(LUCKY[0], 1.0), (GUESS, 3.0)])
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
        Trial(candidate, Measured({"time_s": time, "gflops": rate}), index, 0, {}, "here", 0.0)
        for index, (candidate, time, rate) in enumerate(figures)
    ]
    _, best = choose(LEVEL, both, Tried(tried), None, GUESS)
    assert best == tried[2], "the earliest of equals"
    assert best == best_non_regressing(tried, both.objectives, LEVEL.baseline(both))


def test_the_unchanged_program_is_no_guess() -> None:
    tuned = task("time_s")
    tried = trials(tuned.objectives[0], [1.0, 1.1, 1.2], Measured({"time_s": 3.0}))
    assert Candidate() not in finalists(tuned, tried, None, Candidate())


def test_a_default_candidate_that_failed_is_left_out() -> None:
    assert chosen("time_s", Failed("verify", "wrong answer")) == LUCKY


def test_finalists_that_are_no_trials_are_called_what_they_are() -> None:
    best, built = LUCKY[0], UseBackend("portable")
    assert finalist_label(GUESS, best, GUESS, known=True) == "default"
    assert finalist_label(best, best, GUESS, known=True) == ""
    assert finalist_label(LUCKY[1], best, GUESS, known=True) == ""
    assert finalist_label(best.then(built), best, GUESS, known=False) == "best trial with portable"
    assert finalist_label(best, best.then(built), GUESS, known=False) == "best trial without portable"
    assert finalist_label(best.then(Offline()), best, GUESS, known=False) == "best trial with Offline"


def test_it_is_chosen_once() -> None:
    assert chosen("time_s", Measured({"time_s": 0.5})) == [GUESS, *LUCKY[:2]]


@pytest.mark.parametrize("count", [0, -1])
def test_no_finalists_are_refused(count: int) -> None:
    with pytest.raises(PlanishError, match=f"^finalists= takes a whole number of at least 1, not {count}$"):
        Settings(finalists=count)


SHARE = Objective("error", exact=True, share=True)
BOTH = (TIME, SHARE)
FRONT = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, 40), st.integers(0, 40)),
    min_size=1,
    max_size=16,
    unique=True,
)

# What a few seconds of search left of three networks: seconds and error. The fastest are destroyed.
NINE_OF_TEN = (
    (0.011, 0.902), (0.018, 0.886), (0.031, 0.771), (0.058, 0.412), (0.077, 0.131), (0.083, 0.094),
    (0.091, 0.069), (0.102, 0.066), (0.119, 0.064),
)  # fmt: skip
A_NINTH = (
    (0.004, 0.9), (0.011, 0.871), (0.025, 0.303), (0.029, 0.171), (0.036, 0.124), (0.041, 0.109),
    (0.055, 0.1),
)  # fmt: skip
HALF = ((0.002, 0.9), (0.006, 0.884), (0.013, 0.8), (0.021, 0.69), (0.033, 0.548), (0.04, 0.52))


@pytest.mark.parametrize(
    ("front", "baseline", "of_use"),
    [(NINE_OF_TEN, (0.1, 0.069), 5), (A_NINTH, (0.05, 0.11), 4), (HALF, (0.035, 0.55), 3)],
)
def test_little_time_goes_to_the_best_and_none_to_destroyed_networks(
    front: tuple[Costs, ...], baseline: Costs, of_use: int
) -> None:
    useful = front[-of_use:]
    order = list(greedy_hypervolume_order(front, bounds(baseline, BOTH), baseline))
    assert sorted(order) == list(range(len(front) - of_use, len(front)))
    fastest, least = min(useful), min(useful, key=lambda costs: costs[1])
    time, error = front[order[0]]
    assert time <= baseline[0]
    assert error <= baseline[1], "the first is what may be called better"
    ends = [front[index] for index in order[1:3]]
    assert ends == [fastest, least] or (front[order[0]] in (fastest, least) and {*ends} & {fastest, least})


@given(FRONT, st.tuples(st.integers(1, 40), st.integers(0, 40), st.integers(0, 40)))
def test_however_few_fit_they_add_the_most_hypervolume(
    costs: list[tuple[int, int, int]], baseline: tuple[int, int, int]
) -> None:
    front = [costs[index] for index in front_of(costs)]
    worst = bounds(baseline, (Objective("a"), Objective("b"), Objective("c")))
    useful = [p for p, vector in enumerate(front) if all(c <= w for c, w in zip(vector, worst, strict=True))]
    order = list(greedy_hypervolume_order(front, worst, baseline))
    assert sorted(order) == useful
    for axis in range(3):
        least = min((front[index][axis] for index in useful), default=math.inf)
        assert not useful or least in [front[index][axis] for index in order[:4]]


def test_what_is_worse_in_nothing_comes_first() -> None:
    front = [(1, 19), (3, 12), (4, 11), (9, 9), (19, 1)]
    for baseline, expected in (((10, 10), [(9, 9), (1, 19), (19, 1)]), ((2, 2), [(1, 19), (19, 1), (4, 11)])):
        order = list(greedy_hypervolume_order(front, (20, 20), baseline))
        assert [front[index] for index in order[:3]] == expected


def test_without_a_baseline_all_are_of_use_and_lie_apart() -> None:
    front = [(x, 100 - x) for x in (0, 1, 2, 49, 50, 51, 98, 99, 100)]
    order = list(greedy_hypervolume_order(front, None, None))
    assert sorted(order) == list(range(len(front)))
    assert [front[index][0] for index in order[:3]] == [0, 100, 50]
    assert list(greedy_hypervolume_order([], None, None)) == []


def test_twice_as_bad_is_the_bound_and_of_a_share_half_as_good_too() -> None:
    plain = (TIME, ERROR)
    assert bounds((1.0, 0.1), plain) == (2.0, 0.2)
    assert bounds((1.0, 0.1), BOTH) == (2.0, 0.2)
    assert bounds((1.0, 0.55), BOTH) == (2.0, pytest.approx(0.775)), "45 % right at the baseline"
    assert bounds((1.0, 0.0), BOTH) == (2.0, 0.5)


def first_told(values: dict[int, Costs], count: int) -> list[int]:
    """Return the knobs of the finalists of a search that measured these; 0 is the baseline."""
    trials = [
        Trial(Candidate((Set(0, knob),) if knob else ()), Measured({"time_s": time, "error": error}))
        for knob, (time, error) in values.items()
    ]
    task = Task(Text(), Target("abacus"), (TIME, ERROR), "1")
    found, _ = choose(Plain(), task, Tried(trials), count, Candidate())
    return [step.value for c in found for step in (c.steps or (Set(0, 0),)) if isinstance(step, Set)]


def test_finalists_come_in_that_order() -> None:
    values = {0: (1.0, 0.1), 1: (0.1, 0.9), 2: (0.9, 0.15), 3: (0.5, 0.18), 4: (0.99, 0.05)}
    assert [first_told(values, count) for count in (1, 2, 3, 8)] == [[4], [4, 3], [4, 3, 2], [4, 3, 2]]


def test_where_all_is_destroyed_the_baseline_is_left() -> None:
    assert first_told({0: (1.0, 0.1), 1: (0.1, 0.9), 2: (0.5, 0.3)}, 8) == [0]


def test_who_is_slower_within_its_noise_is_measured_again_as_one_that_is_no_slower() -> None:
    objectives = (TIME, ERROR)
    task = Task(Text(), Target("abacus"), objectives, "1")
    # The unchanged one, the fastest, that of least error, one as slow as the unchanged one, another fast one.
    spread = (0.97, 1.0, 1.03, 0.96, 1.05)
    figures = {0: (1.0, 0.1), 1: (0.6, 0.19), 2: (1.3, 0.02), 3: (1.02, 0.05), 4: (0.75, 0.11)}

    def found(*, noisy: bool) -> list[int]:
        trials = [
            Trial(
                Candidate((Set(0, knob),) if knob else ()),
                Measured(
                    {"time_s": time, "error": wrong},
                    {"time_s": tuple(time * each for each in (spread if noisy else (1.0,) * 5))},
                ),
            )
            for knob, (time, wrong) in figures.items()
        ]
        chosen_, _ = choose(Plain(), task, Tried(trials), 3, Candidate())
        return [step.value for c in chosen_ for step in c.steps if isinstance(step, Set)]

    assert found(noisy=True) == [3, 1, 2]
    assert found(noisy=False) == [1, 2, 4]
