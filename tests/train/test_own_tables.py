"""Tables that searches of `llvm` and `hlo` begin with: fitted, compared, kept only where they are better."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from planish.core import EMPTY_CONTEXT, Candidate, Failed, Measured, Trial
from planish.core.own_tables import read_table, table_path, write_table
from planish.levels.hlo.edit_gains import OWN_GAINS, own_gains
from planish.levels.hlo.edits import DeleteOp, ScaleConstant
from planish.levels.hlo.level import HloLevel
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.levels.llvm.passes.pipeline import candidate_of
from planish.levels.llvm.passes.space import OWN_LISTS, own_lists
from planish.models.provenance import HeldOut
from planish.store import open_store
from planish.train.background import FIRST, OwnTable, fit_gains, fit_lists, improve, plan_of, programs_of
from planish.tuning.api import task_of
from planish.tuning.batch import record_programs
from planish.tuning.settings import Settings
from planish.tuning.transfer import KnownTask, known_tasks

FUNCTION = "define i32 @f{0}(i32 %a) {{\n  %b = add i32 %a, {0}\n  %c = add i32 %b, 0\n  ret i32 %c\n}}\n"
LAYERS = """
func.func public @main(%x: tensor<64x{0}xf32>, %v: tensor<{0}x{0}xf32>, %w: tensor<{0}x8xf32>)
    -> tensor<64x8xf32> {{
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
      : (tensor<64x{0}xf32>, tensor<{0}x{0}xf32>) -> tensor<64x{0}xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<64x{0}xf32>
  %1 = stablehlo.maximum %0, %zero : tensor<64x{0}xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
      : (tensor<64x{0}xf32>, tensor<{0}x8xf32>) -> tensor<64x8xf32>
  return %2 : tensor<64x8xf32>
}}
"""
BETTER = HeldOut(9, "share saved", 0.5, "what searches begin with now", 0.25)
SCALED, LESS = Candidate((ScaleConstant("1", 2.0),)), Candidate((DeleteOp("3", ()),))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's data folder is empty."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def test_a_table_is_kept_where_it_is_better_and_removed_where_it_is_so_no_longer() -> None:
    table = OwnTable(OWN_LISTS, "1", [["sroa"]], 9, BETTER)
    table.keep()
    assert read_table(OWN_LISTS, "1") == ([["sroa"]], BETTER.text)
    assert read_table(OWN_LISTS, "2") is None
    replace(table, held_out=replace(BETTER, value=0.25)).keep()
    assert not table_path(OWN_LISTS).exists()
    replace(table, held_out=replace(BETTER, programs=4)).keep()
    assert not table_path(OWN_LISTS).exists()


def test_a_damaged_table_is_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    write_table(OWN_LISTS, "1", [], "")
    table_path(OWN_LISTS).write_text("{")
    with caplog.at_level(logging.WARNING):
        assert read_table(OWN_LISTS, "1") is None
    assert f"{OWN_LISTS}.json" in caplog.text


def test_a_search_for_instructions_begins_with_the_users_own_lists() -> None:
    level, passes = LlvmLevel(), ("sroa<modify-cfg>", "gvn")
    write_table(OWN_LISTS, level.version, [passes], "")
    program = level.load(FUNCTION.format(1), {})
    counted, sized = (
        task_of(level, program, Settings("llvm", objectives=(name,)))
        for name in ("instructions", "text_bytes")
    )
    assert candidate_of(passes) in level.warm_start(counted, EMPTY_CONTEXT)
    assert not level.warm_start(sized, EMPTY_CONTEXT)
    assert any("of your own modules" in what for what in level.known_beforehand())


def test_lists_are_fitted_to_what_was_recorded(tmp_path: Path) -> None:
    level, programs = LlvmLevel(), [*islice(programs_of("llvm", []), 8)]
    with open_store(tmp_path / "store.db") as store:
        assert len([*record_programs(level, programs, plan_of("llvm").settings, 3, store)]) == 8
        table = fit_lists(known_tasks(store, level))
    assert table.programs == 8
    assert 0 < len(table.rows) <= FIRST
    assert {tuple(passes) for passes in table.rows} <= {*load_coreset()}
    assert 0 < table.held_out.value < 1
    table.keep()
    assert len(own_lists("instructions", level.version)) == len(table.rows) * table.held_out.is_better


def test_gains_are_fitted_to_what_was_recorded_and_order_the_patches_of_a_search() -> None:
    objectives = [HloLevel.objectives[name] for name in ("time_s", "error")]
    outcomes = {
        Candidate(): Measured({"time_s": 2.0, "error": 0.1}),
        SCALED: Failed("verify", "wrong"),
        LESS: Measured({"time_s": 1.0, "error": 0.1}),
    }

    def task(number: int) -> KnownTask:
        trials = [Trial(candidate, outcome) for candidate, outcome in outcomes.items()]
        stored = SimpleNamespace(objectives=objectives)
        text = f"stablehlo.dot_general stablehlo.add // {number}"
        made = SimpleNamespace(stored=stored, program=text, level=HloLevel(), trials=lambda: trials)
        return cast("KnownTask", made)

    table = fit_gains([task(number) for number in range(8)])
    assert (table.name, table.programs) == (OWN_GAINS, 8)
    # With so few patches all of them are tried first: nothing is better, and nothing is kept.
    assert table.held_out.value == table.held_out.rival_value == 1.0
    table.keep()
    assert own_gains(HloLevel.version) == []
    replace(table, held_out=BETTER).keep()
    gains = {row.kinds: row.gain for row in own_gains(HloLevel.version)}
    assert gains[("DeleteOp",)] == pytest.approx(0.693)
    assert gains[("ScaleConstant",)] == 0.0
    assert any("modules of yours" in what for what in HloLevel().known_beforehand())
    assert len(outcomes) <= FIRST


@pytest.mark.slow
def test_gains_are_fitted_to_modules_that_were_searched(tmp_path: Path) -> None:
    pytest.importorskip("jaxlib", reason="the level hlo is not installed")
    for width in (24, 32, 40):
        (tmp_path / f"{width}.mlir").write_text(LAYERS.format(width))
        (tmp_path / f"{width}.toml").write_text("[inputs]\n")
    level, sources = HloLevel(), [str(path) for path in sorted(tmp_path.glob("*.mlir"))]
    plan = replace(plan_of("hlo"), trials=8, first=3)
    with open_store(tmp_path / "store.db") as store:
        programs = programs_of("hlo", sources)
        recorded = record_programs(level, programs, plan.settings, plan.trials, store)
        found = [new for _, new in improve(recorded, partial(known_tasks, store, level), plan)]
        table = fit_gains(known_tasks(store, level))
    assert [fitted and fitted.programs for fitted in found] == [None, None, 3]
    assert [row["operations"].keys() >= {"dot_general", "maximum"} for row in table.rows] == [True] * 3
    # Kinds of patches that the structure of such modules suggests, each with its gain.
    kinds = {kind for row in table.rows for kinds, _ in row["gains"] for kind in kinds}
    assert "Narrow" in kinds
    assert all(gain >= 0 for row in table.rows for _, gain in row["gains"])


def test_programs_are_the_users_or_those_of_the_sample_that_are_not_held_out() -> None:
    assert len([*programs_of("llvm", [])]) == 100
    named = [*programs_of("llvm", [FUNCTION.format(1) + FUNCTION.format(2)])]
    assert [program.definitions for program in named] == [("f1",), ("f2",)]  # pyright: ignore[reportAttributeAccessIssue]
