"""How the front of a run grows, and with it the hypervolume."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import le

from planish.core.front import front_of, hypervolume
from planish.core.step import Candidate
from planish.core.task import Objective
from planish.core.trial import Trial

Costs = tuple[float, ...]
"""By objective, in the task's order; less is better."""


def reference_point(baseline: Sequence[float], times: float = 2.0) -> Costs:
    """Give the costs up to which a front counts: so many times as bad as the baseline in each objective.

    That is twice as much of what should be less, and half of what should be more; 1 for a baseline of 0.

    Args:
        baseline: its costs.
        times: from 1.
    """
    return tuple(cost * times if cost > 0 else cost / times if cost < 0 else 1.0 for cost in baseline)


def bounds(baseline: Costs, objectives: Sequence[Objective], times: float = 2.0) -> Costs:
    """Give the costs up to which something is of use: so many times as bad as the baseline in each objective.

    Of a share it is that part as good too, if that is less: where 55 % of the baseline's answers are wrong,
    90 % are not twice as many, and yet a network that answers at random.

    Args:
        baseline: its costs, by objective.
        objectives: of the task.
        times: from 1.
    """
    return tuple(
        min(most, 1 - (1 - cost) / times) if objective.share else most
        for objective, most, cost in zip(objectives, reference_point(baseline, times), baseline, strict=True)
    )


@dataclass
class Growth:
    """The front as it grows; a pure function of the trials, in their order.

    The hypervolume is in units of the baseline's own: 1 where nothing found is better than the baseline in
    anything, 2 where, for instance, the same error takes no time at all. It is not known before the baseline
    is measured.

    Args:
        objectives: at least two.
        start: the baseline, which is one of the trials; None where there is none.
        evaluations: how many trials were added, failed ones too.
        points: the costs of all that was measured.
        front: the costs that none of them dominates, sorted.
        baseline: its costs, once it was measured.
        volumes: evaluations and hypervolume, wherever it grew.
    """

    objectives: Sequence[Objective]
    start: Candidate | None = None
    evaluations: int = 0
    points: list[Costs] = field(default_factory=list[Costs])
    front: list[Costs] = field(default_factory=list[Costs])
    baseline: Costs | None = None
    volumes: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])

    def add(self, trial: Trial) -> None:
        """Take the next trial in."""
        self.evaluations += 1
        costs = trial.costs(self.objectives)
        if costs is None:
            return
        self.points.append(costs)
        if self.start is not None and trial.candidate.hash == self.start.hash:
            self.baseline = costs
        elif any(all(map(le, held, costs)) for held in self.front):
            return
        joined = [*self.front, costs]
        self.front = [joined[place] for place in front_of(joined)]
        self._note()

    @property
    def volume(self) -> float | None:
        """The hypervolume now; None while the baseline is not measured."""
        return self.volumes[-1][1] if self.volumes else None

    def _note(self) -> None:
        if self.baseline is None:
            return
        worst = reference_point(self.baseline)
        unit = math.prod(far - near for far, near in zip(worst, self.baseline, strict=True))
        volume = hypervolume(self.front, worst) / unit
        if self.volume is None or volume > self.volume:
            self.volumes.append((self.evaluations, volume))


def growth_of(trials: Iterable[Trial], objectives: Sequence[Objective], start: Candidate | None) -> Growth:
    """Tell how the front of some trials grew.

    Args:
        trials: in the order of the run.
        objectives: at least two.
        start: the baseline; None where it is not known.
    """
    growth = Growth(objectives, start)
    for trial in trials:
        growth.add(trial)
    return growth
