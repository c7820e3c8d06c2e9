"""Tables of the cost of every list of the coresets on each of many functions."""

from __future__ import annotations

import hashlib
import platform
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

import numpy as np

from planish.core import Executor, Measured, Outcome, evaluate_in_order
from planish.levels.llvm.bindings.protocol import IRError, Module
from planish.levels.llvm.ir.features import FEATURES, VERSION, autophase
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.models.ir_text import lexemes
from planish.sandbox.fork_pool import Watchdog, forked
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row, ours
from planish.train.cost_tables import (
    COUNTED,
    EVERYTHING,
    FAILED,
    Columns,
    CostRow,
    CostTable,
    empty_table,
    read_costs,
    require_alike,
    require_same_baseline,
    write_costs,
)
from planish.train.labeling.function_search import FunctionExecutor, Passes, Values, candidates_of
from planish.train.labeling.label_plan import OBJECTIVES, LabelBench, LabelStatus
from planish.tuning.progress import ProgressDisplay


def draw_in_turns(
    corpus: Path, splits: Sequence[str], count: int, known: Set[str], without: Sequence[str] = ()
) -> tuple[list[Row], int]:
    """Draw functions round-robin from all packages, those of a package by a hash of their identity.

    However few of them are taken, all packages and sizes have their share; and more of them begin with the
    same ones.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        splits: what of it.
        count: how many, with known ones; 0: all.
        known: identities that are not drawn again.
        without: files that are left out, as patterns of PACKAGE/PATH: copies of programs to be held back.

    Returns:
        The functions that are not known, in the order of drawing, and how many of those drawn are known.
    """
    packages: dict[str, list[tuple[str, str]]] = defaultdict(list)
    # The corpus is read twice: what is drawn is held, and what is not would be much more.
    for row in _rows(corpus, splits, without):
        share = hashlib.sha256(row.identity.encode()).hexdigest()
        packages[row.package].append((share, row.identity))
    turns = [(turn, *each) for some in packages.values() for turn, each in enumerate(sorted(some))]
    drawn = [identity for _, _, identity in sorted(turns)][: count or None]
    order = {identity: index for index, identity in enumerate(drawn) if identity not in known}
    rows = [row for row in _rows(corpus, splits, without) if row.identity in order]
    return sorted(rows, key=lambda row: order[row.identity]), len(drawn) - len(order)


def _rows(corpus: Path, splits: Sequence[str], without: Sequence[str]) -> Iterator[Row]:
    for split in splits:
        for row in read_corpus(corpus, split):
            if not any(fnmatch(f"{row.package}/{row.file}", pattern) for pattern in without):
                yield row


@dataclass(frozen=True)
class CostRows:
    """Runs lists on functions, within forked children, for what each of them costs.

    Args:
        bench: what with.
        lists: the lists.
        objectives: what is counted.
    """

    bench: LabelBench
    lists: Sequence[Passes]
    objectives: Sequence[str] = OBJECTIVES

    @cached_property
    def columns(self) -> Columns:
        """Return the names of the columns of the rows that this makes."""
        llvm, machine = self.bench.bindings.version, platform.machine()
        return Columns(llvm, machine, tuple(self.objectives), tuple(self.lists), FEATURES, VERSION)

    def __call__(self, row: Row, watchdog: Watchdog) -> CostRow | None:
        """Return a function's row; None where LLVM cannot read it, or it has no code even after -Oz."""
        baseline: dict[str, float] = {}

        def matters(_: Passes, values: Values) -> bool:
            return any(values[name] < cost for name, cost in baseline.items())

        try:
            executor = FunctionExecutor(self.bench.bindings, row.ir, self.objectives, matters, watchdog)
        except IRError:
            return None
        with closing(executor):
            first = _outcomes(executor, [(), self.bench.baseline])
            unoptimized, oz = map(self._counts, first)
            if unoptimized is None or oz is None:
                return None
            baseline |= dict(zip(self.objectives, oz, strict=True))
            costs = list(map(self._counts, _outcomes(executor, self.lists)))
            small = small_text(executor.module, self.bench.baseline)
        features = np.stack([autophase(row.ir), autophase(small)])
        names = row.identity, row.package, row.split
        return CostRow(*names, unoptimized, oz, costs, features, count_lexemes(row.ir, small))

    def _counts(self, outcome: Outcome) -> list[int] | None:
        if not isinstance(outcome, Measured):
            return None
        return [int(outcome.values[name]) for name in self.objectives]


def small_text(module: Module, baseline: Passes) -> str:
    """Return a module's text after -Oz; the module stays as it is."""
    with closing(module.clone()) as small:
        small.run(print_pipeline(baseline))
        return small.text()


def count_lexemes(before: str, after: str) -> tuple[int, int]:
    """Count what a function is written with, before and after -Oz: a text's tokens are at least as many."""
    return len(lexemes(before)), len(lexemes(after))


def _outcomes(executor: Executor, lists: Sequence[Passes]) -> list[Outcome]:
    return [each.outcome for each in evaluate_in_order(executor, candidates_of(lists)) if each]


def coreset_lists(objectives: Sequence[str] = OBJECTIVES) -> list[Passes]:
    """Return the lists of the coresets of some objectives, each once."""
    return list(dict.fromkeys(passes for name in objectives for passes in load_coreset(name)))


