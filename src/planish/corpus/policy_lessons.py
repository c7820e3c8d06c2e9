"""What a policy over pass lists learns from: functions of a corpus, and what the lists cost on them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.corpus.corpus_reader import read_corpus
from planish.corpus.row import Row
from planish.learn.cost_table import CostTable
from planish.learn.language import Lessons
from planish.llvm.backend import Backend, IRError, open_backend
from planish.llvm.ir.attributes import for_size
from planish.llvm.ir.instruction_rows import SIZES, CutWarning, instruction_schema, observe_module
from planish.llvm.passes import elements, oz_of, print_pipeline

HELD = 8
"""Every eighth package tells when to stop, and is not learnt from."""


def read_list_lessons(
    corpus: Path,
    tables: Sequence[CostTable],
    objective: str,
    lists: Sequence[tuple[str, ...]],
    split: str = "train",
) -> Lessons:
    """Read functions before and after -Oz, with what each list saves on them.

    A `CutWarning` tells how many are longer than what is observed.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        tables: what lists cost on functions; no function is in two of them.
        objective: what is to be made less.
        lists: some of each table's, in the order in which all are run.
        split: of the packages to be read.

    Raises:
        PlanishError: there is no corpus; a table is of another LLVM, lacks a list or the objective, or they
            have none of the corpus' functions.
    """
    backend = open_backend()
    known: dict[str, tuple[NDArray[np.float32], float]] = {}
    for table in tables:
        known |= labels_of(table, objective, lists, backend.version)
    rows, observed, cut = list[Row](), list[NDArray[np.int16]](), 0
    for row in read_corpus(corpus, split):
        found = _observed(backend, row.ir) if row.identity in known else None
        if found is not None:
            rows.append(row)
            observed.append(found[0])
            cut += found[1]
    if not rows:
        what = f"the labels are of no function of {corpus}"
        raise PlanishError(what, "planish corpus costs CORPUS FILE makes them.")
    if cut:
        what = f"of {cut:,} of the {len(rows):,} functions that are read, the end is left out"
        warnings.warn(f"{what}: they are longer than what is observed", CutWarning, stacklevel=2)
    labels = [known[row.identity] for row in rows]
    return Lessons(
        [row.identity for row in rows],
        np.stack(observed),
        np.stack([shares for shares, _ in labels]),
        np.array([baseline for _, baseline in labels], np.float32),
        np.array([row.package for row in rows]),
        instruction_schema(objective),
        tuple(SIZES.values()),
        tuple(lists),
    )


def labels_of(
    table: CostTable, objective: str, lists: Sequence[tuple[str, ...]], llvm: str
) -> Mapping[str, tuple[NDArray[np.float32], float]]:
    """Give what each list saves on each function, as a share of what it costs after -Oz, and that cost."""
    columns, hint = table.columns, "Make others: planish corpus costs CORPUS FILE."
    if columns.llvm != llvm:
        raise PlanishError(f"the labels are of LLVM {columns.llvm}, and this is {llvm}", hint)
    if objective not in columns.objectives or not {*lists} <= {*columns.lists}:
        lacks = "some lists" if objective in columns.objectives else objective
        raise PlanishError(f"the labels lack {lacks}", hint)
    baseline = table.baseline[:, columns.objectives.index(objective)]
    saved = table.saved(objective)[:, [columns.lists.index(passes) for passes in lists]]
    shares = (saved / np.maximum(baseline, 1)[:, None]).astype(np.float32)
    return dict(zip(table.identities.tolist(), zip(shares, baseline.tolist(), strict=True), strict=True))


def held_back(packages: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Tell which functions are of a package that tells when to stop; none where there is but one package."""
    names = np.unique(packages)
    return np.isin(packages, names[::HELD] if len(names) > 1 else [])


def _observed(backend: Backend, ir: str) -> tuple[NDArray[np.int16], bool] | None:
    """Give what is observed of a function, and whether its end is left out; None where it cannot be read."""
    oz = oz_of({*elements()})
    assert oz is not None
    try:
        module = backend.parse(for_size(ir))
    except IRError:
        return None
    try:
        module.run(print_pipeline((oz,)))
        # Counted: a line for each function would hide all others.
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", CutWarning)
            return observe_module(ir, module.text()).astype(np.int16), bool(told)
    finally:
        module.close()
