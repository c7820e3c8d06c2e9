"""Trials: candidates with their outcomes, and the check of what an evaluator returns."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from planish.core.step import Candidate
from planish.core.task import Objective

Stage = Literal["transform", "build", "verify", "run", "worker"]
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True)
class Measured:
    """A verified candidate and what was measured of it.

    Args:
        values: objective name to its value, in the objective's unit.
        samples: objective name to every sample that its value was made from; not in the repr.
        parts: name of a part of the program, such as a function, to its value by the leading objective, in
            the objective's unit; a level says which parts its evaluator reports.
    """

    values: Mapping[str, float]
    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]], repr=False)
    parts: Mapping[str, float] = field(default_factory=dict[str, float])


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


@dataclass(frozen=True)
class Evaluation:
    """The result of one evaluation, as an executor returns it.

    Args:
        candidate: what was evaluated.
        outcome: measured, failed or lost.
        seconds: seconds by stage, "wait" for the wait for the machine, "worker" for the rest.
        host: the name of the machine that measured; empty where it is not known.
    """

    candidate: Candidate
    outcome: Outcome
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    host: str = ""


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON form of an outcome; `outcome_from_json` is its inverse.

    Raises:
        ValueError: the evaluation was lost, which is nothing to keep.
    """
    match outcome:
        case Measured(values, samples, parts):
            measured: dict[str, Any] = {
                "values": dict(values),
                "samples": {k: list(v) for k, v in samples.items()},
            }
            # Few levels have parts, and a store has a hundred thousand outcomes.
            return {**measured, "parts": dict(parts)} if parts else measured
        case Failed(stage, reason, detail):
            return {"stage": stage, "reason": reason, "detail": detail}
        case Lost(stage, reason):
            raise ValueError(f"an evaluation that was lost ({stage}: {reason}) is not kept")


def outcome_from_json(data: Mapping[str, Any]) -> Measured | Failed:
    """Read an outcome back from its JSON form."""
    if "values" in data:
        samples = {k: tuple(v) for k, v in data.get("samples", {}).items()}
        return Measured(dict(data["values"]), samples, dict(data.get("parts", {})))
    return Failed(data["stage"], data["reason"], data.get("detail", ""))


_DETAIL = 1000
_FLOAT = frozenset((float,))


def checked(returned: object) -> Outcome:
    """Return an evaluator's result as an outcome of plain numbers.

    Args:
        returned: anything: an evaluator may be a plug-in, and the types of Python are not enforced.

    Returns:
        The outcome itself, or with its numbers as `float`. `Failed` where it is no outcome ("no outcome"),
        or where a value, sample or part is not a number ("not a number": text, None, a truth value) or is not
        finite ("not finite").
    """
    match returned:
        case (Failed(stage, reason, detail) | Lost(stage, reason, detail)) as outcome:
            if stage in STAGES and {type(reason), type(detail)} == {str}:
                return outcome
            return _no_outcome(outcome)
        case Measured():
            return _measured(returned)
        case _:
            return _no_outcome(returned)


def checked_for(outcome: Outcome, objectives: Iterable[Objective]) -> Outcome:
    """Return an outcome, or `Failed` where a value that was asked for is missing or cannot be.

    Further values may be there: a report shows them.

    Args:
        outcome: of plain numbers (see `checked`).
        objectives: what was asked for. Their values are not negative, and those in seconds not 0 either:
            nothing takes no time. A size, count, share or rate may be 0.
    """
    if not isinstance(outcome, Measured):
        return outcome
    for objective in objectives:
        value = outcome.values.get(objective.name)
        if value is None:
            found = ", ".join(sorted(outcome.values)) or "nothing"
            return Failed("run", "not measured", f"{objective.name} is missing; measured: {found}"[:_DETAIL])
        if value < 0:
            return Failed("run", "negative", f"{objective.name} is {value}")
        if value == 0 and objective.unit == "s":
            return Failed("run", "no time", f"{objective.name} is 0 s")
    return outcome


class _BadValueError(Exception):
    """A value is not a finite number.

    Args:
        reason: of the failure.
        detail: of the failure.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def _measured(outcome: Measured) -> Outcome:
    fields: tuple[Any, ...] = outcome.values, outcome.samples, outcome.parts
    if not all(isinstance(field, Mapping) for field in fields):
        return _no_outcome(outcome)
    try:
        values, parts = (
            {_name(k): _number(k, v) for k, v in f.items()} for f in (outcome.values, outcome.parts)
        )
        samples = {_name(name): _numbers(name, many) for name, many in outcome.samples.items()}
    except _BadValueError as bad:
        return Failed("run", bad.reason, bad.detail[:_DETAIL])
    return Measured(values, samples, parts)


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise _BadValueError("no outcome", f"an objective or a part is called {name!r}")
    return name


def _numbers(name: str, samples: object) -> tuple[float, ...]:
    if not isinstance(samples, (tuple, list)):
        raise _BadValueError("not a number", f"the samples of {name} are {samples!r}")
    many: Sequence[Any] = samples
    if _FLOAT.issuperset(map(type, many)) and all(map(math.isfinite, many)):
        return tuple(many)  # as nearly always: to look at each number apart takes ten times as long
    return tuple(_number(name, value) for value in many)


def _number(name: str, value: object) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    # A truth value is an integer in Python, and would count as 1.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise _BadValueError("not a number", f"{name} is {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _BadValueError("not finite", f"{name} is {value!r}")
    return number


def _no_outcome(returned: object) -> Failed:
    return Failed("worker", "no outcome", f"the evaluator returned {returned!r}"[:_DETAIL])


@dataclass(frozen=True)
class TrialPrediction:
    """Prediction of a searcher for a candidate that it proposed.

    Args:
        value: a cost model's score, of which less is better, or the probability that a policy writes the
            candidate.
        learned: how many trials of the search the model had learned from.
    """

    value: float
    learned: int = 0


@dataclass(frozen=True)
class Trial:
    """A candidate with its outcome and provenance.

    Args:
        candidate: what was tried.
        outcome: measured, failed, or lost, which no store keeps.
        index: its position in the run, from 0; its randomness comes from (seed, index).
        seed: the run's seed.
        seconds: stage name to seconds spent, of this trial alone.
        host: the machine that measured it.
        time: when it ended, in seconds since the epoch; 0 when unknown.
        cached: whether the outcome was taken from the store instead of measured.
        prediction: what the searcher predicted before; None where it predicts nothing.
        client: the client of a service that submitted it; empty where a searcher proposed it.
    """

    candidate: Candidate
    outcome: Outcome
    index: int = 0
    seed: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    host: str = ""
    time: float = 0.0
    cached: bool = False
    prediction: TrialPrediction | None = None
    client: str = ""

    def cost(self, objective: Objective) -> float | None:
        """Return the objective's cost (less is better), or None where the trial failed or was lost."""
        if not isinstance(self.outcome, Measured) or objective.name not in self.outcome.values:
            return None
        return objective.cost(self.outcome.values[objective.name])

    def costs(self, objectives: Sequence[Objective]) -> tuple[float, ...] | None:
        """Return the cost by each objective; None where the trial failed, or one is missing or not finite."""
        costs = [self.cost(objective) for objective in objectives]
        known = tuple(cost for cost in costs if cost is not None and math.isfinite(cost))
        return known if len(known) == len(costs) else None


def best_trial(trials: Iterable[Trial], objective: Objective) -> Trial | None:
    """Find the measured trial of least finite cost; the earliest of equals, None if all failed."""
    measured = (t for t in trials if t.costs((objective,)) is not None)
    return min(measured, key=lambda t: t.cost(objective) or 0.0, default=None)
