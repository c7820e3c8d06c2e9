"""Results on record, and whether new ones are worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llvm.modules import SUM
from planish.core import Candidate, Objective, PlanishError
from planish.tuning.batch import (
    Change,
    Part,
    Record,
    RegressionError,
    changes,
    load_files,
    read_record,
    require_no_loss,
    write_record,
)

COUNT = Objective("instructions", exact=True)


def part(name: str, best: float, baseline: float = 50.0) -> Part:
    return Part(name, COUNT, "run", 99.0, baseline, best, Candidate(), 1)


def test_a_record_reads_back(tmp_path: Path) -> None:
    write_record(tmp_path / "r.json", [part("a", 10), part("b", 60)], {"llvm": "22"})
    assert read_record(tmp_path / "r.json") == Record("instructions", {"a": 10.0, "b": 50.0})


def test_what_is_worse_is_an_error() -> None:
    record = Record("instructions", {"a": 10.0, "b": 10.0, "gone": 1.0})
    found = changes([part("a", 9), part("b", 11), part("new", 99)], record)
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
        changes([part("a", 1)], Record("text_bytes", {}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"form": 1, "objective": "x"}',
        '{"form": 1, "objective": "x", "results": {"a": {}}}',
        '{"form": 1, "objective": "x", "results": []}',
        json.dumps({"form": 99}),
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
