"""Training samples of policies and language models, made from a labelled corpus."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.levels.llvm.backend import Backend, IRError, open_backend
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.instruction_rows import SIZES, CutWarning, instruction_schema, observe_module
from planish.levels.llvm.passes import elements, oz_of, print_pipeline
from planish.levels.llvm.passes.compiled_lists import Passes, compile_lists
from planish.models.ir_text import (
    ALL,
    Answer,
    Tasks,
    Tokenizer,
    answer_tokens,
    question,
)
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row
from planish.train.cost_tables import CostTable
from planish.train.samples import ListDataset, Sample

HELD = 8
"""Every eighth package is held back from training, and decides when to stop."""


def read_list_dataset(
    corpus: Path,
    tables: Sequence[CostTable],
    objective: str,
    lists: Sequence[tuple[str, ...]],
    split: str = "train",
) -> ListDataset:
    """Read functions before and after -Oz, with what each list saves on them.

    A `CutWarning` says how many are longer than what is observed.

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
    return ListDataset(
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
    """Return what each list saves on each function, as a share of what it costs after -Oz, and that cost."""
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
    """Return which functions are held back, by package; none where there is but one package."""
    names = np.unique(packages)
    return np.isin(packages, names[::HELD] if len(names) > 1 else [])


def _observed(backend: Backend, ir: str) -> tuple[NDArray[np.int16], bool] | None:
    """Return the observation of a function, and whether it was truncated; None where it cannot be read."""
    oz = oz_of({*elements()})
    assert oz is not None
    try:
        module = backend.parse(for_size(ir))
    except IRError:
        return None
    try:
        module.run(print_pipeline((oz,)))
        # Counted: a line for each function would hide all others.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CutWarning)
            return observe_module(ir, module.text()).astype(np.int16), bool(caught)
    finally:
        module.close()


@dataclass(frozen=True)
class TextExample:
    """A function, and the answer that is expected of a language model.

    Args:
        identity: the hash of its IR.
        package: where it is from.
        ir: it.
        answer: the best list that is known, what it makes of the function, and counts.
        oz: instructions after -Oz, whatever its list makes less.
    """

    identity: str
    package: str
    ir: str
    answer: Answer
    oz: int


def read_text_examples(
    corpus: Path, tables: Sequence[CostTable], objective: str, lists: Sequence[Passes], split: str | None
) -> list[TextExample]:
    """Read functions that have labels, and compile each with the best of its lists; else with -Oz.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        tables: what lists cost on functions.
        objective: what is made less.
        lists: some of each table's.
        split: of the packages to be read; None reads all.

    Raises:
        PlanishError: there is no corpus, or the tables do not fit it.
    """
    backend = open_backend()
    known: dict[str, tuple[np.ndarray, float]] = {}
    for table in tables:
        known |= labels_of(table, objective, lists, backend.version)
    rows = [row for row in read_corpus(corpus, split) if row.identity in known]
    if not rows:
        what = f"the labels are of no function of {corpus}"
        raise PlanishError(what, "planish corpus costs CORPUS FILE makes them.")
    best = [best_list(known[row.identity][0], lists) for row in rows]
    made = compile_lists(backend, [(row.ir, passes) for row, passes in zip(rows, best, strict=True)])
    baseline = [int(known[row.identity][1]) for row in rows]
    if objective != "instructions":
        # The labels have another unit, and a model counts in instructions.
        small = compile_lists(backend, [(row.ir, (_oz(),)) for row in rows])
        baseline = [0 if one is None else one.instructions for one in small]
    return [
        TextExample(
            row.identity, row.package, row.ir,
            Answer(passes, row.instructions, one.instructions, one.code), oz,
        )
        for row, passes, one, oz in zip(rows, best, made, baseline, strict=True)
        if one is not None and oz
    ]  # fmt: skip


def best_list(shares: np.ndarray, lists: Sequence[Passes]) -> Passes:
    """Return the first of the lists that save most; -Oz's where none saves."""
    return lists[int(shares.argmax())] if shares.max() > 0 else (_oz(),)


def _oz() -> str:
    oz = oz_of({*elements()})
    assert oz is not None
    return oz


def text_samples(
    tokenizer: Tokenizer, examples: Sequence[TextExample], context: int, tasks: Tasks = ALL
) -> list[Sample]:
    """Write examples as prompts and answers (figure 4.1); those that are too long are left out (4.3.1)."""
    found = list[Sample]()
    for example in examples:
        asked = question(tokenizer, example.ir)
        whole = [*asked, *answer_tokens(tokenizer, example.answer, tasks)]
        if len(whole) <= context:
            found.append(Sample(np.array(whole, np.int32), len(asked)))
    return found
