"""Tables of what pass lists cost, of several files, as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planish.core import PlanishError
from planish.learn.cost_table import BY_FUNCTION, CostTable


def join_tables(tables: Sequence[CostTable], objective: str) -> CostTable:
    """Put functions of several tables into one, with the lists that all of them have, in alphabetical order.

    Args:
        tables: no function is in two of them.
        objective: what is counted; others are left out.

    Returns:
        The whole; without features, where not all describe functions alike.

    Raises:
        PlanishError: a table lacks the objective; they are of two LLVMs or machines; there is no list that
            all have.
    """
    first = tables[0].columns
    for table in tables:
        if objective not in table.columns.objectives:
            raise PlanishError(f"the labels lack {objective}", "planish corpus costs CORPUS FILE makes them.")
        for name in ("llvm", "machine"):
            if getattr(table.columns, name) != getattr(first, name):
                raise PlanishError(
                    f"the labels are of two kinds, which differ in {name}", "Name one of them."
                )
    lists = sorted(set(first.lists).intersection(*(table.columns.lists for table in tables)))
    if not lists:
        raise PlanishError("the labels have no list in common", "Name one of them.")
    kinds = {(table.columns.features, table.columns.version) for table in tables}
    parts = [_narrowed(table, objective, lists, described=len(kinds) == 1) for table in tables]
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in BY_FUNCTION}
    splits = {package: split for part in parts for package, split in part.splits.items()}
    return replace(parts[0], **whole, splits=splits)


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
