"""How much each step of a selection changes a class's cost, estimated from trials with it and without it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planish.core import Candidate, Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PENALTY = 2.0
"""Trials without any change that are added for each step of a model, so that few trials say little."""
DOUBT = 0.5
"""Models without any change that are added for each step of a class, so that one model says less than two."""
FAR = math.log(8)
"""A ratio counts as no more than this, in its logarithm: one outlier is not to outweigh the rest."""
OFTEN = 0.5
"""The share of failures from which a step counts as one that fails."""


@dataclass(frozen=True)
class RidgeRow:
    """A trial, as far as learning is concerned.

    Args:
        program: the model's content hash.
        classes: its classes, the strongest first.
        candidate: what was tried.
        ratio: its cost over the baseline's, above 0; less is better. None where it failed.
    """

    program: str
    classes: tuple[str, ...]
    candidate: Candidate
    ratio: float | None


@dataclass(frozen=True)
class StepEffect:
    """What one step does to the models of a class.

    Args:
        step: the step.
        change: of the logarithm of the cost; negative for a gain. It is shrunk towards 0 by the evidence.
        models: how many have trials with the step and without it.
        trials: how many had it.
        fails: whether most trials with it fail, and fewer without it.
    """

    step: Step
    change: float
    models: int
    trials: int
    fails: bool = False

    @property
    def ratio(self) -> float:
        """By what the cost is multiplied."""
        return math.exp(self.change)


def effects(records: Iterable[RidgeRow]) -> Mapping[Step, StepEffect]:
    """Estimate each step's effect on the models of some records, as if steps did not depend on each other.

    Within a model it is a ridge regression of the ratios' logarithms on which steps a candidate has; the
    models' estimates are then averaged, each weighted by its evidence, and shrunk towards no effect.

    Args:
        records: of one class.

    Returns:
        Step to effect, the greatest gain first.
    """
    by_program: defaultdict[str, list[RidgeRow]] = defaultdict(list)
    for record in records:
        by_program[record.program].append(record)
    sums: defaultdict[Step, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
    for group in by_program.values():
        for step, (change, weight) in _of_program(group).items():
            held = sums[step]
            held[0], held[1], held[2] = held[0] + weight * change, held[1] + weight, held[2] + 1
    everything = [record for group in by_program.values() for record in group]
    counts = Counter(step for record in everything for step in set(record.candidate.steps))
    failing = _failing(everything, counts)
    found = [
        StepEffect(step, total / (weight + DOUBT), int(models), counts[step], step in failing)
        for step, (total, weight, models) in sums.items()
    ]
    # Steps of which every trial failed have no ratio, but must be known as failing all the same.
    found += [StepEffect(step, 0.0, 0, counts[step], fails=True) for step in failing if step not in sums]
    return {effect.step: effect for effect in sorted(found, key=lambda e: (e.change, str(e.step)))}


def logarithm(ratio: float) -> float:
    """Give a ratio's logarithm, held within what may count."""
    return max(-FAR, min(FAR, math.log(ratio)))


def _of_program(records: Sequence[RidgeRow]) -> Mapping[Step, tuple[float, float]]:
    """Estimate, on one model, each step's change and how much the estimate weighs, from 0 to 1."""
    import numpy as np

    known = [(r.candidate, logarithm(r.ratio)) for r in records if r.ratio is not None and r.ratio > 0]
    steps = sorted({step for candidate, _ in known for step in candidate.steps}, key=str)
    if not steps:
        return {}
    place = {step: i for i, step in enumerate(steps)}
    has = np.zeros((len(known), len(steps)))
    for row, (candidate, _) in enumerate(known):
        has[row, [place[step] for step in candidate.steps]] = 1
    changes = _ridge(has, np.array([change for _, change in known]))
    counts = has.sum(axis=0)
    # Without any trial that lacks the step there is only the baseline, whose ratio is 1, to compare with.
    fewer = np.minimum(counts, len(known) - counts + 1)
    # By the rarer of the two sides: many trials with a step say little where none lacks it.
    weights = fewer / (fewer + PENALTY)
    return {step: (float(changes[i]), float(weights[i])) for step, i in place.items()}


def _ridge(has: NDArray[np.float64], changes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Regress without an intercept: no step is no change."""
    import numpy as np

    square = has.T @ has + PENALTY * np.eye(has.shape[1])
    # The normal equations of ridge regression; there are no more unknowns than steps were tried.
    return np.asarray(np.linalg.solve(square, has.T @ changes), np.float64)


def _failing(records: Sequence[RidgeRow], counts: Mapping[Step, int]) -> frozenset[Step]:
    failed = [record for record in records if record.ratio is None]
    with_it = Counter(step for record in failed for step in set(record.candidate.steps))

    def fails(step: Step) -> bool:
        others = len(records) - counts[step]
        share, usual = with_it[step] / counts[step], (len(failed) - with_it[step]) / max(1, others)
        # More often than without it: else another step of the same lists may be what fails.
        return share >= OFTEN and share > usual

    return frozenset(step for step in with_it if fails(step))
