"""The time of the stages after a search: each has its share, and what it leaves is there for the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.tuning.budget import WEIGHTS, FinalLimits, StageBudget

STEPS = st.lists(st.sampled_from([*WEIGHTS]), min_size=1, unique=True).map(
    lambda names: [name for name in WEIGHTS if name in names]
)


class Clock:
    """A clock that the test turns."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@given(st.floats(0, 1e4), STEPS, st.lists(st.floats(0, 1), min_size=len(WEIGHTS)))
def test_steps_that_keep_to_theirs_are_over_in_time(
    searched_s: float, steps: list[str], uses: list[float]
) -> None:
    clock, limits = Clock(), FinalLimits()
    budget = StageBudget(searched_s, steps, limits, clock)
    assert budget.ends == 100 + max(limits.least_s, searched_s)
    for step, used in zip(steps, uses, strict=False):
        until = budget.until(step)
        reserved = max(limits.least_s, limits.compared * searched_s) * (step == "compare")
        assert clock.now <= until <= max(budget.ends, clock.now + reserved) + 1e-6
        clock.now += used * (until - clock.now)
    if steps and steps[-1] != "compare":
        least = max(budget.ends, clock.now)
        assert budget.until(steps[-1]) == pytest.approx(least), "the last may take all that is left"


def test_what_a_step_leaves_is_there_for_the_others() -> None:
    clock = Clock()
    budget = StageBudget(60.0, ["minimize", "compare", "describe"], FinalLimits(least_s=5.0), clock)
    assert budget.until("compare") == pytest.approx(100 + 60 * 0.4 / 0.5)
    clock.now += 50
    assert budget.until("describe") == pytest.approx(160)
    assert budget.seconds_left == 10
    assert (budget.has(9.9, "describe"), budget.has(10.1, "describe")) == (True, False)
    clock.now += 20
    assert (budget.has(0.0, "describe"), budget.until("describe")) == (False, clock.now)


@pytest.mark.parametrize(("searched_s", "reserved"), [(3.0, 5.0), (60.0, 12.0)])
def test_the_comparison_has_its_time_whatever_came_before_it_took(searched_s: float, reserved: float) -> None:
    clock = Clock()
    budget = StageBudget(searched_s, ["minimize", "compare", "describe"], FinalLimits(least_s=5.0), clock)
    clock.now += 2 * searched_s + 10
    assert budget.until("minimize") == clock.now
    assert budget.until("compare") == clock.now + reserved
