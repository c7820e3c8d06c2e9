"""The clock books every nanosecond once, to the innermost stage."""

from pathlib import Path

import pytest

from planish.core import Candidate, Failed, Measured, Outcome, Stage, StageClock
from planish.measure.clock import Clock
from planish.sandbox.protocol import DIAL_BYTES, Dial, evaluate_one


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
def dial() -> Dial:
    return Dial(memoryview(bytearray(DIAL_BYTES)))


@pytest.fixture
def clock(dial: Dial, ticks: Ticks, tmp_path: Path) -> Clock:
    assert ticks.now == 5_000
    return Clock(dial, tmp_path / "lock")


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


def test_a_stage_entered_twice_goes_on_where_it_was(clock: Clock, dial: Dial, ticks: Ticks) -> None:
    with clock("run"):
        ticks.now += 70
    ticks.now += 1_000
    with clock("run"):
        phase, since = dial.phase()
        assert (phase, round(since * 1e9)) == ("run", ticks.now - 70)


def test_the_next_candidate_starts_at_nought(clock: Clock, dial: Dial, ticks: Ticks) -> None:
    with clock("build"):
        ticks.now += 70
    clock.restart()
    ticks.now += 3
    assert dial.phase() == ("worker", pytest.approx((ticks.now - 3) * 1e-9))
    assert _nanoseconds(clock.stop()) == {"worker": 3}


def test_memory_that_nobody_wrote_reads_as_worker(dial: Dial) -> None:
    assert dial.phase() == ("worker", 0.0)
    assert dial.seconds() == {}


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
