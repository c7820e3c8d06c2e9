"""Paired measurement in one process."""

from collections.abc import Mapping, Sequence

import pytest

from fake_executors import FakeExecutor
from planish.core import Candidate, Evaluation, Failed, Lost, Measured, Objective, Outcome
from planish.measure.comparison import OutOfTimeError, PairedMeasurement, times_worse
from planish.testing.synthetic import Set

KILLED = Lost("run", "killed", "killed by SIGKILL")
BROKEN = Failed("run", "broken")
COST = Objective("cost")


def cost(value: float) -> Outcome:
    return Measured({"cost": value})


@pytest.mark.parametrize(
    ("one", "times"),
    [
        ([cost(2), cost(3), cost(4)], 3.0),
        ([KILLED, cost(3), cost(4)], 3.5),
        ([KILLED, KILLED, KILLED], float("inf")),
        ([BROKEN, KILLED, BROKEN], float("inf")),
    ],
)
def test_a_round_whose_worker_was_lost_is_left_out(one: list[Outcome], times: float) -> None:
    assert times_worse(COST, one, [cost(1)] * 3) == times
    assert times_worse(COST, [cost(1)] * 3, [cost(1), KILLED, cost(1)]) == 1.0


class Scripted(FakeExecutor):
    """Returns outcomes of candidates in their order; a cost of 1 once there are none left."""

    def __init__(self, outcomes: Mapping[Candidate, Sequence[Outcome]]) -> None:
        super().__init__()
        self._left = {candidate: [*several] for candidate, several in outcomes.items()}

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        left = self._left.get(candidate)
        return Evaluation(candidate, left.pop(0) if left else cost(1))


ONE, OTHER = Candidate((Set(1, 1),)), Candidate()


def test_a_candidate_that_failed_is_not_repeated_and_one_that_was_lost_is() -> None:
    lost = PairedMeasurement(Scripted({ONE: [KILLED]}))
    assert lost.measure([ONE, OTHER], rounds=2) == [[KILLED, cost(1)], [cost(1), cost(1)]]
    failed = PairedMeasurement(Scripted({ONE: [BROKEN]}))
    assert failed.measure([ONE, OTHER], rounds=3) == [[BROKEN] * 3, [cost(1)] * 3]


def test_no_round_after_the_end_and_none_at_all_is_an_error() -> None:
    bench = PairedMeasurement(Scripted({}))
    bench.end = 0.0
    with pytest.raises(OutOfTimeError):
        bench.measure([ONE, OTHER])