@dataclass(frozen=True)
class Widened:
    """Puts what lists cost beside what a table has of the same functions.

    Args:
        table: of the same objectives as the rows.
    """

    table: CostTable

    @cached_property
    def index_of(self) -> dict[str, int]:
        """Rows of functions in the table, by identity."""
        return {identity: index for index, identity in enumerate(self.table.identities.tolist())}

    def missing(self, lists: Sequence[Passes]) -> list[Passes]:
        """Return the lists that the table does not have."""
        return [passes for passes in lists if passes not in self.table.columns.lists]

    def columns(self, more: Columns) -> Columns:
        """Return the columns of widened rows: the table's lists, then those of the rows.

        Raises:
            PlanishError: the table is of another LLVM or machine, or counts other things.
        """
        held, hint = self.table.columns, "Make another: planish corpus costs."
        kinds = (*COUNTED, "objectives")
        require_alike(("the table that is widened", held), ("what is run now", more), kinds, hint)
        return replace(more, lists=(*held.lists, *more.lists))

    def row(self, more: CostRow) -> CostRow:
        """Return a function's row, with the table's costs before its own.

        Raises:
            PlanishError: it does not cost after -Oz what the table says: the two are of different tools.
        """
        index = self.index_of[more.identity]
        require_same_baseline(more.identity, self.table.baseline[index].tolist(), more.baseline)
        known = [None if costs[0] == FAILED else costs for costs in self.table.costs[index].tolist()]
        return replace(more, costs=[*known, *more.costs])


_SAVED_EVERY_S = 60.0


@dataclass
class _File:
    """A table that is written now and then."""

    path: Path
    table: CostTable
    fresh: list[CostRow] = field(default_factory=list[CostRow])
    written: float = field(default_factory=time.monotonic)

    def add(self, row: CostRow) -> None:
        self.fresh.append(row)
        if time.monotonic() > self.written + _SAVED_EVERY_S:
            self.write()

    def write(self) -> None:
        self.table, self.fresh = self.table.with_rows(self.fresh), []
        write_costs(self.table, self.path)
        self.written = time.monotonic()


def table_corpus(
    corpus: Path,
    path: Path,
    bench: LabelBench,
    lists: Sequence[Passes],
    display: ProgressDisplay,
    without: Sequence[str] = (),
    *,
    objectives: Sequence[str] = OBJECTIVES,
    besides: Set[str] = frozenset(),
    widened: CostTable | None = None,
    make_rows: type[CostRows] = CostRows,
) -> CostTable:
    """Write what each list costs on functions of a corpus, or add functions to what is written.

    Functions are drawn round-robin from all packages: wherever it is broken off, each has its share. What the
    file holds is not done again.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        path: the file.
        bench: what with; its plan has splits, how many functions, and processes.
        lists: what is run.
        display: shows the progress.
        without: files that are left out, as `draw_in_turns` takes them.
        objectives: what is counted.
        besides: identities that are left out, as where another file has them; they count as drawn.
        widened: a table of these objectives. Its functions alone are run, by the lists that it lacks, and the
            file has its lists too, with its costs.
        make_rows: runs the lists.

    Returns:
        The whole table.

    Raises:
        PlanishError: there is no corpus; the file cannot be written, is in use or damaged, or has other
            columns; a function costs otherwise after -Oz than in the table that is widened.
    """
    wide = Widened(widened) if widened else None
    work, plan = make_rows(bench, wide.missing(lists) if wide else lists, objectives), bench.plan
    with ours(path.parent):
        file = _File(path, _known(path, wide.columns(work.columns) if wide else work.columns))
        held = set[str](file.table.identities.tolist())
        rows, known = draw_in_turns(corpus, plan.splits, plan.functions, held | besides, without)
        rows = [row for row in rows if wide is None or row.identity in wide.index_of]
        status = LabelStatus("costing", known + len(rows), known)
        display.begin(status)
        try:
            with closing(
                forked(rows, work, CostRow, plan.processes, at_once=bench.at_once(len(lists)))
            ) as over:
                for one in over:
                    one.check()
                    if one.answer:
                        file.add(wide.row(one.answer) if wide else one.answer)
                    status.add(*_gain(one.answer), len(one.refused))
                    display.update(at_once=status.done == status.total)
        finally:
            file.write()
        return file.table


def _known(path: Path, columns: Columns) -> CostTable:
    if not path.exists():
        return empty_table(columns)
    table = read_costs(path)
    now = ("what is run now", columns)
    require_alike((str(path), table.columns), now, EVERYTHING, "Write into another file.")
    return table


def _gain(row: CostRow | None) -> tuple[int, int]:
    """Return the savings of the best list, and the cost after -Oz."""
    if row is None:
        return 0, 0
    least = min((each[0] for each in row.costs if each), default=row.baseline[0])
    return max(0, row.baseline[0] - least), row.baseline[0]


def describe_table(table: CostTable) -> list[dict[str, str | int | float]]:
    """Count by split: functions, packages, what the best lists save over -Oz, and how many they improve."""
    found: list[dict[str, str | int | float]] = []
    for split in sorted(set(table.splits.values())):
        some = table.split(split)
        row: dict[str, str | int | float] = {
            "split": split,
            "functions": len(some),
            "packages": len(set(some.packages.tolist())),
        }
        for index, name in enumerate(table.columns.objectives):
            best = some.saved(name).max(axis=1)
            row[f"{name} saved"] = round(float(best.sum() / some.baseline[:, index].sum()), 4)
            row[f"{name} improved"] = round(float((best > 0).mean()), 4)
        found.append(row)
    return found
