"""How much arithmetic a program does."""

from collections.abc import Sequence

from planish.core import Measured, Objective, Trial


def work_of(trials: Sequence[Trial], objective: Objective) -> float | None:
    """Give the arithmetic of a call, in GFLOP, where the trials tell of their GFLOPS and their time."""
    for trial in trials:
        values = trial.outcome.values if isinstance(trial.outcome, Measured) else {}
        if objective.unit == "s" and "gflops" in values and objective.name in values:
            return values["gflops"] * values[objective.name]
    return None
