"""Costs of all lists of the coresets, on functions of the corpus that comes with planish."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from levels.llvm.faulty import faulty
from planish.core import PlanishError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Module, PassError
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.features import autophase
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.models.ir_text import lexemes
from planish.sandbox.fork_pool import Watchdog
from planish.train.corpus.reader import SAMPLE, read_corpus
from planish.train.corpus.shards import Row
from planish.train.cost_tables import FAILED, CostRow, read_costs
from planish.train.labeling.label_plan import LabelBench, LabelPlan, bench
from planish.train.labeling.tabling import CostRows, draw_in_turns, table_corpus
from planish.tuning.progress import ProgressDisplay
from train.corpus.sources import Recording

LISTS = [("sroa<modify-cfg>", "simplifycfg"), ("mergereturn", "default<Oz>"), ("default<Oz>", "gvn-sink")]
OZ = ("default<Oz>",)
QUIET = ProgressDisplay(show=False)


@pytest.fixture(scope="module")
def made() -> LabelBench:
    return bench(LabelPlan(functions=6, splits=("train", "test"), jobs=2))


@pytest.fixture(scope="module")
def file(made: LabelBench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("costs") / "t.npz"
    table_corpus(SAMPLE, path, made, LISTS, QUIET)
    return path


class NoRows(CostRows):
    """Runs nothing."""

    def __call__(self, *_: object) -> CostRow | None:
        raise AssertionError


def _more(
    path: Path, made: LabelBench, functions: int, make_rows: type[CostRows] = CostRows
) -> list[tuple[int, int, int | None]]:
    display = Recording()
    plan = LabelPlan(functions=functions, splits=made.plan.splits, jobs=2)
    table_corpus(SAMPLE, path, LabelBench(plan, made.bindings), LISTS, display, make_rows=make_rows)
    return display.seen


def test_a_table_holds_what_lists_give(file: Path) -> None:
    table, rows = read_costs(file), {row.identity: row for row in read_corpus()}

    assert len(table) == 6
    assert set(table.splits.values()) == {"train", "test"}
    for place, identity in enumerate(table.identities.tolist()):
        row = rows[identity]
        assert (table.packages[place], table.splits[row.package]) == (row.package, row.split)
        with closing(open_bindings().parse(for_size(row.ir))) as original:
            counts = [original.instructions(), original.text_bytes()]
            assert table.unoptimized[place].tolist() == counts
            known = zip([OZ, *LISTS], [table.baseline[place], *table.costs[place]], strict=True)
            for passes, costs in known:
                with closing(original.clone()) as module:
                    module.run(print_pipeline(passes))
                    assert costs.tolist() == [module.instructions(), module.text_bytes()]
                    if passes == OZ:
                        features = [autophase(row.ir), autophase(module.text())]
                        assert np.array_equal(table.features[place], features)
                        counts = [len(lexemes(row.ir)), len(lexemes(module.text()))]
                        assert table.lexemes[place].tolist() == counts


def test_what_is_known_is_not_run_again(file: Path, made: LabelBench, tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    path.write_bytes(file.read_bytes())
    assert _more(path, made, 9) == [(n, 6, 9) for n in (7, 8, 9)]
    whole = path.read_bytes()

    assert _more(path, made, 9, NoRows) == []
    assert path.read_bytes() == whole


def test_what_is_done_is_kept_where_it_is_broken_off(made: LabelBench, tmp_path: Path) -> None:
    class Interrupting(Recording):
        def update(self, *, at_once: bool = False) -> None:
            super().update(at_once=at_once)
            if self.status.done == 2:
                raise KeyboardInterrupt

    path = tmp_path / "t.npz"
    with pytest.raises(KeyboardInterrupt):
        table_corpus(SAMPLE, path, made, LISTS, Interrupting())
    assert len(read_costs(path)) == 2


def test_a_list_that_fails_has_no_cost(file: Path, made: LabelBench, tmp_path: Path) -> None:
    def refuse(module: Module, pipeline: str) -> None:
        if "mergereturn" in pipeline:
            raise PassError("refused")
        type(module).run(module, pipeline)

    refusing = LabelBench(made.plan, faulty(made.bindings, {"run": refuse}))
    table = table_corpus(SAMPLE, tmp_path / "t.npz", refusing, LISTS, QUIET)

    assert set(table.costs[:, 1].ravel().tolist()) == {FAILED}
    assert np.array_equal(table.costs[:, (0, 2)], read_costs(file).costs[:, (0, 2)])


def test_one_objective_is_counted_of_functions_that_another_table_lacks(
    file: Path, made: LabelBench, tmp_path: Path
) -> None:
    whole = read_costs(file)
    besides = set(whole.identities[:4].tolist())
    path, objectives = tmp_path / "t.npz", ("instructions",)
    table = table_corpus(SAMPLE, path, made, LISTS, QUIET, objectives=objectives, besides=besides)
    assert table.columns.objectives == objectives
    assert table.identities.tolist() == whole.identities[4:].tolist()
    assert np.array_equal(table.costs, whole.costs[4:, :, :1])


class NewRows(CostRows):
    """Runs no list but the last."""

    def __call__(self, row: Row, watchdog: Watchdog) -> CostRow | None:
        assert list(self.lists) == LISTS[2:]
        return super().__call__(row, watchdog)


def test_a_table_with_more_lists_keeps_the_costs_of_those_that_it_had(
    file: Path, made: LabelBench, tmp_path: Path
) -> None:
    whole = read_costs(file)
    narrow = replace(
        whole, columns=replace(whole.columns, lists=tuple(LISTS[:2])), costs=whole.costs[:, :2]
    ).take(np.arange(4))
    path = tmp_path / "t.npz"
    table = table_corpus(SAMPLE, path, made, LISTS, QUIET, widened=narrow, make_rows=NewRows)

    assert table.columns == whole.columns
    assert table.identities.tolist() == narrow.identities.tolist()
    assert np.array_equal(table.costs, whole.costs[:4])
    assert np.array_equal(table.features, whole.features[:4])


def test_a_table_whose_oz_is_another_is_not_widened(file: Path, made: LabelBench, tmp_path: Path) -> None:
    whole = read_costs(file)
    other = replace(whole, baseline=whole.baseline + 1)
    with pytest.raises(PlanishError, match="after -Oz in one table, and"):
        table_corpus(SAMPLE, tmp_path / "t.npz", made, LISTS, QUIET, widened=other)

    older = replace(whole, columns=replace(whole.columns, llvm="0"))
    with pytest.raises(
        PlanishError, match="the table that is widened and what is run now differ in LLVM: 0 and"
    ):
        table_corpus(SAMPLE, tmp_path / "t.npz", made, LISTS, QUIET, widened=older)


def test_a_table_of_other_lists_is_not_added_to(file: Path, made: LabelBench) -> None:
    with pytest.raises(PlanishError, match=r"and what is run now differ in lists\. Write into another file"):
        table_corpus(SAMPLE, file, made, LISTS[:2], QUIET)


def test_all_packages_have_their_turn_and_more_begin_with_the_same() -> None:
    few, known = draw_in_turns(SAMPLE, ("train",), 12, set())
    more, _ = draw_in_turns(SAMPLE, ("train",), 24, set())
    packages = {row.package for row in read_corpus(split="train")}

    assert known == 0
    assert len({row.package for row in few}) == min(12, len(packages))
    assert more[:12] == few
    rest, known = draw_in_turns(SAMPLE, ("train",), 24, {row.identity for row in few})
    assert (rest, known) == (more[12:], 12)


def test_files_that_are_held_back_are_not_drawn() -> None:
    every, _ = draw_in_turns(SAMPLE, ("train",), 0, set())
    package, file = every[0].package, every[0].file
    rest, _ = draw_in_turns(SAMPLE, ("train",), 0, set(), [f"{package}/{file}", "none/*"])

    held_back = [row for row in every if (row.package, row.file) == (package, file)]
    assert {row.identity for row in rest} == {row.identity for row in every if row not in held_back}
    assert len(rest) < len(every)
