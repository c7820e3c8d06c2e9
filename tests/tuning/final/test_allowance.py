"""How long the end of a run may take: by a clock that the test turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.tuning import finish as module
from planish.tuning.finish import WEIGHTS, Allowance

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
    clock = Clock()
    allowance = Allowance(searched_s, steps, clock)
    assert allowance.ends == 100 + max(module.LEAST_S, searched_s)
    for step, used in zip(steps, uses, strict=False):
        until = allowance.until(step)
        reserved = max(module.LEAST_S, module.COMPARED * searched_s) * (step == "compare")
        assert clock.now <= until <= max(allowance.ends, clock.now + reserved) + 1e-6
        clock.now += used * (until - clock.now)
    if steps and steps[-1] != "compare":
        least = max(allowance.ends, clock.now)
        assert allowance.until(steps[-1]) == pytest.approx(least), "the last may take all that is left"


def test_what_a_step_leaves_is_there_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_S", 5.0)
    clock = Clock()
    allowance = Allowance(60.0, ["minimise", "compare", "describe"], clock)
    assert allowance.until("compare") == pytest.approx(100 + 60 * 0.4 / 0.5)
    clock.now += 50
    assert allowance.until("describe") == pytest.approx(160)
    assert allowance.told == "at most 10 s to the end"
    assert (allowance.has(9.9, "describe"), allowance.has(10.1, "describe")) == (True, False)
    clock.now += 20
    assert (allowance.has(0.0, "describe"), allowance.until("describe")) == (False, clock.now)


@pytest.mark.parametrize(("searched_s", "reserved"), [(3.0, 5.0), (60.0, 12.0)])
def test_the_comparison_has_its_time_whatever_came_before_it_took(
    searched_s: float, reserved: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAST_S", 5.0)
    clock = Clock()
    allowance = Allowance(searched_s, ["minimise", "compare", "describe"], clock)
    clock.now += 2 * searched_s + 10
    assert allowance.until("minimise") == clock.now
    assert allowance.until("compare") == clock.now + reserved
