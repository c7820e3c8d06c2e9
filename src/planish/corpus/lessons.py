"""What a policy over pass lists learns from: functions of a corpus, and what the lists cost on them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.corpus.reading import read_corpus
from planish.learn.labels import CostTable
from planish.learn.language import Lessons
from planish.llvm.backend import Backend, IRError, open_backend
from planish.llvm.features.instructions import SIZES, CutWarning, instruction_schema, observe_module
from planish.llvm.functions.attributes import for_size
from planish.llvm.passes import elements, oz_of, print_pipeline

HELD = 8
"""Every eighth package tells when to stop, and is not learnt from."""


def read_list_lessons(
    corpus: Path, table: CostTable, objective: str, lists: Sequence[tuple[str, ...]], split: str = "train"
) -> Lessons:
    """Read functions before and after -Oz, with what each list saves on them.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        table: what lists cost on functions.
        objective: what is to be made less.
        lists: some of the table's, in the order in which all are run.
        split: of the packages to be read.

    Raises:
        PlanishError: there is no corpus; the table is of another LLVM, lacks a list or an objective, or has
            none of the corpus' functions.
    """
    columns, backend = table.columns, open_backend()
    if backend.version != columns.llvm:
        what = f"the labels are of LLVM {columns.llvm}, and this is {backend.version}"
        raise PlanishError(what, "Make others: planish corpus costs CORPUS FILE.")
    if objective not in columns.objectives or not {*lists} <= {*columns.lists}:
        what = f"the labels lack {objective if objective not in columns.objectives else 'some lists'}"
        raise PlanishError(what, "Make others: planish corpus costs CORPUS FILE.")
    place = {name: row for row, name in enumerate(table.identities.tolist())}
    rows, observed = list[int](), list[NDArray[np.int16]]()
    for row in read_corpus(corpus, split):
        found = _observed(backend, row.ir) if row.identity in place else None
        if found is not None:
            rows.append(place[row.identity])
            observed.append(found)
    if not rows:
        raise PlanishError(
            f"the labels are of no function of {corpus}", "planish corpus costs CORPUS FILE makes them."
        )
    some = table.take(np.array(rows))
    baseline = some.baseline[:, columns.objectives.index(objective)].astype(np.float32)
    saved = some.saved(objective)[:, [columns.lists.index(passes) for passes in lists]]
    shares = (saved / np.maximum(baseline, 1)[:, None]).astype(np.float32)
    schema = instruction_schema(objective)
    return Lessons(
        np.stack(observed), shares, baseline, some.packages, schema, tuple(SIZES.values()), tuple(lists)
    )


def held_back(packages: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Tell which functions are of a package that tells when to stop."""
    return np.isin(packages, np.unique(packages)[::HELD])


def _observed(backend: Backend, ir: str) -> NDArray[np.int16] | None:
    oz = oz_of({*elements()})
    assert oz is not None
    try:
        module = backend.parse(for_size(ir))
    except IRError:
        return None
    try:
        module.run(print_pipeline((oz,)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CutWarning)
            return observe_module(ir, module.text()).astype(np.int16)
    finally:
        module.close()
