"""JSON of the measuring service: candidates as clients submit them, and outcomes and comparisons as
answers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from planish.core import Candidate, Failed, Lost, Measured, Objective, ProgramError, Step, Trial
from planish.core.step import step_from_json
from planish.core.wording import verdict_word
from planish.measure.comparison import times_worse
from planish.sandbox.plain_data import DataError, dumps
from planish.tuning.comparison import Finalist
from planish.tuning.result import Result
from planish.tuning.verdict import verdict_of

_TAIL = 0.025
_DETAIL_MOST = 2000


class MalformedError(ValueError):
    """Error of a submission that is not a list of steps."""


def read_candidate(raw: object, known: Mapping[str, type[Step]], most: int) -> Candidate:
    """Read a candidate from JSON.

    Args:
        raw: a list of steps, each `[NAME, {OPTION: VALUE}]`.
        known: step name to class, as the level lists them.
        most: steps at most.

    Raises:
        MalformedError: it is not a list of steps, or has too many.
        ProgramError: a step, an option or the type of a value is unknown.
    """
    if not isinstance(raw, list):
        raise MalformedError("steps is a list of steps, each [NAME, {OPTION: VALUE}].")
    items: list[Any] = raw
    if len(items) > most:
        raise MalformedError(f"{len(items)} steps are more than {most}, which a candidate may have.")
    return Candidate(tuple(_step(item, known) for item in items))


def _step(item: Any, known: Mapping[str, type[Step]]) -> Step:
    match item:
        case [str() as name, dict() as options] if all(isinstance(key, str) for key in options):
            _check_finite(name, options)
            step = step_from_json([name, options], known)
        case _:
            raise MalformedError(f"a step is [NAME, {{OPTION: VALUE}}], not {str(item)[:100]}.")
    hints = get_type_hints(type(step))
    for option in (each.name for each in fields(step)):
        hint, value = hints[option], getattr(step, option)
        try:
            dumps(value, hint)
        except DataError:
            kind = hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
            raise ProgramError(f"step '{name}': {option} takes {kind}, not {str(value)[:100]!r}") from None
    return step


def _check_finite(name: str, options: Mapping[str, Any]) -> None:
    try:
        json.dumps(options, allow_nan=False)  # of a body, 1e999 is read as infinity
    except ValueError:
        raise ProgramError(f"step '{name}' has a number that is not finite") from None


def steps_of(candidate: Candidate) -> list[Any]:
    """Return the steps of a candidate, as clients submit them."""
    return json.loads(candidate.text)


def outcome_document(trial: Trial, objectives: Sequence[Objective], baseline: Trial | None) -> dict[str, Any]:
    """Return what became of a candidate.

    Args:
        trial: its trial.
        objectives: of the task; the first leads.
        baseline: the baseline's trial; None where it is not measured.
    """
    found: dict[str, Any] = {"trial": trial.index, "cached": trial.cached}
    match trial.outcome:
        case Measured(values, samples):
            return found | {
                "outcome": "measured",
                "values": dict(values),
                "intervals": {name: median_interval(each) for name, each in samples.items() if each},
                **_gains(trial, objectives, baseline),
            }
        case Failed(stage, reason, detail) | Lost(stage, reason, detail):
            is_lost = isinstance(trial.outcome, Lost)
            return found | {
                "outcome": "lost" if is_lost else "failed",
                "failure": {"stage": stage, "reason": reason, "detail": detail[:_DETAIL_MOST]},
                "verdict": "undecided" if is_lost else "failed",
                "conclusive": not is_lost,
            }


def trial_document(trial: Trial, objectives: Sequence[Objective], baseline: Trial | None) -> dict[str, Any]:
    """Return a candidate, and what became of it; see `outcome_document`."""
    return {"steps": steps_of(trial.candidate), **outcome_document(trial, objectives, baseline)}


def _gains(trial: Trial, objectives: Sequence[Objective], baseline: Trial | None) -> dict[str, Any]:
    """Return how many times better than the baseline it is, as far as two single measurements show."""
    lead = objectives[0]
    if baseline is None or trial.costs(objectives) is None or baseline.costs(objectives) is None:
        return {"gain": None, "verdict": "undecided", "conclusive": False}
    gains = {each.name: _gain(trial, each, baseline) for each in objectives}
    found: dict[str, Any] = {"gain": gains[lead.name]}
    if len(objectives) > 1:
        found |= {"gains": gains, "no_regression": has_no_regression(trial, objectives, baseline)}
    # What is counted exactly is the same at each time; what is timed once, among many, is optimistic.
    if not all(each.exact for each in objectives):
        return {**found, "verdict": "undecided", "conclusive": False}
    cost, base = trial.cost(lead), baseline.cost(lead)
    assert cost is not None
    assert base is not None
    word = "same" if cost == base else "better" if cost < base else "worse"
    return {**found, "verdict": verdict_word(word, lead), "conclusive": True}


def _gain(trial: Trial, objective: Objective, baseline: Trial) -> float | None:
    ratio = times_worse(objective, [baseline.outcome], [trial.outcome])
    return ratio if math.isfinite(ratio) else None


def has_no_regression(trial: Trial, objectives: Sequence[Objective], baseline: Trial | None) -> bool:
    """Return whether a trial is worse than the baseline in no further objective, such as a model's error."""
    if baseline is None:
        return False
    costs = [(trial.cost(each), baseline.cost(each)) for each in objectives[1:]]
    return all(cost is not None and base is not None and cost <= base for cost, base in costs)


