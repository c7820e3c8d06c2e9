"""Tables of what pass lists cost, of several files, as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from planish.core import PlanishError, unknown
from planish.learn.alike_tables import COUNTED, DESCRIBED, require_alike, require_same_baseline
from planish.learn.cost_table import BY_FUNCTION, CostTable, read_costs

UNKNOWN = -2
"""The cost of a list that a table lacks, until another table tells it."""
Passes = tuple[str, ...]


def read_joined(
    files: Sequence[Path], objective: str, lists: Sequence[Passes] | None = None, *, described: bool = False
) -> CostTable:
    """Read tables, and join them as `join_tables` does.

    Raises:
        PlanishError: a file cannot be read; or they do not fit together, and which.
    """
    tables = {str(file): read_costs(file) for file in files}
    return join_tables(tables, objective, lists, described=described)


def join_tables(
    tables: Mapping[str, CostTable],
    objective: str,
    lists: Sequence[Passes] | None = None,
    *,
    described: bool = False,
) -> CostTable:
    """Put functions of several tables into one.

    Of a function that several tables have, the first one's row is taken; but where one of them has it in a
    package that is held back, that one's is. What the row lacks of the lists, the other tables tell.

    Args:
        tables: by names for messages, as of their files.
        objective: what is counted; others are left out.
        lists: that are wanted, whichever table has them: functions of which the cost of one is not known are
            left out. None for those that all tables have, in alphabetical order.
        described: all have to describe functions by the same features.

    Returns:
        The whole; without features, where not all describe functions alike.

    Raises:
        PlanishError: a table lacks the objective; they are of two LLVMs or machines, or describe functions
            by other features; a package is for training here and held back there; there is no list that
            all have, or no function with all lists that are wanted; a function costs otherwise after -Oz in
            a table that tells what another one lacks.
    """
    (one, first), *_ = tables.items()
    for name, table in tables.items():
        if objective not in table.columns.objectives:
            raise unknown(f"{name} lacks the objective", objective, table.columns.objectives)
        kinds = (*COUNTED, *(DESCRIBED if described else ()))
        require_alike((name, table.columns), (one, first.columns), kinds)
    splits = _splits(tables)
    every = [table.columns for table in tables.values()]
    chosen = _common(tables) if lists is None else lists
    alike = len({(columns.features, columns.version) for columns in every}) == 1
    parts = [_narrowed(table, objective, chosen, described=alike) for table in tables.values()]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in BY_FUNCTION}
    whole = _once(replace(parts[0], **arrays, splits=splits))
    if len(whole) or lists is None:
        return whole
    what = f"no function has the costs of all {len(chosen)} wanted lists in {' and '.join(tables)}"
    raise PlanishError(what, "Run them: planish corpus costs --widen TABLE.")


def _common(tables: Mapping[str, CostTable]) -> Sequence[Passes]:
    first, *others = (table.columns.lists for table in tables.values())
    lists = sorted(set(first).intersection(*others))
    if not lists:
        raise PlanishError(f"{' and '.join(tables)} have no list in common", "Leave some of them out.")
    return lists


def _splits(tables: Mapping[str, CostTable]) -> dict[str, str]:
    splits = dict[str, str]()
    for name, table in tables.items():
        for package, split in table.splits.items():
            if splits.setdefault(package, split) != split:
                what = f"{name} has package {package} for {split}, and another has it for {splits[package]}"
                raise PlanishError(what, "Leave one of them out.")
    return splits


def _once(table: CostTable) -> CostTable:
    """Give each function once, and those alone whose costs are all known."""
    learnt = np.array([table.splits[package] == "train" for package in table.packages.tolist()], bool)
    order = np.argsort(learnt, kind="stable")
    _, first, place = np.unique(table.identities[order], return_index=True, return_inverse=True)
    costs = table.costs.copy()
    for row, kept in zip(order.tolist(), order[first[place]].tolist(), strict=True):
        lacking = (costs[kept] == UNKNOWN) & (table.costs[row] != UNKNOWN)
        if lacking.any():
            one, other = table.baseline[kept].tolist(), table.baseline[row].tolist()
            require_same_baseline(str(table.identities[kept]), one, other)
            costs[kept] = np.where(lacking, table.costs[row], costs[kept])
    whole = replace(table, costs=costs).take(np.sort(order[first]))
    return whole.take((whole.costs != UNKNOWN).all(axis=(1, 2)))


def _narrowed(table: CostTable, objective: str, lists: Sequence[Passes], *, described: bool) -> CostTable:
    columns, place = table.columns, table.columns.objectives.index(objective)
    own = {passes: number for number, passes in enumerate(columns.lists)}
    unknown_cost = np.full_like(table.costs[:, 0], UNKNOWN)
    known = [table.costs[:, own[passes]] if passes in own else unknown_cost for passes in lists]
    arrays = {
        "unoptimised": table.unoptimised,
        "baseline": table.baseline,
        "costs": np.stack(known, axis=1),
    }
    one = {name: array[..., place : place + 1] for name, array in arrays.items()}
    kept = len(columns.features) if described else 0
    columns = replace(columns, objectives=(objective,), lists=tuple(lists), features=columns.features[:kept])
    return replace(table, columns=columns, features=table.features[..., :kept], **one)
