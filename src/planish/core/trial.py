"""A trial: a candidate, what became of it, and where it came from."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from planish.core.outcome import Measured, Outcome
from planish.core.step import Candidate
from planish.core.task import Objective


@dataclass(frozen=True)
class Trial:
    """A candidate with its outcome and provenance.

    Args:
        candidate: what was tried.
        outcome: measured, failed, or lost, which no store keeps.
        index: its place in the run, from 0; its randomness comes from (seed, index).
        seed: the run's seed.
        seconds: stage name to seconds spent, of this trial alone.
        host: the machine that measured it.
        time: when it ended, in seconds since the epoch; 0 when unknown.
        cached: whether the outcome was taken from the store instead of measured.
    """

    candidate: Candidate
    outcome: Outcome
    index: int = 0
    seed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    host: str = ""
    time: float = 0.0
    cached: bool = False

    def cost(self, objective: Objective) -> float | None:
        """Give the objective's cost (less is better), or None where the trial failed or was lost."""
        if not isinstance(self.outcome, Measured) or objective.name not in self.outcome.values:
            return None
        return objective.cost(self.outcome.values[objective.name])

    def costs(self, objectives: Sequence[Objective]) -> tuple[float, ...] | None:
        """Give the cost by each objective; None where the trial failed, or one is missing or not finite."""
        costs = [self.cost(objective) for objective in objectives]
        known = tuple(cost for cost in costs if cost is not None and math.isfinite(cost))
        return known if len(known) == len(costs) else None


def best_trial(trials: Iterable[Trial], objective: Objective) -> Trial | None:
    """Find the measured trial of least finite cost; the earliest of equals, None if all failed."""
    measured = (t for t in trials if t.costs((objective,)) is not None)
    return min(measured, key=lambda t: t.cost(objective) or 0.0, default=None)
