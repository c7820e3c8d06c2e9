"""Check of what an evaluator returns: outcomes with sensible values, or a failure that says what is wrong."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from planish.core.outcome import STAGES, Failed, Lost, Measured, Outcome
from planish.core.task import Objective

_DETAIL = 1000
_FLOAT = frozenset((float,))


def checked(returned: object) -> Outcome:
    """Return what an evaluator returned as an outcome of plain numbers.

    Args:
        returned: anything: an evaluator may be a plug-in, and the types of Python bind nobody.

    Returns:
        The outcome itself, or with its numbers as `float`. `Failed` where it is no outcome ("no outcome"), or
        where a value or sample is no number ("not a number": text, None, a truth value) or not finite
        ("not finite").
    """
    match returned:
        case (Failed(stage, reason, detail) | Lost(stage, reason, detail)) as outcome:
            if stage in STAGES and {type(reason), type(detail)} == {str}:
                return outcome
            return _no_outcome(outcome)
        case Measured(values, samples):
            return _measured(returned, values, samples)
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
    """A value is no finite number.

    Args:
        reason: of the failure.
        detail: of the failure.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def _measured(outcome: Measured, values: object, samples: object) -> Outcome:
    if not isinstance(values, Mapping) or not isinstance(samples, Mapping):
        return _no_outcome(outcome)
    by_name: Mapping[Any, Any] = values
    all_samples: Mapping[Any, Any] = samples
    try:
        found = {_name(name): _number(name, value) for name, value in by_name.items()}
        sampled = {_name(name): _numbers(name, many) for name, many in all_samples.items()}
    except _BadValueError as bad:
        return Failed("run", bad.reason, bad.detail[:_DETAIL])
    return Measured(found, sampled)


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise _BadValueError("no outcome", f"an objective is called {name!r}")
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
