"""A comparison goes on while it is open, by a clock that only the executor moves."""

import math
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, Evaluation, EvaluatorSpec, Failed, Measured, Objective, Outcome, rng
from planish.measure import PairedSamples, Plan, Variant, comparison, remeasure, rounds
from planish.testing.acting import Act, Actor, act
from scripted import Scripted

COST = Objective("cost")
OPEN, CLEAR, BROKEN = 1.0, 0.5, 0.0


class Noisy(Scripted):
    """A machine with noise of 10 %, whose processes and evaluations take a second each."""

    def __init__(self) -> None:
        super().__init__()
        self._random = rng(0)
        self.now = 0.0

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> "Noisy":
        del spec, workers
        self.now += 1
        return self

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        _, step = candidate.steps
        assert isinstance(step, Act)
        self.now += 1
        return Evaluation(candidate, self._outcome(step.value))

    def _outcome(self, value: float) -> Outcome:
        if value == BROKEN:
            return Failed("run", "broken")
        return Measured({"cost": value * math.exp(self._random.normal(0, 0.1))})


def compared(machine: Noisy, values: Sequence[float], plan: Plan) -> list[PairedSamples]:
    everybody = [Variant(str(value), act(value=value), Actor) for value in (1.0, *values)]
    with pytest.MonkeyPatch.context() as patch:
        for module in (comparison, rounds, comparison):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: machine.now))
        return remeasure(everybody[0], everybody[1:], COST, machine, plan)


def test_who_is_open_is_measured_further_beside_the_baseline() -> None:
    machine = Noisy()
    base, clear, same, broken = compared(machine, [CLEAR, OPEN, BROKEN], Plan())
    assert [len(sampled.values) for sampled in (base, clear, same, broken)] == [20, 5, 20, 0]
    assert [clear.verdict, same.verdict, broken.verdict] == ["better", "undecided", "failed"]


def test_the_processes_have_a_bound() -> None:
    assert [len(each.values) for each in compared(Noisy(), [OPEN], Plan(most=8))] == [8, 8]
    assert [len(each.values) for each in compared(Noisy(), [OPEN], Plan(most=5))] == [5, 5]


@given(st.lists(st.sampled_from([OPEN, CLEAR]), min_size=1, max_size=4), st.integers(35, 400))
def test_it_ends_in_time(values: list[float], seconds: int) -> None:
    machine = Noisy()
    paired = compared(machine, values, Plan(seconds=seconds))
    assert machine.now <= seconds
    assert len(paired[0].values) >= 5
