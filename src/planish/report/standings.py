"""How the finalists did beside the baseline, in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planish.core import Candidate, Measured, Objective, Trial
from planish.store.records import Finalist


@dataclass(frozen=True)
class Standing:
    """One line of the comparison at the end.

    Args:
        name: `#1` for the winner, and `baseline`.
        candidate: None for the baseline.
        median: of the leading objective; None where it was not stored.
        gain: how many times better than the baseline.
        interval: both ends of the gain's confidence interval; None where it was not stored.
        verdict: as the comparison gave it; "faster" means better, whatever the objective is.
        samples: every sample, in the order measured.
    """

    name: str
    candidate: Candidate | None
    median: float | None
    gain: float = 1.0
    interval: tuple[float, float] | None = None
    verdict: str = ""
    samples: tuple[float, ...] = field(default=(), repr=False)


def standings(finalists: Sequence[Finalist], objective: Objective) -> list[Standing]:
    """Give the finalists in their order, then the baseline; nothing where nobody was compared."""
    if not finalists:
        return []
    found = [_standing(f"#{rank}", f, objective) for rank, f in enumerate(finalists, 1)]
    base: Mapping[str, Any] = finalists[0].data.get("baseline", {})
    if base.get("median") is not None:
        found.append(Standing("baseline", None, base["median"], samples=tuple(base.get("samples", ()))))
    return found


def _standing(name: str, finalist: Finalist, objective: Objective) -> Standing:
    data = finalist.data
    return Standing(
        name,
        finalist.candidate,
        data.get("median"),
        finalist.ratio,
        _interval(data.get("ratio"), objective),
        data.get("verdict", ""),
        tuple(data.get("samples", ())),
    )


def _interval(ratio: Sequence[float] | None, objective: Objective) -> tuple[float, float] | None:
    """Turn (value, low, high) of objective / baseline into the ends of the gain."""
    if ratio is None:
        return None
    _, low, high = ratio
    return (low, high) if objective.direction == "up" else (_inverse(high), _inverse(low))


def _inverse(value: float) -> float:
    return 1 / value if value else float("inf")


def work_of(trials: Sequence[Trial], objective: Objective) -> float | None:
    """Give the arithmetic of a call, in GFLOP, where the trials tell of their GFLOPS and their time."""
    for trial in trials:
        values = trial.outcome.values if isinstance(trial.outcome, Measured) else {}
        if objective.unit == "s" and "gflops" in values and objective.name in values:
            return values["gflops"] * values[objective.name]
    return None
