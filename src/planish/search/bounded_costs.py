"""Up to where costs are of use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planish.core import Costs, Objective, bounds


@dataclass(frozen=True)
class BoundedCosts:
    """Makes costs beyond a bound give way to all that are within it.

    GEVO-ML has no bound; without one our fronts have more members that answer at random than useful ones.

    Args:
        objectives: of the task.
        times: as bad as the baseline, where it is known (`planish.core.bounds`); up to 1: there is no end.
    """

    objectives: Sequence[Objective]
    times: float

    def bounded(self, costs: Costs, baseline: Costs | None) -> Costs:
        """Make costs beyond the bound worse than all within it, the worse the farther (Deb's constraints)."""
        if baseline is None or self.times <= 1:
            return costs
        worst = bounds(baseline, self.objectives, self.times)
        # A baseline of 0 has no times as bad: any span will do, but not 0, which is divided by.
        spans = [far - near or 1.0 for far, near in zip(worst, baseline, strict=True)]
        # Every objective exceeds by the same share: such vectors are ordered among themselves, and each is
        # dominated by all within the bound.
        beyond = sum(max(0.0, (c - far) / span) for c, far, span in zip(costs, worst, spans, strict=True))
        return tuple(far + beyond * span for far, span in zip(worst, spans, strict=True)) if beyond else costs
