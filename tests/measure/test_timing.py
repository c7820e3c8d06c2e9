"""Clocks, timed blocks, and idle BLAS threads."""

import hashlib
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, Failed, Measured, Outcome, Stage, StageClock
from planish.measure import (
    FINAL_TIMING,
    SEARCH_TIMING,
    Clocks,
    Samples,
    Timing,
    time_call,
    wait_for_idle_threads,
)
from planish.measure.clock import Clock
from planish.measure.timing import ClockError
from planish.sandbox.protocol import STAGE_CLOCK_BYTES, StageClockShm, evaluate_one


class Ticks:
    """A clock that stands still but for what is asked of it."""

    def __init__(self) -> None:
        self.now = 5_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    ticks = Ticks()
    monkeypatch.setattr("time.monotonic_ns", ticks)
    return ticks


@pytest.fixture
def shared() -> StageClockShm:
    return StageClockShm(memoryview(bytearray(STAGE_CLOCK_BYTES)))


@pytest.fixture
def clock(shared: StageClockShm, ticks: Ticks, tmp_path: Path) -> Clock:
    assert ticks.now == 5_000
    return Clock(shared, tmp_path / "lock")


def _nanoseconds(seconds: object) -> dict[str, int]:
    assert isinstance(seconds, dict)
    return {phase: round(value * 1e9) for phase, value in seconds.items()}


def test_stages_nest_and_time_counts_for_the_innermost(clock: Clock, ticks: Ticks) -> None:
    ticks.now += 1
    with clock("build"):
        ticks.now += 20
        with clock("verify"):
            ticks.now += 300
        ticks.now += 4_000
    ticks.now += 50_000
    assert _nanoseconds(clock.stop()) == {"worker": 50_001, "build": 4_020, "verify": 300}


def test_a_stage_entered_twice_goes_on_where_it_was(
    clock: Clock, shared: StageClockShm, ticks: Ticks
) -> None:
    with clock("run"):
        ticks.now += 70
    ticks.now += 1_000
    with clock("run"):
        phase, since = shared.current()
        assert (phase, round(since * 1e9)) == ("run", ticks.now - 70)


def test_the_next_candidate_starts_at_nought(clock: Clock, shared: StageClockShm, ticks: Ticks) -> None:
    with clock("build"):
        ticks.now += 70
    clock.restart()
    ticks.now += 3
    assert shared.current() == ("worker", pytest.approx((ticks.now - 3) * 1e-9))
    assert _nanoseconds(clock.stop()) == {"worker": 3}


def test_memory_that_was_not_written_reads_as_worker(shared: StageClockShm) -> None:
    assert shared.current() == ("worker", 0.0)
    assert shared.seconds() == {}


class Mistaken:
    """Catches an error of one stage, and makes another in the next."""

    def __init__(self, stage: Stage | None) -> None:
        self._stage: Stage | None = stage

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        assert not candidate.steps
        try:
            with clock("transform"), clock("verify"):
                raise KeyError("first")
        except KeyError:
            pass
        if self._stage:
            with clock(self._stage):
                raise ValueError("second")
        return Measured({"cost": 1.0})


@pytest.mark.parametrize("stage", ["transform", "run"])
def test_an_error_belongs_to_the_stage_where_it_arose(clock: Clock, stage: Stage) -> None:
    outcome, _ = evaluate_one(Mistaken(stage), Candidate(), clock)
    assert isinstance(outcome, Failed)
    assert (outcome.stage, outcome.reason) == (stage, "ValueError")


def test_an_error_that_was_caught_is_none(clock: Clock) -> None:
    assert evaluate_one(Mistaken(None), Candidate(), clock)[0] == Measured({"cost": 1.0})


class Machine:
    """Runs calls that take what a list says, in nanoseconds; the last one lasts for ever.

    Args:
        calls: nanoseconds by call.
        interruptions: call number to nanoseconds that the system takes in it.
        others: whether other processes have that time, so that this one's processor time does not show it.
    """

    def __init__(
        self, *calls: float, interruptions: dict[int, float] | None = None, others: bool = False
    ) -> None:
        self._calls = calls
        self._interruptions = interruptions or {}
        self._others = others
        self._time = self._lost = 0.0
        self.blocks: list[int] = []

    def run(self, n: int) -> None:
        done = sum(self.blocks)
        self.blocks.append(n)
        self._time += sum(self._calls[done : done + n])
        self._time += self._calls[-1] * max(0, done + n - max(done, len(self._calls)))
        lost = sum(t for call, t in self._interruptions.items() if done <= call < done + n)
        self._time += lost
        self._lost += lost if self._others else 0.0

    def now(self) -> int:
        return round(self._time)

    def worked(self) -> int:
        return round(self._time - self._lost)

    def measure(self, timing: Timing = SEARCH_TIMING, best_s: float = float("inf")) -> Samples:
        return time_call(self.run, timing, best_s, Clocks(self.now, self.worked))


@given(st.floats(3.0, 1e9), st.sampled_from([SEARCH_TIMING, FINAL_TIMING]))
def test_a_steady_call_is_measured_exactly(nanoseconds: float, timing: Timing) -> None:
    machine = Machine(nanoseconds)
    samples = machine.measure(timing)
    assert samples.median == pytest.approx(nanoseconds * 1e-9, rel=1e-3)
    assert timing.fewest <= len(samples.seconds) <= timing.most
    assert not samples.cut


