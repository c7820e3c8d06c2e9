"""Workloads from tables, as of TOML and JSON; what is wrong with one is named with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from planish.core import ProgramError, did_you_mean
from planish.hlo.workload.metric import check_metric
from planish.hlo.workload.spec import Workload

T = TypeVar("T")
FILES = ("weights", "original")


def workload_from(table: Mapping[str, Any], where: str) -> Workload:
    """Read a workload from a table, as of TOML or JSON.

    Args:
        table: sections as the classes here; a file may be a path.
        where: what messages call it.

    Raises:
        ProgramError: a name is unknown, a value is of the wrong type or size.
    """
    paths = {name: {"path": table[name]} for name in FILES if isinstance(table.get(name), str)}
    table = {**table, **paths}
    workload = _read(Workload, table, where)
    _check(workload, where)
    return workload


def _read(kind: type[T], table: Any, where: str) -> T:
    if not isinstance(table, Mapping):
        raise ProgramError(f"{where} is no table", "Write it as [section] with NAME = VALUE.")
    types = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in types:
            raise ProgramError(f"{where} has an unknown entry '{name}'", did_you_mean(name, types))
        values[name] = _value(types[name], value, f"'{name}' of {where}")
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise ProgramError(f"{where} lacks '{field.name}'", "Add it.")
    return kind(**values)


def _value(type_: Any, value: Any, where: str) -> Any:
    if isinstance(type_, UnionType):
        if value is None:
            return None
        type_ = next(each for each in get_args(type_) if each is not type(None))
    if get_origin(type_) is Literal:
        if value not in get_args(type_):
            raise ProgramError(f"{where} is {value!r}", did_you_mean(str(value), map(str, get_args(type_))))
        return value
    if get_origin(type_) is tuple:
        values = value if isinstance(value, list | tuple) else [value]
        return tuple(_value(float, each, where) for each in values)
    # Where a float is wanted, 1 is one; true is none, though Python's bool is an int.
    if type_ is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type_ in (int, str, float):
        if type(value) is not type_:
            raise ProgramError(f"{where} is {value!r}", f"It is of type {type_.__name__}.")
        return value
    return _read(type_, value, where)


def _check(workload: Workload, where: str) -> None:
    check_metric(workload, where)
    _check_inputs(workload, where)
    split, training = workload.split, workload.training
    for name, count in asdict(split).items():
        if count < 0:
            raise ProgramError(f"'{name}' of {where} is {count}", "It is 0 or more.")
    if not (split.search and split.validation):
        raise ProgramError(f"{where} leaves the search or the validation no examples", "Give each some.")
    if training and not split.train:
        raise ProgramError(f"{where} has no examples to train on", "Give 'train' of [split] some.")
    if training and (training.epochs < 1 or training.search_steps < 0):
        raise ProgramError(f"the training of {where} has no steps", "Give epochs of 1 or more.")
    if not all(workload.images.deviation):
        raise ProgramError(f"{where} divides pixels by a deviation of 0", "Give another one.")


def _check_inputs(workload: Workload, where: str) -> None:
    inputs = workload.inputs
    if inputs is None:
        return
    if workload.training:
        raise ProgramError(f"{where} has [inputs] beside a training", "A training takes images and labels.")
    if min(inputs.search, inputs.validation) < 1 or min(inputs.final, inputs.seed, inputs.below) < 0:
        what = f"[inputs] of {where} leaves the search or the validation no calls, or has a number below 0"
        raise ProgramError(what, "Give 'search' and 'validation' 1 or more.")
