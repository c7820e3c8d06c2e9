"""Confidence intervals, sequential looks, and what evidence a verdict needs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fake_executors import FakeExecutor, SameProcessExecutor
from planish.core import (
    Candidate,
    Evaluation,
    EvaluatorSpec,
    Failed,
    Measured,
    Objective,
    Outcome,
    Ratio,
    StageClock,
    rng,
)
from planish.measure import (
    Evidence,
    PairedSamples,
    Plan,
    Variant,
    by_processor_time,
    comparison,
    comparison_rounds,
    intervals,
)
from planish.measure.comparison import remeasure
from planish.measure.intervals import noise, ratio
from planish.testing.synthetic import Action, ScriptedEvaluator, action

TIME = Objective("time_s", "s")
GFLOPS = Objective("gflops", "GFLOPS", "up")
QUANTITIES = arrays(float, (5, 3), elements=st.floats(0.5, 2.0))


@given(QUANTITIES, QUANTITIES)
def test_the_ratio_lies_in_its_interval_and_in_the_data(over: np.ndarray, under: np.ndarray) -> None:
    found = ratio(over.tolist(), under.tolist())
    assert found.low <= found.value * (1 + 1e-9)
    assert found.value <= found.high * (1 + 1e-9)
    assert (over / under).min() <= found.value * (1 + 1e-9)
    assert found.value <= (over / under).max() * (1 + 1e-9)


@given(QUANTITIES, QUANTITIES)
def test_the_unit_does_not_matter(over: np.ndarray, under: np.ndarray) -> None:
    here = ratio(over.tolist(), under.tolist())
    there = ratio((over * 1024).tolist(), (under * 1024).tolist())
    assert here == there


@given(QUANTITIES, QUANTITIES)
def test_the_other_way_round_it_is_the_inverse(over: np.ndarray, under: np.ndarray) -> None:
    here, there = ratio(over.tolist(), under.tolist()), ratio(under.tolist(), over.tolist())
    assert [1 / here.value, 1 / here.high, 1 / here.low] == pytest.approx(
        [there.value, there.low, there.high]
    )


@given(QUANTITIES)
def test_no_variant_is_faster_than_itself(values: np.ndarray) -> None:
    assert ratio(values.tolist(), values.tolist()) == Ratio(1.0, 1.0, 1.0)


@pytest.mark.parametrize("count", range(8, 13))
def test_of_many_processes_it_is_what_wilcoxons_test_does_not_reject(count: int) -> None:
    """The test, by all 2 ** count ways to give ranks a sign, rejects (1 %) just outside, not just inside."""
    logs = np.random.default_rng(count).normal(0.1, 0.2, count)
    found = ratio([[v] for v in np.exp(logs)], [[1.0]] * count)
    signs = np.array(list(product([0, 1], repeat=count)))
    sums = signs @ np.arange(1, count + 1)

    def rejects(center: float) -> bool:
        moved = logs - center
        rank = (np.abs(moved).argsort().argsort() + 1)[moved > 0].sum()
        return 2 * min((sums <= rank).mean(), (sums >= rank).mean()) <= 0.01

    ends = np.log([found.low - 1e-9, found.low + 1e-9, found.high - 1e-9, found.high + 1e-9])
    assert [rejects(end) for end in ends] == [True, False, False, True]


@pytest.mark.parametrize(
    ("tail", "freedom", "t"), [(0.01, 1, 31.821), (0.005, 2, 9.925), (0.005, 4, 4.604), (0.001, 9, 4.297)]
)
def test_few_processes_are_judged_by_students_distribution(tail: float, freedom: int, t: float) -> None:
    assert intervals._student(tail, freedom) == pytest.approx(t, abs=1e-3)  # pyright: ignore[reportPrivateUsage]


def test_the_more_variants_the_wider_is_the_interval_of_each() -> None:
    for count in (3, 5, 10, 20, 40):
        over = np.exp(np.random.default_rng(count).normal(0, 0.05, (count, 1))).tolist()
        alone, *others = (ratio(over, [[1.0]] * count, variants) for variants in (1, 3, 9))
        assert alone.width < others[0].width <= others[1].width


def test_a_few_processes_that_agree_by_luck_prove_no_small_gain() -> None:
    """Five memory layouts out of five may favor one side: that happens in 3 % of comparisons of equals."""
    agree = [[0.99], [0.9901], [0.9899], [0.9902], [0.9898]]
    assert ratio(agree, [[1.0]] * 5).verdict(TIME) == "undecided"
    assert ratio(agree * 2, [[1.0]] * 10).verdict(TIME) == "better"


@pytest.mark.parametrize(("processes", "often"), [(1, 0.1), (2, 0.1), (3, 0.2), (5, 0.3)])
def test_a_few_slow_rounds_move_neither_the_estimate_nor_the_interval(processes: int, often: float) -> None:
    """Now and then a round takes several times as long, by a factor that has no mean (Pareto)."""
    generator = np.random.default_rng(processes)

    def measured(value: float) -> list[list[float]]:
        shape = processes, 3
        noise = np.exp(generator.normal(0, 0.005, (processes, 1)) + generator.normal(0, 0.02, shape))
        slow = np.where(generator.random(shape) < often, 1 + 2 * generator.pareto(1.0, shape), 1.0)
        return (value * noise * slow).tolist()

    found = [ratio(measured(0.8), measured(1.0)) for _ in range(500)]
    assert sum(each.low <= 0.8 <= each.high for each in found) >= 495
    assert all(each.low <= each.value <= each.high for each in found)
    assert sum(abs(math.log(each.value / 0.8)) > math.log(1.5) for each in found) <= 25


def test_drift_that_both_share_cancels() -> None:
    drift = np.linspace(1, 10, 15).reshape(5, 3)
    found = ratio((drift * 0.9).tolist(), drift.tolist())
    assert [found.value, found.low, found.high] == pytest.approx([0.9] * 3)


def test_what_one_process_alone_shows_is_no_difference() -> None:
    """Its three rounds agree, but they are one observation."""
    over = [[0.5] * 3, *[[1.0 + 0.01 * p] * 3 for p in range(-2, 2)]]
    assert ratio(over, [[1.0] * 3] * 5).verdict(TIME) == "undecided"


@pytest.mark.parametrize(("effect", "least", "most"), [(1.0, 0, 5), (0.95, 85, 100)])
def test_noise_is_seldom_taken_for_a_gain(effect: float, least: int, most: int) -> None:
    generator = np.random.default_rng(0)

    def measured(factor: float) -> list[list[float]]:
        noise = generator.normal(0, 0.01, (5, 1)) + generator.normal(0, 0.01, (5, 3))
        return (factor * np.exp(noise)).tolist()

    verdicts = [ratio(measured(effect), measured(1.0)).verdict(TIME) for _ in range(100)]
    assert least <= verdicts.count("better") <= most
    assert verdicts.count("worse") <= 10


@pytest.mark.parametrize(
    ("low", "high", "down", "up"),
    [
        (0.8, 0.9, "better", "worse"),
        (1.1, 1.2, "worse", "better"),
        (0.98, 1.02, "same", "same"),
        (0.975, 1.0, "same", "same"),
        (1.0, 1.0, "same", "same"),
        (0.9, 1.1, "undecided", "undecided"),
        (0.96, 1.0, "undecided", "undecided"),
        (0.045, 50.0, "undecided", "undecided"),
        (0.0, math.inf, "undecided", "undecided"),
        (math.inf, math.inf, "worse", "better"),
    ],
)
def test_the_verdict_follows_the_direction(low: float, high: float, down: str, up: str) -> None:
    found = Ratio(low, low, high)
    assert (found.verdict(TIME), found.verdict(GFLOPS)) == (down, up)


@pytest.mark.parametrize(
    ("low", "value", "high", "settled"),
    [
        (1.0, 1.0, 1.0, True),  # no noise
        (0.995, 1.0, 1.005, True),  # too small to notice
        (0.95, 1.0, 1.05, False),
        (0.8, 0.95, 1.01, False),
        (0.6, 0.8, 0.95, False),  # wider than the gain
        (0.75, 0.8, 0.85, True),
        (1.1, 1.2, 1.3, True),
        (1.01, 1.2, 1.5, False),
        (0.0, 0.0, 0.0, True),
        (1.0, 2.0, math.inf, True),
    ],
)
def test_who_is_measured_further(low: float, value: float, high: float, settled: bool) -> None:
    assert Ratio(value, low, high).conclusive == settled


@pytest.mark.parametrize(("over", "under"), list(product([0.0, 2.0], repeat=2)))
def test_zeros_are_values(over: float, under: float) -> None:
    expected = 1.0 if over == under else math.inf if under == 0 else 0.0
    assert ratio([[over] * 3], [[under] * 3]) == Ratio(expected, expected, expected)


@given(st.lists(st.floats(0.9, 1.1), min_size=3, max_size=9), st.integers(0, 9))
def test_noise_is_how_far_neighbors_differ(values: list[float], seed: int) -> None:
    found = noise(values, seed)
    over = [b / a for a, b in pairwise(values)]
    assert 0 <= found <= max(abs(each - 1) for each in over)
    assert noise([values[0]] * 4, seed) == 0


def test_slow_drift_is_little_noise() -> None:
    assert noise([1 + i / 100 for i in range(10)], 0) == pytest.approx(0.01, rel=0.1)


COST = Objective("cost")
OPEN, CLEAR, BROKEN = 1.0, 0.5, 0.0


class Noisy(FakeExecutor):
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
        assert isinstance(step, Action)
        self.now += 1
        return Evaluation(candidate, self._outcome(step.value))

    def _outcome(self, value: float) -> Outcome:
        if value == BROKEN:
            return Failed("run", "broken")
        return Measured({"cost": value * math.exp(self._random.normal(0, 0.1))})


def compared(machine: Noisy, values: Sequence[float], plan: Plan) -> list[PairedSamples]:
    variants = [Variant(str(value), action(value=value), ScriptedEvaluator) for value in (1.0, *values)]
    with pytest.MonkeyPatch.context() as patch:
        for module in (comparison, comparison_rounds, comparison):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: machine.now))
        return remeasure(variants[0], variants[1:], COST, machine, plan)


def test_who_is_open_is_measured_further_beside_the_baseline() -> None:
    machine = Noisy()
    base, clear, same, broken = compared(machine, [CLEAR, OPEN, BROKEN], Plan())
    assert [len(sampled.values) for sampled in (base, clear, same, broken)] == [20, 5, 20, 0]
    assert [clear.verdict, same.verdict, broken.verdict] == ["better", "undecided", "failed"]


def test_where_the_time_is_short_the_most_promising_is_measured_further() -> None:
    """Five processes of three sides take 20 of 36 s: as many again do not fit, but those of two do."""
    base, first, second = compared(Noisy(), [OPEN, OPEN * 1.001], Plan(rounds=1, seconds=36))
    assert [len(sampled.values) for sampled in (base, first, second)] == [10, 10, 5]


def test_the_processes_have_a_bound() -> None:
    assert [len(each.values) for each in compared(Noisy(), [OPEN], Plan(most=8))] == [8, 8]
    assert [len(each.values) for each in compared(Noisy(), [OPEN], Plan(most=5))] == [5, 5]


@given(st.lists(st.sampled_from([OPEN, CLEAR]), min_size=1, max_size=4), st.integers(35, 400))
def test_it_ends_in_time(values: list[float], seconds: int) -> None:
    machine = Noisy()
    paired = compared(machine, values, Plan(seconds=seconds))
    assert machine.now <= seconds
    assert len(paired[0].values) >= 5


@dataclass(frozen=True)
class Noise:
    """What keeps a time from being the same twice, as shares of it.

    Args:
        process: of a process, for each variant that is measured in it (where its memory lies).
        step: between rounds; half of it stays from one to the next.
        often: how often another process has the core.
        long: by how much a time is then longer, in the mean.
    """

    process: float
    step: float
    often: float
    long: float


IDLE = Noise(0.005, 0.005, 0.02, 0.3)
BUSY = Noise(0.005, 0.02, 0.1, 0.3)
STORM = Noise(0.01, 0.05, 0.25, 0.5)


class Machine(FakeExecutor):
    """Measures the values of candidates, with noise; each of its executors is another process."""

    def __init__(self, noise: Noise, seed: int) -> None:
        super().__init__()
        self._noise, self._random, self.processes = noise, rng(seed), 0

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> "Machine":
        del spec, workers
        self.processes += 1
        self._offsets = dict[float, float]()
        self._drifts = dict[float, float]()
        return self

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        _, step = candidate.steps
        assert isinstance(step, Action)
        true, noise, random = step.value, self._noise, self._random
        offset = self._offsets.setdefault(true, random.normal(0, noise.process))
        drift = self._drifts.get(true, 0.0) / 2 + random.normal(0, noise.step)
        self._drifts[true] = drift
        late = random.exponential(noise.long) if random.random() < noise.often else 0.0
        seconds = true * math.exp(offset + drift) + late
        return Evaluation(candidate, Measured({"time_s": seconds}))


def simulated(noise: Noise, gains: Sequence[float], seed: int) -> tuple[list[PairedSamples], int]:
    """Compare what is so many times faster; return the samples, and the processes needed."""
    machine = Machine(noise, seed)
    # The same value as the baseline's would share its offset and drift.
    times = [1.0, *(1 / gain - (gain == 1) * 1e-9 for gain in gains)]
    base, *others = (Variant(str(time), action(value=time), ScriptedEvaluator) for time in times)
    return remeasure(base, others, TIME, machine, Plan(seed=seed, most=40))[1:], machine.processes


@pytest.mark.slow
@pytest.mark.parametrize("noise", [IDLE, BUSY, STORM])
def test_intervals_cover_the_truth_and_equals_are_seldom_called_faster(noise: Noise) -> None:
    gains = (1.0, 1.02, 1.05, 1.2)
    covered, faster = 0, 0
    for seed in range(100):
        for gain, sampled in zip(gains, simulated(noise, gains, seed)[0], strict=True):
            assert sampled.ratio is not None
            covered += sampled.ratio.low <= 1 / gain <= sampled.ratio.high
            faster += gain == 1.0 and sampled.verdict == "better"
    assert covered >= 390  # of 400
    assert faster <= 2  # of 100


@pytest.mark.parametrize(
    ("noise", "gain", "least"), [(IDLE, 1.02, 90), (BUSY, 1.05, 80), (BUSY, 1.2, 98), (STORM, 1.5, 98)]
)
def test_what_is_faster_is_found_to_be(noise: Noise, gain: float, least: int) -> None:
    found = [simulated(noise, [gain], seed)[0][0].verdict for seed in range(100)]
    assert found.count("better") >= least


def test_it_goes_on_only_while_too_little_is_known() -> None:
    clear = [simulated(IDLE, [1.5], seed)[1] for seed in range(20)]
    same = [simulated(BUSY, [1.0], seed)[1] for seed in range(20)]
    assert max(clear) == 5
    assert set(same) <= {5, 10, 20, 40}
    assert max(same) == 40


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
        assert isinstance(step, Action)
        took = step.value * self._random.uniform(0.99, 1.01)
        seconds = self._pause or took * (1 + self._random.integers(4))
        samples = {"time_s": (seconds,), by_processor_time("time_s"): (took,)}
        rates = {name.replace("time_s", "gflops"): (1 / s,) for name, (s,) in samples.items()}
        return Measured({"time_s": seconds, "gflops": 1 / seconds}, {**samples, **rates})


def verdicts(objective: Objective, gain: float, pause: float = 0.0) -> list[tuple[str, float, bool]]:
    """Compare 40 times; return verdicts, gains, and whether the interval covers the truth."""
    found: list[tuple[str, float, bool]] = []
    for seed in range(40):
        busy = Busy(seed, pause)
        base, good = (
            Variant(name, action(value=v), lambda b=busy: b) for name, v in (("", 1.0), (" ", 1 / gain))
        )
        _, sampled = remeasure(base, [good], objective, SameProcessExecutor, Plan())
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
    found = verdicts(objective, gain)
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
    base, other = (Variant(name, action(value=v), lambda: ticking) for name, v in (("", 1.0), (" ", 0.94)))
    _, sampled = remeasure(base, [other], TIME, SameProcessExecutor, Plan())
    assert sampled.evidence is not None
    assert sampled.evidence.processor == Ratio(0.9, 0.9, 0.9)
    assert sampled.ratio == sampled.evidence.wall
    assert sampled.verdict == "undecided"


def test_who_sleeps_as_long_gains_nothing() -> None:
    assert {verdict for verdict, _, _ in verdicts(TIME, 2.0, pause=1.0)} == {"same"}


def test_without_processor_time_the_clock_decides() -> None:
    class OneClock(Busy):
        def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
            outcome = super().evaluate(candidate, clock)
            assert isinstance(outcome, Measured)
            return Measured(outcome.values, {"time_s": outcome.samples["time_s"]})

    clock = OneClock(0)
    base, good = (Variant(str(value), action(value=value), lambda: clock) for value in (1.0, 0.96))
    _, sampled = remeasure(base, [good], TIME, SameProcessExecutor, Plan())
    assert (sampled.processor, sampled.verdict) == ((), "undecided")