@given(st.floats(3.0, 1e9), st.sampled_from([SEARCH_TIMING, FINAL_TIMING]))
def test_blocks_are_long_enough_and_the_budget_is_kept(nanoseconds: float, timing: Timing) -> None:
    machine = Machine(nanoseconds)
    samples = machine.measure(timing)
    assert samples.calls * nanoseconds >= 0.99e9 * timing.block_s
    calls_at_least = timing.fewest + 1
    last_block = samples.calls * nanoseconds * 1e-9
    assert machine.now() * 1e-9 <= max(timing.budget_s + last_block, calls_at_least * last_block) * 1.1


def test_the_first_call_is_no_sample() -> None:
    samples = Machine(90_000, 1_000).measure()
    assert max(samples.seconds) == pytest.approx(1e-6)


def test_blocks_do_not_stay_short_after_an_interruption() -> None:
    samples = Machine(1_000, interruptions={3: 4e6}).measure()
    assert samples.calls >= 100


def test_an_interruption_is_kept_and_moves_the_median_little() -> None:
    samples = Machine(1_000, interruptions={1_000: 3e5}).measure()
    assert samples.median == pytest.approx(1e-6)
    assert max(samples.seconds) > 2e-6
    assert samples.median == statistics.median(samples.seconds)


@pytest.mark.parametrize(("nanoseconds", "blocks"), [(5e3, 5), (5e5, 3), (5e8, 1)])
def test_a_slow_candidate_is_cut(nanoseconds: float, blocks: int) -> None:
    machine = Machine(nanoseconds)
    samples = machine.measure(best_s=nanoseconds * 1e-9 / 4)
    assert samples.cut
    assert samples.median == pytest.approx(nanoseconds * 1e-9)
    assert len(machine.blocks) <= blocks


@pytest.mark.parametrize("nanoseconds", [5e3, 5e5, 5e8])
def test_a_candidate_not_much_slower_than_the_best_is_not_cut(nanoseconds: float) -> None:
    samples = Machine(nanoseconds).measure(best_s=nanoseconds * 1e-9 / 2)
    assert not samples.cut
    assert len(samples.seconds) >= 2


def test_a_slow_start_is_not_held_against_a_small_candidate() -> None:
    assert not Machine(9e5, 1_000).measure(best_s=1e-6).cut


def test_no_candidate_is_slow_by_one_block() -> None:
    """After a wait the caches are cold, which is processor time."""
    assert not Machine(24_000, 200_000, 24_000).measure(best_s=24e-6).cut


@pytest.mark.parametrize("call", [0, 1, 2, 20])
def test_a_wait_for_the_processor_makes_no_candidate_slow(call: int) -> None:
    """On a busy machine a process waits for its turn, some milliseconds at once."""
    assert not Machine(50_000, interruptions={call: 1e7}, others=True).measure(best_s=40e-6).cut


@pytest.mark.parametrize("nanoseconds", [50_000, 900_000, 3_000_000])
@pytest.mark.parametrize("call", range(6))
def test_a_wait_for_the_processor_moves_the_median_little(nanoseconds: float, call: int) -> None:
    """By the clock it uses the budget up, so that it would be one of two samples."""
    samples = Machine(nanoseconds, interruptions={call: 2e7}, others=True).measure()
    assert samples.median == pytest.approx(nanoseconds * 1e-9, rel=1e-3)


@pytest.mark.parametrize("call", range(1, 40))
def test_blocks_do_not_stay_short_after_a_wait(call: int) -> None:
    assert Machine(500, interruptions={call: 2e7}, others=True).measure().calls >= 200


def test_a_machine_where_every_block_waits_is_not_waited_for_without_end() -> None:
    every = Machine(50_000, interruptions=dict.fromkeys(range(10_000), 2e7), others=True)
    assert len(every.measure().seconds) <= 5


def test_a_clock_that_stands_still_is_an_error() -> None:
    still, blocks = Clocks(lambda: 7, lambda: 7), list[int]()
    with pytest.raises(ClockError, match="the clock does not advance"):
        time_call(blocks.append, clocks=still)
    assert sum(blocks) < 3000


def test_the_real_clock_is_the_default() -> None:
    def run(n: int) -> None:
        for _ in range(n):
            pass

    measure: Callable[[Callable[[int], object]], Samples] = time_call
    assert measure(run).median > 0


def _work(seconds: float, began: threading.Event) -> None:
    data, end = bytes(1 << 22), time.monotonic() + seconds
    began.set()
    while time.monotonic() < end:
        hashlib.sha256(data)  # releases the lock of the interpreter for some milliseconds


def _working(seconds: float) -> threading.Thread:
    began = threading.Event()
    thread = threading.Thread(target=_work, args=(seconds, began))
    thread.start()
    began.wait()
    return thread


def test_it_waits_for_a_thread_that_works() -> None:
    thread = _working(0.3)
    assert wait_for_idle_threads(60)
    assert not thread.is_alive()


def test_threads_that_sleep_are_not_waited_for() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    wait_for_idle_threads(60)  # until it waits, and whatever other tests have left
    assert not wait_for_idle_threads(60)
    over.set()
    thread.join()


def test_it_gives_up_after_a_while() -> None:
    thread = _working(1.0)
    assert wait_for_idle_threads(0.01)
    assert thread.is_alive()
    thread.join()
