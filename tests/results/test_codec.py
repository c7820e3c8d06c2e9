"""Comparisons as the store keeps them: of this version, of the last one, of a later one, and damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planish.budget import Budget
from planish.core import Ratio, StoreError
from planish.levels import level_named
from planish.results.codec import decode, encode
from planish.results.comparison import Clocks
from planish.results.result import read_result
from planish.settings import Settings
from planish.store import ResultRow, open_store
from planish.tuning.api import tune
from report.fronts import BOTH, front
from report.planks import TIME
from results.old_runs import DATA


def stored(rows: list[ResultRow]) -> list[ResultRow]:
    """Keep rows as JSON, and give them back."""
    return [replace(row, data=json.loads(json.dumps(dict(row.data))), run_id="a") for row in rows]


def test_a_comparison_comes_back_as_it_was() -> None:
    ratio = Ratio(0.5, 0.4, 0.6)
    clocks = Clocks(
        ratio, ratio, "processor", disputed=True, samples=((1.0, 2.0),), baseline_samples=((3.0,),)
    )
    found = front()
    first, *others = found.finalists
    timed = {**first.measured, "time_s": replace(first.lead, clocks=clocks)}
    found = replace(
        found,
        finalists=(replace(first, measured=timed, notes=("odd",)), *others),
        noise={"time_s": 0.02},
        notes=("n",),
    )
    rows = stored(encode(found))
    assert decode(rows, BOTH) == found
    assert [row.ratio for row in rows] == [each.lead.gain.value for each in found.finalists]
    assert "baseline" not in rows[1].data, "what belongs to all is kept once"


def test_nobody_was_compared() -> None:
    assert decode([], BOTH) is None
    rows = stored(encode(front()))
    assert decode([replace(rows[0], data={})], BOTH) is None
    assert decode(rows, [*BOTH, replace(TIME, name="other")]) is None, "by this objective nobody was"


def test_a_candidate_that_reads_back_as_another_is_noticed() -> None:
    rows = stored(encode(front()))
    swapped = decode([replace(rows[0], candidate=rows[1].candidate), *rows[1:]], BOTH)
    assert swapped is not None
    assert [each.intact for each in swapped.finalists] == [False, True, True, True]


def test_a_later_version_is_refused() -> None:
    row = stored(encode(front()))[0]
    with pytest.raises(StoreError, match="of run a is of a newer planish"):
        decode([replace(row, data={**row.data, "version": 3})], BOTH)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("objectives", {"time_s": {"median": 1.0}, "error": {}}),
        ("effects", []),
        ("objectives", 5),
        ("second_opinion", {"odd": 1}),
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


def test_all_that_the_last_version_stored_is_the_same_in_this_one() -> None:
    compared = 0
    with open_store(DATA / "runs-1.db", read_only=True) as store:
        for run in store.runs():
            task = store.task(run.task_key)
            found = decode(store.result_rows(run.id, level_named(task.level).steps), task.objectives)
            if found is not None:
                compared += 1
                assert decode(stored(encode(found)), task.objectives) == found
    assert compared == 8


def test_a_result_is_the_same_in_memory_and_from_the_store(tmp_path: Path) -> None:
    settings = Settings(searcher="random", workers=1, finalists=1)
    with open_store(tmp_path / "store.db") as store:
        found = tune(
            "C[m] += A[m,k] * B[k]", size="m=8,k=8", budget=Budget(trials=3), settings=settings, store=store
        )
        assert read_result(store, found.run_id) == found
