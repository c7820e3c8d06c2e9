"""Simulated comparisons of known ratios: their intervals cover the truth, and equals are seldom 'faster'."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from planish.core import Candidate, Evaluation, EvaluatorSpec, Measured, Objective, rng
from planish.measure import PairedSamples, Plan, Variant, remeasure
from planish.testing.acting import Act, Actor, act
from scripted import Scripted

TIME = Objective("time_s", "s")


@dataclass(frozen=True)
class Noise:
    """What keeps a time from being the same twice, as shares of it.

    Args:
        process: of a process, for each who is measured in it (where its memory lies).
        step: between rounds; half of it stays from one to the next.
        often: how often somebody else has the core.
        long: by how much a time is then longer, in the mean.
    """

    process: float
    step: float
    often: float
    long: float


IDLE = Noise(0.005, 0.005, 0.02, 0.3)
BUSY = Noise(0.005, 0.02, 0.1, 0.3)
STORM = Noise(0.01, 0.05, 0.25, 0.5)


class Machine(Scripted):
    """Measures what candidates tell, with noise; each of its executors is another process."""

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
        assert isinstance(step, Act)
        true, noise, random = step.value, self._noise, self._random
        offset = self._offsets.setdefault(true, random.normal(0, noise.process))
        drift = self._drifts.get(true, 0.0) / 2 + random.normal(0, noise.step)
        self._drifts[true] = drift
        late = random.exponential(noise.long) if random.random() < noise.often else 0.0
        seconds = true * math.exp(offset + drift) + late
        return Evaluation(candidate, Measured({"time_s": seconds}))


def compared(noise: Noise, gains: Sequence[float], seed: int) -> tuple[list[PairedSamples], int]:
    """Compare what is so many times faster than the baseline; gives the samples, and the processes needed."""
    machine = Machine(noise, seed)
    # The same value as the baseline's would share its offset and drift.
    times = [1.0, *(1 / gain - (gain == 1) * 1e-9 for gain in gains)]
    base, *others = (Variant(str(time), act(value=time), Actor) for time in times)
    return remeasure(base, others, TIME, machine, Plan(seed=seed, most=40))[1:], machine.processes


@pytest.mark.parametrize("noise", [IDLE, BUSY, STORM])
def test_intervals_cover_the_truth_and_equals_are_seldom_called_faster(noise: Noise) -> None:
    gains = (1.0, 1.02, 1.05, 1.2)
    covered, faster = 0, 0
    for seed in range(100):
        for gain, sampled in zip(gains, compared(noise, gains, seed)[0], strict=True):
            assert sampled.ratio is not None
            covered += sampled.ratio.low <= 1 / gain <= sampled.ratio.high
            faster += gain == 1.0 and sampled.verdict == "better"
    assert covered >= 390  # of 400
    assert faster <= 2  # of 100


@pytest.mark.parametrize(
    ("noise", "gain", "least"), [(IDLE, 1.02, 90), (BUSY, 1.05, 80), (BUSY, 1.2, 98), (STORM, 1.5, 98)]
)
def test_what_is_faster_is_found_to_be(noise: Noise, gain: float, least: int) -> None:
    found = [compared(noise, [gain], seed)[0][0].verdict for seed in range(100)]
    assert found.count("better") >= least


def test_it_goes_on_only_while_too_little_is_known() -> None:
    clear = [compared(IDLE, [1.5], seed)[1] for seed in range(20)]
    same = [compared(BUSY, [1.0], seed)[1] for seed in range(20)]
    assert max(clear) == 5
    assert set(same) <= {5, 10, 20, 40}
    assert max(same) == 40
