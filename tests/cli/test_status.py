"""The state of a run in words, by a clock that the test turns."""

import pytest

from planish.cli.watching import RunStatus
from planish.core import Candidate, Failed, HypervolumeTracker, Measured, Objective, Outcome, Trial
from planish.core.budget import Budget
from planish.core.wording import amount, multiple
from planish.testing.stored import make_candidate, make_task
from planish.tuning.recorder import Progress

GFLOPS = Objective("gflops", "GFLOPS", "up")


class Hand:
    """A clock's hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def hand() -> Hand:
    return Hand()


def progress(*outcomes: Outcome, cached: int = 0, objective: Objective | None = None) -> Progress:
    made = Progress(make_task("flat", *([objective] if objective else [])), "1a2b3c4d")
    for i, outcome in enumerate(outcomes):
        made.add(Trial(Candidate(), outcome, i, cached=i < cached))
    return made


def measured(time: float) -> Measured:
    return Measured({"time_s": time, "gflops": 1 / time})


def test_before_anything_is_measured(hand: Hand) -> None:
    status = RunStatus(progress(), Budget(trials=10), now=hand)
    assert status.best == "nothing measured yet"
    assert status.left == "time left unknown"
    assert (status.pace, status.failed) == ("0 trials, 0/s", "")


def test_how_long_it_takes_is_reported_as_it_begins(hand: Hand) -> None:
    made = progress()

    def plan(**limits: float) -> str:
        return RunStatus(made, Budget(**limits), now=hand).plan  # type: ignore[arg-type]

    compare = "to compare the best with the baseline"
    assert plan(seconds=10.0) == f"at most 10 s of search, then at most 10 s {compare}"
    assert plan(seconds=0.5) == f"at most 0.5 s of search, then at most 5 s {compare}"
    assert plan(trials=6) == f"the search, then at most as long as that, or 5 s, {compare}"
    made.loading_s = 3.21
    assert plan(seconds=600.0).startswith("read in 3.21 s, at most 10 min 0 s of search, then")
    made.compares, made.loading_s = False, 0.1
    assert (plan(seconds=10.0), plan(trials=6)) == ("at most 10 s of search", "")


def test_the_best_is_reported_with_its_rate_and_its_gain(hand: Hand) -> None:
    found = progress(measured(4e-6), measured(2e-6), measured(3e-6))
    assert RunStatus(found, Budget(), now=hand).best == f"best {amount(2e-6, 's')}, 500,000 GFLOPS"
    assert RunStatus(found, Budget(), 5e-6, hand).best.endswith(f", {multiple(2.5)} the baseline")


def test_with_several_objectives_the_front_is_reported(hand: Hand) -> None:
    both = (make_task("flat").objectives[0], GFLOPS)
    made = Progress(make_task("flat", *both), "1a2b3c4d", growth=HypervolumeTracker(both, Candidate()))
    status = RunStatus(made, Budget(), now=hand)
    assert (status.best, status.volume) == ("nothing measured yet", "")
    for i, (time, rate) in enumerate([(4e-6, 1.0), (2e-6, 0.5)]):
        candidate = Candidate() if i == 0 else make_candidate(1)
        made.add(Trial(candidate, Measured({"time_s": time, "gflops": rate}), i))
    assert status.best == "front of 2: time 2.000 µs to 4.000 µs, gflops 0.5000 GFLOPS to 1 GFLOPS"
    assert status.volume == "hypervolume 1.000 (baseline 1)"


def test_where_more_is_better_the_gain_is_the_other_way_round(hand: Hand) -> None:
    found = progress(measured(0.5), objective=GFLOPS)
    assert (
        RunStatus(found, Budget(), 1.0, hand).best
        == f"best {amount(2, 'GFLOPS')}, {multiple(2.0)} the baseline"
    )


def test_only_what_is_measured_now_counts_for_the_pace(hand: Hand) -> None:
    status = RunStatus(progress(*[measured(1.0)] * 1400, cached=1000), Budget(), now=hand)
    hand.time += 2
    assert status.pace == "1,400 trials (1,000 known), 200/s"
    status.end()
    hand.time += 60
    status.end()
    hand.time += 60
    assert status.pace == "1,400 trials (1,000 known), 200/s"


def test_failures_are_reported_by_reason(hand: Hand) -> None:
    outcomes = [Failed("verify", "wrong answer")] * 2 + [Failed("build", "refused")] * 3
    assert RunStatus(progress(*outcomes), Budget(), now=hand).failed == (
        "5 failed (build: refused 3, verify: wrong answer 2)"
    )


def test_the_time_left_is_by_the_limit_that_comes_first(hand: Hand) -> None:
    found = progress(*[measured(1.0)] * 5)
    boards = [
        RunStatus(found, budget, now=hand) for budget in (Budget(10), Budget(100, 8), Budget(None, 600))
    ]
    hand.time += 2
    assert [status.left for status in boards] == ["2.0 s left", "6.0 s left", "9 min 58 s left"]
    assert [status.done for status in boards] == [0.5, 0.25, pytest.approx(2 / 600)]
    hand.time += 600
    assert [(status.done, status.left) for status in boards[1:]] == [(1.0, "0.0 s left")] * 2


def test_a_search_without_a_sure_end_says_when_it_ends(hand: Hand) -> None:
    assert RunStatus(progress(), Budget(), now=hand).left == "until Ctrl-C"
    status = RunStatus(progress(), Budget(value=2e-3), now=hand)
    assert (status.left, status.done) == (f"until {amount(2e-3, 's')}", None)
