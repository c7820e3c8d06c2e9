"""How much better than measured a trial of the search may be: its own samples tell."""

from __future__ import annotations

import statistics

from planish.core import NOTICED, Costs, Measured, Objective, Trial
from planish.measure import by_processor_time
from planish.measure.timing import error

ERRORS = 2.0
"""Standard errors that chance may explain (95 %)."""


def least_costs(trial: Trial, costs: Costs, objectives: tuple[Objective, ...]) -> Costs:
    """Give the costs of a trial less what noise may have added: two standard errors, 1 % at least.

    They are for the choice of who is measured again, in turns and in fresh processes, and prove nothing: of
    one process nobody knows its luck.

    Args:
        trial: with samples, where its level keeps them.
        costs: its own.
        objectives: by which; what is exact has no noise.
    """
    pairs = zip(costs, objectives, strict=True)
    return tuple(cost if o.exact else cost - abs(cost) * _share(trial, o) for cost, o in pairs)


def _share(trial: Trial, objective: Objective) -> float:
    """Estimate within which share of itself a value is known."""
    outcome = trial.outcome
    assert isinstance(outcome, Measured)
    names = (objective.name, by_processor_time(objective.name))
    # The value is the median of one of both.
    known = [found for name in names if (found := outcome.samples.get(name))]
    told = [f for f in known if statistics.median(f) == outcome.values[objective.name]]
    return max([NOTICED, *(ERRORS * error(found) for found in told if len(found) > 1)])
