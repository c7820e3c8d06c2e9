"""Conditions of measurements, by which a model is asked only where what it learnt holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Value = str | int
Stated = Mapping[str, Sequence[Value]]
"""Name of a condition to its values among the trials that a model learnt from."""
OBJECTIVE = "objective"
"""Name of the condition that a model of one objective never guides the search for another."""


def stated(trials: Iterable[Mapping[str, Value]]) -> Stated:
    """Return the conditions of several programs' trials, each value once, in order."""
    found = dict[str, set[Value]]()
    for each in trials:
        for name, value in each.items():
            found.setdefault(name, set()).add(value)
    return {name: sorted(values, key=str) for name, values in sorted(found.items())}


def unmet(known: Stated, asked: Mapping[str, Value]) -> str:
    """Return how the conditions of a search differ from a model's; "" where they do not.

    Conditions that one of the two does not state are not compared.
    """
    for name, value in asked.items():
        if name in known and value not in known[name]:
            return f"learnt from trials of {name} {' and '.join(map(str, known[name]))}, and this is {value}"
    return ""


def read_stated(raw: Any) -> Stated | None:
    """Read conditions from a file's JSON; None where they are none."""
    if not isinstance(raw, dict):
        return None
    pairs: dict[Any, Any] = dict(raw)
    for name, values in pairs.items():
        if not isinstance(name, str) or not isinstance(values, list):
            return None
        every: list[Any] = values
        if not all(type(value) in (str, int) for value in every):
            return None
    return pairs
