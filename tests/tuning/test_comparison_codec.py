"""Comparisons as the store keeps them: of this version, of another one, and damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planish.core import Candidate, CrossCheck, Ratio, StoreError, describe
from planish.core.registry import load_program
from planish.store import ResultRow, open_store
from planish.tuning.api import task_of, tune
from planish.tuning.comparison import Clocks
from planish.tuning.comparison_codec import VERSION, decode, encode
from planish.tuning.result import read_result
from planish.tuning.settings import Budget, Settings
from report.fronts import BOTH, front
from report.planks import TIME
from report.unmeasured import with_unmeasured


def stored(rows: list[ResultRow]) -> list[ResultRow]:
    """Keep rows as JSON, and give them back."""
    return [replace(row, data=json.loads(json.dumps(dict(row.data))), run_id="a") for row in rows]


def test_a_comparison_comes_back_as_it_was() -> None:
    ratio = Ratio(0.5, 0.4, 0.6)
    clocks = Clocks(
        ratio, ratio, "processor", disagree=True, samples=((1.0, 2.0),), baseline_samples=((3.0,),)
    )
    found = front()
    first, *others = found.finalists
    timed = {**first.measured, "time_s": replace(first.lead, clocks=clocks)}
    found = replace(
        found,
        finalists=(replace(first, measured=timed, notes=("odd",)), *others),
        baseline=replace(
            found.baseline, cross_check=CrossCheck(agrees=False, difference=0.5, why="far apart")
        ),
        noise={"time_s": 0.02},
        notes=("n",),
    )
    rows = stored(encode(found))
    assert decode(rows, BOTH) == found
    assert [row.ratio for row in rows] == [each.lead.gain.value for each in found.finalists]
    assert "baseline" not in rows[1].data, "what belongs to all is kept once"


def test_who_was_not_measured_comes_back_too() -> None:
    found = with_unmeasured(front())
    rows = stored(encode(found))
    assert decode(rows, BOTH) == found
    assert [row.ratio for row in rows[-2:]] == [0.0, 0.0], "nothing is known of a gain"
    odd = replace(rows[-1], data={**rows[-1].data, "unmeasured": "odd"})
    with pytest.raises(StoreError, match="the result of run a cannot be read: #6: ValueError: no verdict is"):
        decode([*rows[:-1], odd], BOTH)


def test_no_finalist_was_compared() -> None:
    assert decode([], BOTH) is None
    rows = stored(encode(front()))
    assert decode([replace(rows[0], data={})], BOTH) is None
    assert decode(rows, [*BOTH, replace(TIME, name="other")]) is None, "none was compared by this objective"


def test_a_candidate_that_reads_back_as_another_is_noticed() -> None:
    rows = stored(encode(front()))
    swapped = decode([replace(rows[0], candidate=rows[1].candidate), *rows[1:]], BOTH)
    assert swapped is not None
    assert [each.hash_ok for each in swapped.finalists] == [False, True, True, True]


@pytest.mark.parametrize(("version", "hint"), [(VERSION + 1, "Upgrade"), (VERSION - 1, "Tune again")])
def test_another_version_is_refused(version: int, hint: str) -> None:
    row = stored(encode(front()))[0]
    with pytest.raises(StoreError, match=f"of run a has format {version}, this planish reads") as caught:
        decode([replace(row, data={**row.data, "version": version})], BOTH)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("objectives", {"time_s": {"median": 1.0}, "error": {}}),
        ("main_effects", 5),
        ("objectives", 5),
        ("cross_check", {"odd": 1}),
        ("baseline", None),
        ("verdict", "<script>"),
    ],
)
def test_what_is_damaged_is_one_error(name: str, value: object) -> None:
    (row, *_) = stored(encode(front()))
    data = {**row.data, name: value}
    if name == "verdict":
        data = {
            **row.data,
            "objectives": json.loads(json.dumps(row.data["objectives"]).replace("better", "odd")),
        }
    with pytest.raises(StoreError, match="the result of run a cannot be read"):
        decode([replace(row, data=data)], BOTH)


def _put(data: Any, key: str, value: object) -> Any:
    """Return JSON with another value somewhere: `main_effects.0.steps`."""
    name, _, rest = key.partition(".")
    if isinstance(data, list):
        found: list[Any] = data
        return [_put(each, rest, value) if str(at) == name else each for at, each in enumerate(found)]
    return {**data, name: _put(data[name], rest, value) if rest else value}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("objectives.time_s.median", "<script>"),
        ("objectives.time_s.median", True),
        ("objectives.time_s.median", None),
        ("objectives.time_s.ratio", [1.0, 2.0]),
        ("objectives.time_s.ratio", [1.0, "2", 3.0]),
        ("samples", ["fast"]),
        ("samples", "123"),
        ("scores", {"error_final": "few"}),
        ("scores", [1.0]),
        ("cross_check.agrees", "yes"),
        ("cross_check.why", 5),
        ("edits.found", "many"),
        ("main_effects.0.values", {"time_s": []}),
        ("main_effects.0.steps", ["first"]),
        ("trial", {"time_s": None}),
        ("notes", "one"),
        ("notes", [1]),
        ("analysis", ["none"]),
    ],
)
def test_a_value_of_a_wrong_type_is_an_error_that_names_its_row(key: str, value: object) -> None:
    first, second, *others = stored(encode(front()))
    with pytest.raises(StoreError, match="the result of run a cannot be read: #2: ") as caught:
        decode([first, replace(second, data=_put(second.data, key, value)), *others], BOTH)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("baseline.samples", [None]),
        ("baseline_scores", {"error_final": "few"}),
        ("noise", {"time_s": "some"}),
        ("run_notes", [["a"]]),
        ("secondary_baseline", {"name": 5, "objectives": {"time_s": 1.0, "error": 1.0}}),
        ("baseline_cross_check", {"agrees": True, "difference": "some", "why": ""}),
    ],
)
def test_so_is_one_that_belongs_to_all(key: str, value: object) -> None:
    first, *others = stored(encode(front()))
    with pytest.raises(StoreError, match="the result of run a cannot be read: #1: TypeError"):
        decode([replace(first, data=_put(first.data, key, value)), *others], BOTH)


def test_an_analysis_that_the_level_cannot_read_is_one_error() -> None:
    level, program = load_program("define i32 @f() {\n  ret i32 1\n}\n", "llvm", {})
    task = task_of(level, program, Settings())
    told = {Candidate().hash: {"values": {"instructions": "many"}}}
    for analysis in ({"instructions": 5}, {"instructions": {"a": {}}}, {"instructions": told}):
        with pytest.raises(StoreError, match="the analysis of a finalist cannot be read") as caught:
            describe(level, task, Candidate(), analysis)
        assert caught.value.exit_code == 4


def test_a_result_is_the_same_in_memory_and_from_the_store(tmp_path: Path) -> None:
    settings = Settings(searcher="random", workers=1, finalists=1)
    with open_store(tmp_path / "store.db") as store:
        found = tune(
            "C[m] += A[m,k] * B[k]", size="m=8,k=8", budget=Budget(trials=3), settings=settings, store=store
        )
        assert read_result(store, found.run.id) == found
