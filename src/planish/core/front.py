"""Pareto dominance: fronts, crowding distances, hypervolume, and their growth in a run."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter, le
from typing import TYPE_CHECKING, Any

from planish.core.step import Candidate
from planish.core.task import Objective
from planish.core.trial import Trial, best_trial

if TYPE_CHECKING:
    from numpy.typing import NDArray

_AT_ONCE = 1000


def dominates(costs: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether one vector of costs is nowhere above another of its length, and somewhere below it."""
    pairs = list(zip(costs, others, strict=True))
    return all(one <= other for one, other in pairs) and any(one < other for one, other in pairs)


def front_of(costs: Sequence[Sequence[float]]) -> list[int]:
    """Find the vectors that no other dominates; of equal ones the first.

    Args:
        costs: vectors of one length; less is better.

    Returns:
        Indices, sorted by cost.
    """
    front: list[int] = []
    # In this order nothing is dominated by what comes later.
    for index in sorted(range(len(costs)), key=lambda i: (*costs[i], i)):
        # Of two costs the second falls along the front, so its end decides for all.
        rivals = front[-1:] if len(costs[index]) <= 2 else front
        if not any(all(map(le, costs[held], costs[index])) for held in rivals):
            front.append(index)
    return front


def nondominated_sort(costs: Sequence[Sequence[float]]) -> Iterator[list[int]]:
    """Sort vectors into fronts: each holds what nothing outside the fronts before it dominates.

    This is the fast non-dominated sort of NSGA-II (Deb and others, 2002), in O(objectives * n ** 2). Equal
    vectors are neighbors. A front begins with what lost its last dominator first.

    Args:
        costs: finite vectors of one length; less is better.

    Yields:
        Indices, front after front.
    """
    import numpy as np

    alike: dict[tuple[float, ...], list[int]] = {}
    for index, vector in enumerate(costs):
        alike.setdefault(tuple(vector), []).append(index)
    if not alike:
        return
    indices, columns = list(alike.values()), np.array(list(alike), float).T
    # Distinct vectors: whatever is nowhere above another is somewhere below it.
    dominated: NDArray[Any] = np.logical_and.reduce([column[:, None] <= column for column in columns])
    np.fill_diagonal(dominated, val=False)
    dominators = dominated.sum(0)
    front = np.flatnonzero(dominators == 0)
    while front.size:
        yield [index for each in front for index in indices[each]]
        below = dominated[front]
        dominators -= below.sum(0)
        dominators[front] = -1
        freed = np.flatnonzero(dominators == 0)
        last = len(front) - np.argmax(below[::-1, freed], axis=0) if freed.size else freed
        front = freed[np.argsort(last, kind="stable")]


def crowding_distances(costs: Sequence[Sequence[float]]) -> list[float]:
    """Measure how far each vector of a front is from its neighbors (Deb and others, 2002).

    Args:
        costs: vectors of one length.

    Returns:
        For each the mean, over the objectives, of the gap between its neighbors as a share of the front's
        range; infinite at the ends.
    """
    import numpy as np

    values, distances = np.array(costs, float), np.zeros(len(costs))
    order = np.arange(len(costs))
    for column in values.T:
        # Stable, and from the last objective's order on: so ties are broken alike in every run.
        order = order[np.argsort(column[order], kind="stable")]
        ordered = column[order]
        distances[order[[0, -1]]] = np.inf
        if extent := values.shape[1] * (ordered[-1] - ordered[0]):
            distances[order[1:-1]] += (ordered[2:] - ordered[:-2]) / extent
    return distances.tolist()


def pareto_front(trials: Iterable[Trial], objectives: Sequence[Objective]) -> list[Trial]:
    """Find the trials that no other dominates, sorted by cost; of equal ones the earliest.

    Args:
        trials: those that failed, or lack an objective, are passed over.
        objectives: what counts; at least one.
    """
    known = ((trial, costs) for trial in trials if (costs := trial.costs(objectives)) is not None)
    front: list[tuple[Trial, Sequence[float]]] = []
    while some := list(islice(known, _AT_ONCE)):  # so the many that are dominated need not be kept
        some = [*front, *some]
        # In the order of the trials, so that of equals the earliest stays.
        front = [some[index] for index in sorted(front_of([costs for _, costs in some]))]
    return [trial for trial, _ in sorted(front, key=itemgetter(1))]


def best_non_regressing(
    trials: Iterable[Trial], objectives: Sequence[Objective], baseline: Candidate | None
) -> Trial | None:
    """Find the best trial by the first objective of those that are worse than the baseline in none.

    The best by one of several objectives may be of no use: the fastest network answers at random.

    Args:
        trials: those that failed are passed over; gone through more than once.
        objectives: at least one; with a single one the best of all is found.
        baseline: where it was not measured, or is not known, the best of all is found too.

    Returns:
        The earliest of equals, perhaps the baseline itself; None if all failed.
    """
    if len(objectives) == 1 or baseline is None:
        return best_trial(trials, objectives[0])
    start = next((t.costs(objectives) for t in trials if t.candidate.hash == baseline.hash), None)
    if start is None:
        return best_trial(trials, objectives[0])
    known = ((trial, costs) for trial in trials if (costs := trial.costs(objectives)) is not None)
    return best_trial((trial for trial, costs in known if all(map(le, costs, start))), objectives[0])