def median_interval(samples: Iterable[float]) -> list[float]:
    """Return the ends of a 95 % confidence interval of the median, by order statistics.

    It is that of one process: between processes, times differ by more. Of fewer than 6 samples it is their
    range.

    Args:
        samples: at least one.
    """
    ordered = sorted(samples)
    count, below, rank = len(ordered), 0.0, 0
    while True:
        below += math.comb(count, rank) / 2**count
        if below > _TAIL:
            break
        rank += 1
    return [ordered[max(0, rank - 1)], ordered[min(count - 1, count - rank)]]


def comparison_document(result: Result) -> dict[str, Any]:
    """Return what the comparison of the best candidates with the baseline found."""
    verdict, base = verdict_of(result), result.baseline
    return {
        "run": result.run.id,
        "verdict": verdict_word(verdict.kind, result.objective),
        "headline": verdict.headline,
        "grounds": list(verdict.grounds),
        "conclusive": verdict.kind not in ("undecided", "open"),
        "baseline": None if base is None else {n: each.median for n, each in base.measured.items()},
        "finalists": [finalist_document(each) for each in result.finalists],
        "notes": list(result.notes),
    }


def finalist_document(finalist: Finalist) -> dict[str, Any]:
    """Return a finalist: how it did in the comparison."""
    lead = finalist.lead
    return {
        "steps": steps_of(finalist.candidate),
        "values": {name: each.median for name, each in finalist.measured.items()},
        "gain": lead.gain.value,
        "interval": [lead.gain.low, lead.gain.high],
        "verdict": verdict_word(lead.verdict, lead.objective),
        "conclusive": lead.verdict != "undecided",
    }


def step_document(step: type[Step]) -> dict[str, Any]:
    """Return a kind of step: what it does, and its options with their types."""
    summary = (step.__doc__ or "").strip().partition("\n")[0]
    options = {field.name: str(field.type) for field in fields(step)}
    required = [f.name for f in fields(step) if f.default is MISSING and f.default_factory is MISSING]
    return {"summary": summary, "options": options, "required": required}


def objective_document(objective: Objective) -> dict[str, Any]:
    """Return an objective."""
    return {
        "name": objective.name,
        "unit": objective.unit,
        "direction": objective.direction,
        "exact": objective.exact,
    }


def catalogue(steps: Mapping[str, type[Step]]) -> dict[str, Any]:
    """Return the kinds of steps by name."""
    return {name: step_document(step) for name, step in steps.items()}
