"""How much arithmetic a program does."""

from planish.core import Objective
from planish.report.trial_statistics import flops_of
from report.planks import TIME, failed, measured

RATE = Objective("rate", "1/s", "up")


def test_work_is_told_by_trials_with_rate_and_time() -> None:
    trials = [failed(0), measured(1, 2.0), measured(2, 0.5, gflops=8.0)]
    assert flops_of(trials, TIME) == 4
    assert flops_of(trials[:2], TIME) is None
    assert flops_of(trials, RATE) is None