def hypervolume(costs: Sequence[Sequence[float]], reference: Sequence[float]) -> float:
    """Measure, exactly, the space that vectors of costs dominate, up to a reference point.

    Of two sets, one that dominates the other has the greater hypervolume. It takes n log n operations for
    one or two costs and n vectors on the front, and about n times as many for each further one.

    Args:
        costs: vectors as long as the reference; one that is not below it everywhere adds nothing.
        reference: costs worse than all that is of interest.

    Returns:
        The volume, in the product of the costs' units; 0 for no vectors.

    Raises:
        ValueError: the lengths differ.
    """
    inside = [vector for vector in costs if all(c < r for c, r in zip(vector, reference, strict=True))]
    return _volume([inside[index] for index in front_of(inside)], reference)


def _volume(front: Sequence[Sequence[float]], reference: Sequence[float]) -> float:
    """Measure what a front dominates, sorted by cost as `front_of` does."""
    *rest, last = reference
    if not rest:
        return sum(last - cost for (cost,) in front)
    if len(rest) == 1:
        # A staircase: each vector adds the rectangle between its own height and that of the one before.
        tops = [last, *(up for _, up in front)]
        return sum((rest[0] - across) * (top - up) for (across, up), top in zip(front, tops, strict=False))
    # Between two values of the last cost, what is dominated is a prism over the vectors below: hypervolume by
    # slicing objectives (HSO; While and others, 2006).
    rising = sorted(front, key=itemgetter(-1))
    ends = [*(vector[-1] for vector in rising[1:]), last]
    flat = [vector[:-1] for vector in rising]
    return sum(
        (end - vector[-1]) * hypervolume(flat[: count + 1], rest)
        for count, (vector, end) in enumerate(zip(rising, ends, strict=False))
    )


def exclusive_hypervolume(
    costs: Sequence[float], others: Sequence[Sequence[float]], reference: Sequence[float]
) -> float:
    """Measure the space that a vector dominates, and others do not, up to a reference point.

    It is what the hypervolume grows by when the vector joins the others (While and others, A fast way of
    calculating exact hypervolumes, 2012).

    Args:
        costs: the vector.
        others: vectors as long as it.
        reference: as for `hypervolume`.
    """
    limited = [tuple(map(max, costs, other)) for other in others]
    return hypervolume([costs], reference) - hypervolume(limited, reference)


Costs = tuple[float, ...]
"""By objective, in the task's order; less is better."""


def reference_point(baseline: Sequence[float], times: float = 2.0) -> Costs:
    """Return the reference point of the hypervolume: a multiple of the baseline's cost in each objective.

    That is twice as much of what should be less, and half of what should be more; 1 for a baseline of 0.

    Args:
        baseline: its costs.
        times: from 1.
    """
    return tuple(cost * times if cost > 0 else cost / times if cost < 0 else 1.0 for cost in baseline)


def bounds(baseline: Costs, objectives: Sequence[Objective], times: float = 2.0) -> Costs:
    """Return the greatest useful costs: a multiple of the baseline's in each objective.

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
class HypervolumeTracker:
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
        """Add the next trial."""
        self.evaluations += 1
        costs = trial.costs(self.objectives)
        if costs is None:
            return
        self.points.append(costs)
        is_baseline = self.start is not None and trial.candidate.hash == self.start.hash
        first, last = self._neighbors(costs)
        near = self.front[first:last]
        if not any(all(map(le, held, costs)) for held in near):
            kept = [held for held in near if not all(map(le, costs, held))]
            kept.insert(bisect_left(kept, costs), costs)
            self.front[first:last] = kept
        elif not is_baseline:
            return
        if is_baseline:
            self.baseline = costs
        if self.baseline is None:
            return
        worst = reference_point(self.baseline)
        unit = math.prod(far - near for far, near in zip(worst, self.baseline, strict=True))
        if is_baseline or self.volume is None:
            volume = hypervolume(self.front, worst) / unit
        else:
            volume = self.volume + exclusive_hypervolume(costs, near, worst) / unit
        if self.volume is None or volume > self.volume:
            self.volumes.append((self.evaluations, volume))

    def _neighbors(self, costs: Costs) -> tuple[int, int]:
        """Return the slice of the front whose members may dominate a vector, or share what it dominates."""
        if len(costs) != 2:
            return 0, len(self.front)
        # Of two costs the second falls along the front: what the vector dominates follows it at once.
        first = bisect_left(self.front, costs)
        last = bisect_right(self.front, -costs[1], lo=first, key=lambda held: -held[1])
        return max(0, first - 1), last + 1

    @property
    def volume(self) -> float | None:
        """The hypervolume now; None while the baseline is not measured."""
        return self.volumes[-1][1] if self.volumes else None


def growth_of(
    trials: Iterable[Trial], objectives: Sequence[Objective], start: Candidate | None
) -> HypervolumeTracker:
    """Return the growth of the hypervolume over some trials.

    Args:
        trials: in the order of the run.
        objectives: at least two.
        start: the baseline; None where it is not known.
    """
    growth = HypervolumeTracker(objectives, start)
    for trial in trials:
        growth.add(trial)
    return growth
