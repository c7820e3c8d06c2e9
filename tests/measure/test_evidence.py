"""Two clocks: processor time decides where it is more precise, and not against the clock."""

import pytest

from planish.core import Candidate, Measured, Objective, Outcome, Ratio, StageClock, rng
from planish.measure import Evidence, Plan, Variant, by_processor_time, remeasure
from planish.testing.acting import Act, act
from scripted import Here

TIME = Objective("time_s", "s")
RATE = Objective("gflops", "GFLOPS", "up")
WIDE, NARROW = Ratio(0.9, 0.5, 1.6), Ratio(0.7, 0.65, 0.75)


@pytest.mark.parametrize(
    ("wall", "processor", "decides", "disagree"),
    [
        (WIDE, NARROW, True, False),
        (NARROW, WIDE, False, False),
        (Ratio(0.7, 0.6, 0.8), Ratio(0.7, 0.62, 0.79), False, False),  # as precise: the clock counts
        (Ratio(1.0, 0.99, 1.01), NARROW, False, True),  # a program that sleeps
        (Ratio(1.0, 0.8, 1.25), Ratio(0.7, 0.69, 0.71), False, True),
        (Ratio(0.6, 0.5, 0.8), Ratio(0.83, 0.82, 0.84), True, False),  # the clock exaggerates
        (Ratio(0.6, 0.5, 0.8), Ratio(1.0, 0.99, 1.01), True, False),
        (Ratio(1.0, 0.8, 1.1), Ratio(1.2, 1.19, 1.21), False, True),
        (WIDE, Ratio(0.7, 0.7, 0.7), False, False),  # it ticks too seldom
        (WIDE, None, False, False),
    ],
)
def test_who_decides(wall: Ratio, processor: Ratio | None, decides: bool, disagree: bool) -> None:
    evidence = Evidence(wall, processor)
    assert (evidence.by_processor, evidence.clocks_disagree) == (decides, disagree)
    assert evidence.ratio == (processor if decides else wall)


def test_clocks_that_contradict_each_other_decide_nothing() -> None:
    worse, better = Ratio(1.3, 1.1, 1.6), Ratio(0.9, 0.89, 0.91)
    for wall, processor in ((worse, better), (better, worse)):
        assert Evidence(wall, processor).ratio == Ratio(wall.value, 0.89, 1.6)
        assert Evidence(wall, processor).ratio.verdict(TIME) == "undecided"


class Busy:
    """Gives a candidate's seconds as processor time, with noise of 1 %; by the clock others came between."""

    def __init__(self, seed: int, pause: float = 0.0) -> None:
        self._random, self._pause = rng(seed), pause

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        del clock
        (step,) = candidate.steps
        assert isinstance(step, Act)
        took = step.value * self._random.uniform(0.99, 1.01)
        seconds = self._pause or took * (1 + self._random.integers(4))
        samples = {"time_s": (seconds,), by_processor_time("time_s"): (took,)}
        rates = {name.replace("time_s", "gflops"): (1 / s,) for name, (s,) in samples.items()}
        return Measured({"time_s": seconds, "gflops": 1 / seconds}, {**samples, **rates})


def compared(objective: Objective, gain: float, pause: float = 0.0) -> list[tuple[str, float, bool]]:
    """Compare 40 times; gives verdicts, gains, and whether the interval covers the truth."""
    found: list[tuple[str, float, bool]] = []
    for seed in range(40):
        busy = Busy(seed, pause)
        base, good = (
            Variant(name, act(value=v), lambda b=busy: b) for name, v in (("", 1.0), (" ", 1 / gain))
        )
        _, sampled = remeasure(base, [good], objective, Here, Plan())
        ratio = sampled.ratio
        assert ratio is not None
        truth = gain if objective.direction == "up" else 1 / gain
        found.append((sampled.verdict, ratio.value, ratio.low <= truth <= ratio.high))
    return found


@pytest.mark.parametrize("objective", [TIME, RATE])
@pytest.mark.parametrize(("gain", "least", "most"), [(1.04, 40, 40), (1.0, 0, 2)])
def test_a_small_gain_shows_on_a_busy_machine(
    objective: Objective, gain: float, least: int, most: int
) -> None:
    found = compared(objective, gain)
    assert least <= [verdict for verdict, _, _ in found].count("better") <= most
    assert sum(covers for _, _, covers in found) >= 37


class Ticking(Busy):
    """Measures by a clock of processor time that ticks every 10 ms, as some sandboxes have it."""

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        outcome = super().evaluate(candidate, clock)
        assert isinstance(outcome, Measured)
        (took,) = outcome.samples[by_processor_time("time_s")]
        return Measured(outcome.values, {**outcome.samples, by_processor_time("time_s"): (round(took, 1),)})


def test_a_clock_that_ticks_seldom_decides_nothing() -> None:
    ticking = Ticking(0)
    base, other = (Variant(name, act(value=v), lambda: ticking) for name, v in (("", 1.0), (" ", 0.94)))
    _, sampled = remeasure(base, [other], TIME, Here, Plan())
    assert sampled.evidence is not None
    assert sampled.evidence.processor == Ratio(0.9, 0.9, 0.9)
    assert sampled.ratio == sampled.evidence.wall
    assert sampled.verdict == "undecided"


def test_who_sleeps_as_long_gains_nothing() -> None:
    assert {verdict for verdict, _, _ in compared(TIME, 2.0, pause=1.0)} == {"same"}


def test_without_processor_time_the_clock_decides() -> None:
    class OneClock(Busy):
        def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
            outcome = super().evaluate(candidate, clock)
            assert isinstance(outcome, Measured)
            return Measured(outcome.values, {"time_s": outcome.samples["time_s"]})

    clock = OneClock(0)
    base, good = (Variant(str(value), act(value=value), lambda: clock) for value in (1.0, 0.96))
    _, sampled = remeasure(base, [good], TIME, Here, Plan())
    assert (sampled.processor, sampled.verdict) == ((), "undecided")
