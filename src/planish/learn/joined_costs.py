"""Tables of what pass lists cost, of several files, as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from planish.core import PlanishError, unknown
from planish.learn.cost_table import BY_FUNCTION, CostTable, read_costs

_KIND = {"llvm": "LLVM", "machine": "machine"}
_DESCRIBED = {"features": "features", "version": "version of features"}


def read_joined(files: Sequence[Path], objective: str, *, described: bool = False) -> CostTable:
    """Read tables, and join them as `join_tables` does.

    Raises:
        PlanishError: a file cannot be read; or they do not fit together, and which.
    """
    return join_tables({str(file): read_costs(file) for file in files}, objective, described=described)


def join_tables(tables: Mapping[str, CostTable], objective: str, *, described: bool = False) -> CostTable:
    """Put functions of several tables into one, with the lists that all of them have, in alphabetical order.

    Of a function that several tables have, the first one's row is taken; but where one of them has it in a
    package that is held back, that one's is.

    Args:
        tables: by names for messages, as of their files.
        objective: what is counted; others are left out.
        described: all have to describe functions by the same features.

    Returns:
        The whole; without features, where not all describe functions alike.

    Raises:
        PlanishError: a table lacks the objective; they are of two LLVMs or machines, or describe functions
            by other features; a package is for training here and held back there; there is no list that
            all have.
    """
    _require_alike(tables, objective, {**_KIND, **(_DESCRIBED if described else {})})
    splits = _splits(tables)
    every = [table.columns for table in tables.values()]
    lists = sorted(set(every[0].lists).intersection(*(columns.lists for columns in every)))
    if not lists:
        raise PlanishError(f"{' and '.join(tables)} have no list in common", "Leave some of them out.")
    alike = len({(columns.features, columns.version) for columns in every}) == 1
    parts = [_narrowed(table, objective, lists, described=alike) for table in tables.values()]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in BY_FUNCTION}
    return _once(replace(parts[0], **arrays, splits=splits))


def _require_alike(tables: Mapping[str, CostTable], objective: str, kinds: Mapping[str, str]) -> None:
    (one, first), *_ = tables.items()
    for name, table in tables.items():
        if objective not in table.columns.objectives:
            raise unknown(f"{name} lacks the objective", objective, table.columns.objectives)
        for kind, word in kinds.items():
            mine, its = getattr(table.columns, kind), getattr(first.columns, kind)
            if mine != its:
                values = "" if kind == "features" else f": {mine} and {its}"
                raise PlanishError(f"{name} and {one} differ in {word}{values}", "Leave one of them out.")


def _splits(tables: Mapping[str, CostTable]) -> dict[str, str]:
    splits = dict[str, str]()
    for name, table in tables.items():
        for package, split in table.splits.items():
            if splits.setdefault(package, split) != split:
                what = f"{name} has package {package} for {split}, and another has it for {splits[package]}"
                raise PlanishError(what, "Leave one of them out.")
    return splits


def _once(table: CostTable) -> CostTable:
    """Give each function once."""
    learnt = np.array([table.splits[package] == "train" for package in table.packages.tolist()], bool)
    order = np.argsort(learnt, kind="stable")
    first = np.unique(table.identities[order], return_index=True)[1]
    return table.take(np.sort(order[first]))


def _narrowed(
    table: CostTable, objective: str, lists: Sequence[tuple[str, ...]], *, described: bool
) -> CostTable:
    columns, place = table.columns, table.columns.objectives.index(objective)
    costs = table.costs[:, [columns.lists.index(passes) for passes in lists]]
    arrays = {"unoptimised": table.unoptimised, "baseline": table.baseline, "costs": costs}
    one = {name: array[..., place : place + 1] for name, array in arrays.items()}
    kept = len(columns.features) if described else 0
    columns = replace(columns, objectives=(objective,), lists=tuple(lists), features=columns.features[:kept])
    return replace(table, columns=columns, features=table.features[..., :kept], **one)
