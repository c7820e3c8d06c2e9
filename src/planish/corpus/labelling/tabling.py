"""The cost of every list of the coresets on each of many functions, into one file that can be added to."""

from __future__ import annotations

import time
from collections.abc import Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from planish.corpus.folder import ours
from planish.corpus.labelling.cost_rows import CostRows
from planish.corpus.labelling.drawing import draw_in_turns
from planish.corpus.labelling.label_plan import OBJECTIVES, LabelBench, Listener
from planish.corpus.labelling.ranking import Passes
from planish.corpus.labelling.tally import Tally
from planish.corpus.labelling.widening import Widened
from planish.learn.alike_tables import EVERYTHING, require_alike
from planish.learn.cost_table import Columns, CostRow, CostTable, empty_table, read_costs, write_costs
from planish.sandbox import forked

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
    listener: Listener,
    without: Sequence[str] = (),
    *,
    objectives: Sequence[str] = OBJECTIVES,
    besides: Set[str] = frozenset(),
    widened: CostTable | None = None,
) -> CostTable:
    """Write what each list costs on functions of a corpus, or add functions to what is written.

    Functions are drawn in turns from all packages: wherever it is broken off, each has its share. What the
    file holds is not done again.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        path: the file.
        bench: what with; its plan tells splits, how many functions, and processes.
        lists: what is run.
        listener: is told how it goes.
        without: files that are left out, as `draw_in_turns` takes them.
        objectives: what is counted.
        besides: identities that are left out, as where another file has them; they count as drawn.
        widened: a table of these objectives. Its functions alone are run, by the lists that it lacks, and the
            file has its lists too, with its costs.

    Returns:
        The whole table.

    Raises:
        PlanishError: there is no corpus; the file cannot be written, is in use or damaged, or has other
            columns; a function costs otherwise after -Oz than in the table that is widened.
    """
    wide = Widened(widened) if widened else None
    work, plan = CostRows(bench, wide.lacks(lists) if wide else lists, objectives), bench.plan
    with ours(path.parent):
        file = _File(path, _known(path, wide.columns(work.columns) if wide else work.columns))
        held = set[str](file.table.identities.tolist())
        rows, known = draw_in_turns(corpus, plan.splits, plan.functions, held | besides, without)
        rows = [row for row in rows if wide is None or row.identity in wide.places]
        tally = Tally("costing", known + len(rows), known, known)
        try:
            with closing(
                forked(rows, work, CostRow, plan.processes, at_once=bench.at_once(len(lists)))
            ) as over:
                for one in over:
                    one.check()
                    if one.answer:
                        file.add(wide.row(one.answer) if wide else one.answer)
                    tally.add(*_gain(one.answer), len(one.refused))
                    listener(tally.progress)
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
    """Give what the best list saves, and what -Oz leaves."""
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
        for place, name in enumerate(table.columns.objectives):
            best = some.saved(name).max(axis=1)
            row[f"{name} saved"] = round(float(best.sum() / some.baseline[:, place].sum()), 4)
            row[f"{name} improved"] = round(float((best > 0).mean()), 4)
        found.append(row)
    return found
