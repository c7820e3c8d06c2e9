"""Many programs, each tuned by itself, and results on record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.llvm.modules import SUM
from planish.core import Candidate, Objective, PlanishError
from planish.core.registry import load_program
from planish.store import open_store
from planish.tuning.batch import (
    Change,
    Part,
    Record,
    RegressionError,
    Unmeasured,
    changes,
    load_files,
    load_parts,
    read_record,
    require_no_loss,
    totals,
    tune_parts,
    write_record,
)
from planish.tuning.settings import Budget, Settings

COUNT = Objective("instructions", exact=True)
SETTINGS = Settings(workers=1, finalists=1)
BROKEN = (
    'define i32 @f(i32 %x) {\n  %y = call i32 asm "no such instruction", "=r,r"(i32 %x)\n  ret i32 %y\n}\n'
)


def part(baseline: float, best: float, objective: Objective = COUNT) -> Part:
    return Part("f", objective, "run", 99.0, baseline, best, Candidate(), 1)


def test_the_columns_of_the_thesis() -> None:
    parts = [part(10, 7), part(10, 12), part(20, 20)]
    alone, backed = totals(parts, backup=False), totals(parts, backup=True)
    assert (alone.improved, alone.regressed, alone.saved, alone.lost) == (1, 1, 3, 2)
    assert alone.overall == pytest.approx(1 / 40)
    assert (backed.improved, backed.regressed, backed.saved, backed.lost) == (1, 0, 3, 0)
    assert backed.overall == pytest.approx(3 / 40)
    assert [each.kept for each in parts] == [7, 10, 20]


def test_more_may_be_better() -> None:
    more = part(10, 12, Objective("rate", direction="up", exact=True))
    assert (more.saved, more.kept) == (2, 12)
    assert totals([more], backup=False).improved == 1


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)), min_size=1))
def test_a_backup_never_loses(pairs: list[tuple[int, int]]) -> None:
    parts = [part(*pair) for pair in pairs]
    alone, backed = totals(parts, backup=False), totals(parts, backup=True)
    assert backed.lost == backed.regressed == 0
    assert backed.saved == alone.saved
    assert alone.saved - alone.lost == sum(base - best for base, best in pairs)
    assert backed.overall >= max(0.0, alone.overall)


def test_each_function_has_a_run_of_its_own(tmp_path: Path) -> None:
    level, parts = load_parts(SUM, "", {})
    with open_store(tmp_path / "store.db") as store:
        found = list(tune_parts(level, parts, budget=Budget(trials=10), settings=SETTINGS, store=store))
        assert all(isinstance(each, Part) for each in found)
        runs = {run.id: run for run in store.runs()}
        for each in found:
            assert isinstance(each, Part)
            assert runs[each.run_id].trials == each.trials == 10
            assert each.kept <= each.baseline <= each.start
            (finalist, *_) = store.result_rows(each.run_id, level.steps)
            assert finalist.data["baseline"]["median"] == each.baseline
    assert [each.name for each in found] == ["sum", "twice", "four"]


@pytest.mark.slow
def test_again_is_known(tmp_path: Path) -> None:
    level, parts = load_parts(SUM, "", {})
    first, again = (
        list(tune_parts(level, parts, budget=Budget(trials=6), settings=SETTINGS, store=tmp_path / "s.db"))
        for _ in range(2)
    )
    assert first == again


def test_one_that_cannot_be_measured_stops_nothing(tmp_path: Path) -> None:
    level, program = load_program(SUM, "", {})
    settings = replace(SETTINGS, objectives=("text_bytes",))
    programs = {"broken": load_program(BROKEN, "", {})[1], "whole": program}
    lost, whole = tune_parts(
        level, programs, budget=Budget(trials=3), settings=settings, store=tmp_path / "store.db"
    )
    assert isinstance(lost, Unmeasured)
    assert lost.reason.startswith("build: no code is made of it")
    assert isinstance(whole, Part)


def test_time_is_not_compared_in_a_table(tmp_path: Path) -> None:
    level, parts = load_parts(SUM, "", {})
    settings = replace(SETTINGS, objectives=("time_s",))
    with pytest.raises(PlanishError, match="time_s has noise"):
        next(tune_parts(level, parts, settings=settings, store=tmp_path / "store.db"))


def test_a_level_without_parts_says_so() -> None:
    with pytest.raises(PlanishError, match="programs of level 'loops' have no functions"):
        load_parts("C[m] += A[m,k] * B[k]", "", {"size": "m=4,k=4"})


def recorded_part(name: str, best: float, baseline: float = 50.0) -> Part:
    return Part(name, COUNT, "run", 99.0, baseline, best, Candidate(), 1)


def test_a_record_reads_back(tmp_path: Path) -> None:
    write_record(tmp_path / "r.json", [recorded_part("a", 10), recorded_part("b", 60)], {"llvm": "22"})
    assert read_record(tmp_path / "r.json") == Record("instructions", {"a": 10.0, "b": 50.0})


def test_what_is_worse_is_an_error() -> None:
    record = Record("instructions", {"a": 10.0, "b": 10.0, "gone": 1.0})
    found = changes([recorded_part("a", 9), recorded_part("b", 11), recorded_part("new", 99)], record)
    assert found == [Change("a", 10, 9, False), Change("b", 10, 11, True)]
    with pytest.raises(RegressionError, match="worse than recorded: b: 11, recorded 10") as caught:
        require_no_loss(found)
    assert caught.value.exit_code == 8
    require_no_loss(found[:1])


def test_of_a_rate_less_is_worse() -> None:
    rate = Part("a", Objective("rate", direction="up", exact=True), "run", 1.0, 1.0, 5.0, Candidate(), 1)
    assert [change.worse for change in changes([rate], Record("rate", {"a": 6.0}))] == [True]
    assert [change.worse for change in changes([rate], Record("rate", {"a": 4.0}))] == [False]


def test_a_record_of_another_objective_is_an_error() -> None:
    with pytest.raises(PlanishError, match="the record is of text_bytes"):
        changes([recorded_part("a", 1)], Record("text_bytes", {}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema_version": 1, "objective": "x"}',
        '{"schema_version": 1, "objective": "x", "results": {"a": {}}}',
        '{"schema_version": 1, "objective": "x", "results": []}',
        json.dumps({"schema_version": 99}),
    ],
)
def test_what_is_no_record_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(PlanishError, match="record"):
        read_record(tmp_path / "r.json")


def test_a_record_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlanishError, match="No such file"):
        read_record(tmp_path / "absent.json")


def test_files_are_of_one_level(tmp_path: Path) -> None:
    (tmp_path / "a.ll").write_text(SUM)
    (tmp_path / "b.loops").write_text("C[m] = A[m] | m=4 | A:float32[4] C:float32[4]")
    level, programs, _ = load_files([str(tmp_path / "a.ll")], "", {})
    assert (level.name, list(programs)) == ("llvm", [str(tmp_path / "a.ll")])
    with pytest.raises(PlanishError, match="files of 2 levels"):
        load_files([str(tmp_path / "a.ll"), str(tmp_path / "b.loops")], "", {})
