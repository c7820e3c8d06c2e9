"""Timing in turns with a baseline: what slows both down alike does not show."""

import math
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measure.finder import Finder
from planish.core import Candidate, Measured, evaluate, rng
from planish.executors import LocalExecutor
from planish.measure import Clocks, PairedTimer, Runs, Samples, SharedBaselineTime, Timing

TIMING = Timing(budget_s=0.1, block_s=1e-3, fewest=5, most=25, slow_factor=math.inf)


class Machine:
    """A machine that grows slower: a call takes so many seconds, times its slowness."""

    def __init__(self, growth: float) -> None:
        self.seconds, self._growth = 0.0, growth

    def runs(self, seconds: float) -> Runs:
        def run(calls: int) -> None:
            self.seconds += calls * seconds * (1 + self._growth * self.seconds)

        return run

    def now(self) -> int:
        return round(self.seconds * 1e9)

    def measure(self, own: float, baseline: float, baseline_time: SharedBaselineTime) -> Samples:
        return self.measure_runs(self.runs(own), self.runs(baseline), baseline_time)

    def measure_runs(
        self, own: Runs, baseline: Runs, baseline_time: SharedBaselineTime | None = None
    ) -> Samples:
        return PairedTimer(
            baseline_time or SharedBaselineTime(), TIMING, clocks=Clocks(self.now, self.now)
        ).time(own, baseline)


@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_a_steady_machine_is_measured_exactly(own: float, baseline: float) -> None:
    samples = Machine(0.0).measure(own, baseline, SharedBaselineTime())
    assert samples.median == pytest.approx(own, rel=1e-2)
    assert TIMING.fewest <= len(samples.seconds) <= TIMING.most


def test_a_machine_that_grows_slower_slows_nobody() -> None:
    machine, baseline_time = Machine(0.5), SharedBaselineTime()
    first = machine.measure(0.01, 0.02, baseline_time).median
    machine.seconds += 10
    assert machine.measure(0.01, 0.02, baseline_time).median == pytest.approx(first, rel=0.02)
    assert machine.measure(0.03, 0.02, baseline_time).median == pytest.approx(3 * first, rel=0.02)


def test_it_lives_as_long_as_the_workers_that_share_it() -> None:
    with LocalExecutor(Finder(), workers=2) as executor:
        found = [answer.outcome for answer in evaluate(executor, [Candidate()] * 8)]
    assert found == [Measured({"cost": 1.0})] * 8


@pytest.mark.parametrize(("noise", "samples"), [(0.005, 5), (0.3, 15), (0.9, 15)])
def test_what_is_noisy_is_measured_longer(noise: float, samples: int) -> None:
    """Of calls of 0.1 s, five pairs are the least, and 15 those that fit in 30 budgets."""
    machine, draw = Machine(0.0), rng(0)

    def run(calls: int) -> None:
        machine.seconds += calls * 0.1 * (1 + draw.uniform(-noise, noise))

    assert len(machine.measure_runs(run, machine.runs(0.1)).seconds) == pytest.approx(samples, abs=2)


def test_two_looks_at_what_is_slow_are_enough() -> None:
    machine, timing = Machine(0.0), replace(TIMING, slow_factor=3.0)
    beside = PairedTimer(SharedBaselineTime(), timing, clocks=Clocks(machine.now, machine.now))
    slow = beside.time(machine.runs(0.31), machine.runs(0.1))
    assert (slow.cut, slow.seconds) == (True, pytest.approx((0.31, 0.31)))
    assert not beside.time(machine.runs(0.29), machine.runs(0.1)).cut


class Busy(Machine):
    """A machine on which others have the core now and then; only the clock goes on then."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self._draw, self._waited = rng(1), 0.0

    def runs(self, seconds: float) -> Runs:
        def run(calls: int) -> None:
            self.seconds += calls * seconds * self._draw.uniform(0.99, 1.01)
            self._waited += calls * seconds * self._draw.integers(4)

        return run

    def wall(self) -> int:
        return round((self.seconds + self._waited) * 1e9)


@pytest.mark.parametrize(("one_core", "most"), [(True, 0.02), (False, math.inf)])
def test_processor_time_counts_where_others_have_the_core(one_core: bool, most: float) -> None:
    off: list[float] = []
    for _ in range(20):
        machine, baseline_time = Busy(), SharedBaselineTime()
        baseline_time.set(0.02)
        beside = PairedTimer(
            baseline_time, TIMING, one_core=one_core, clocks=Clocks(machine.wall, machine.now)
        )
        samples = beside.time(machine.runs(0.01), machine.runs(0.02))
        off.append(abs(samples.median / 0.01 - 1))
        assert bool(samples.processor) == one_core
        assert len(samples.seconds) == (5 if one_core else 25)
    assert max(off) < most


def test_a_cold_start_does_not_count() -> None:
    machine = Machine(0.0)
    warm, cold = machine.runs(1e-5), [0.5]

    def run(calls: int) -> None:
        machine.seconds += cold.pop() if cold else 0.0
        machine.seconds += 1e-5
        warm(calls)

    assert machine.measure_runs(machine.runs(1e-5), run).median == pytest.approx(1e-5, rel=1e-2)


def test_the_first_to_measure_the_baseline_does_so_for_all() -> None:
    baseline_time = SharedBaselineTime()
    assert baseline_time.seconds(2.0) == 2.0
    copy = pickle.loads(pickle.dumps(baseline_time))
    assert copy.seconds(3.0) == 2.0
    baseline_time.set(4.0)
    assert copy.seconds(3.0) == 4.0
