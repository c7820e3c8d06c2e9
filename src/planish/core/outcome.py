"""What became of a candidate: measured, failed or lost, as types and never as a magic number."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Stage = Literal["transform", "build", "verify", "run", "worker"]
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True)
class Measured:
    """A verified candidate and what was measured of it.

    Args:
        values: objective name to its value, in the objective's unit.
        samples: objective name to every sample that its value was made from.
    """

    values: Mapping[str, float]
    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])


@dataclass(frozen=True)
class Failed:
    """A candidate that gave no value.

    Args:
        stage: where it failed.
        reason: a short fixed text that failures are grouped by ("timeout", "wrong answer").
        detail: what is particular to this failure; for people.
    """

    stage: Stage
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Lost:
    """An evaluation that ended with its worker, through no fault of the candidate.

    Nothing is known of the candidate, so this is never stored; it is asked again.

    Args:
        stage: where the worker was.
        reason: a short fixed text ("killed", "stopped", "starved").
        detail: what is particular to this loss; for people.
    """

    stage: Stage
    reason: str
    detail: str = ""


Outcome = Measured | Failed | Lost


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """Give the JSON form of an outcome; `outcome_from_json` is its inverse.

    Raises:
        ValueError: the evaluation was lost, which is nothing to keep.
    """
    match outcome:
        case Measured(values, samples):
            return {"values": dict(values), "samples": {k: list(v) for k, v in samples.items()}}
        case Failed(stage, reason, detail):
            return {"stage": stage, "reason": reason, "detail": detail}
        case Lost(stage, reason):
            raise ValueError(f"an evaluation that was lost ({stage}: {reason}) is not kept")


def outcome_from_json(data: Mapping[str, Any]) -> Measured | Failed:
    """Read an outcome back from its JSON form."""
    if "values" in data:
        samples = {k: tuple(v) for k, v in data.get("samples", {}).items()}
        return Measured(dict(data["values"]), samples)
    return Failed(data["stage"], data["reason"], data.get("detail", ""))
