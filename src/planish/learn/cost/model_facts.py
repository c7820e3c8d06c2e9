"""What a model's file says of the model, checked: it may come from anybody."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planish.core import FeatureSchema, PlanishError

OBJECTIVES = ("rank", "regression")


@dataclass(frozen=True)
class ModelFacts:
    """What a model is for, and what it learnt from.

    Args:
        level: whose candidates it predicts.
        schema: of the features that it is asked with.
        objective: what it learnt: "rank" or "regression".
        metrics: name to value, on programs that it did not learn from.
        rows: how many trials it learnt from.
        programs: of how many programs they are.
        training: hash of these rows.
        version: planish's, that fitted it.
    """

    level: str
    schema: FeatureSchema
    objective: str
    metrics: Mapping[str, float]
    rows: int
    programs: int
    training: str
    version: str


def facts_of(path: Path, about: Mapping[str, Any], hint: str) -> ModelFacts:
    """Read facts from JSON.

    Args:
        path: of the file, for errors.
        about: what stands in it.
        hint: of errors.

    Raises:
        PlanishError: one cannot be true; says which.
        KeyError: one is missing.
    """

    def check(what: str, *, right: bool) -> None:
        if not right:
            raise PlanishError(f"{path} is no model's file: {what}", hint)

    level, told, metrics = about["level"], about["schema"], about["metrics"]
    rows, programs = about["rows"], about["programs"]
    for name in ("level", "training", "version"):
        check(f"its {name} is {about[name]!r}, and no text", right=isinstance(about[name], str))
    check(f"its objective is {about['objective']!r}", right=about["objective"] in OBJECTIVES)
    schema = _schema(told)
    check("its features are not told by a name, a version and columns, each once", right=schema is not None)
    assert schema is not None
    owner, slash, _ = schema.name.partition("/")
    of_level = f"it is of the level {level!r}, and its features {schema.name} are of the level {owner!r}"
    check(of_level, right=not slash or owner == level)
    check(f"its number of trials is {rows!r}", right=_is_count(rows))
    check(f"its number of programs is {programs!r}, of {rows} trials", right=_is_count(programs, rows))
    check("its metrics are no numbers by name", right=_are_numbers(metrics))
    return ModelFacts(
        level,
        schema,
        about["objective"],
        {name: float(value) for name, value in metrics.items()},
        rows,
        programs,
        about["training"],
        about["version"],
    )


def _schema(told: Mapping[str, Any]) -> FeatureSchema | None:
    """Read the features' names; None where they are none."""
    if not isinstance(told, dict):
        return None
    name, version = told.get("name"), told.get("version")
    names: Sequence[Any] | None = told.get("names")
    if not isinstance(name, str) or not isinstance(version, int) or not isinstance(names, list):
        return None
    if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
        return None
    return FeatureSchema(name, version, tuple(names))


def _is_count(value: Any, most: int | None = None) -> bool:
    """Whether it is a whole number, 1 at least."""
    return type(value) is int and value >= 1 and (most is None or value <= most)


def _are_numbers(metrics: Mapping[str, Any]) -> bool:
    if not isinstance(metrics, dict):
        return False
    return all(type(value) in (int, float) and math.isfinite(value) for value in metrics.values())
