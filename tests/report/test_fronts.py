"""What is said of a front: its table, and what is better at no cost."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from planish.core import Objective
from planish.report.data import read_report_data
from planish.report.front_table import front_table
from planish.report.verdict import Verdict, verdict_of, verdict_of_front
from planish.report.wording import outcome_words
from planish.store import open_store
from planish.tuning.comparison import Comparison
from report.fronts import BOTH, ERROR, FRONT, Cut, front
from report.planks import TIME, Planks, finalist, measured, save_run, task_of

X = "\N{MULTIPLICATION SIGN}"


def verdict(*cuts: Cut) -> Verdict:
    return verdict_of_front(front(cuts))


def test_the_table_has_both_baselines_first() -> None:
    table = front_table(front())
    assert table.columns == (
        *("", "time", "gain", "error", "search", "validation", "final", "edits"),
        *("second opinion", "verdict"),
    )
    assert table.rows[0] == ("baseline", "2.000 ms", "", "0.2000", "0.1100", "0.1200", "0.1300", "", "", "")
    assert table.rows[1][:4] == ("reference", "3.000 ms", "", "0.2000")
    assert table.rows[2] == (
        *("#1", "500.0 µs", f"4.00{X}", "0.9000", "0.4950", "0.5400", "0.5850", "1 of 5"),
        *("agrees", "faster, more error"),
    )
    assert table.rows[4][-3:] == ("2", "agrees", "same time, less error")
    assert table.rows[5][-2:] == ("differs", "failed")
    assert table.note == (
        "error: as in the search; search, validation, final: at the end; verdict on error: by validation; "
        "reference: tree.mlir"
    )
    assert table.scores == {"search", "validation", "final"}
    assert all(len(row) == len(table.columns) for row in table.rows)


def test_a_score_that_repeats_an_objective_has_no_column() -> None:
    found = front()
    same = [
        replace(m, scores={"error": m.measured["error"].median, "error_final": 0.5}) for m in found.finalists
    ]
    base = replace(found.baseline, scores={"error": 0.2, "error_final": 0.5})
    table = front_table(Comparison(tuple(same), base))
    assert table.columns[3:6] == ("error", "final", "edits")


def test_a_score_tells_how_well_its_difference_to_the_baseline_is_known() -> None:
    found = front()
    scores = {"error": 0.2, "error_final": 0.5, "error_final_within": 0.00312}
    member = replace(found.finalists[0], scores=scores)
    table = front_table(Comparison((member,), replace(found.baseline, scores=scores)))
    place = table.columns.index("final")
    assert [row[place] for row in table.rows] == ["0.5000", "0.5000 ± 0.0031"]
    assert "error_final_within" not in table.columns
    assert "±: the difference to the baseline, 95 %" in table.note


def test_what_is_better_at_no_cost_is_the_verdict() -> None:
    found = verdict(*FRONT[:3])
    assert found.kind == "better"
    assert found.headline == (
        f"2.00{X} faster at no more error (#2); "
        "validation error 0.06000 instead of 0.1200 at no more time (#3)"
    )
    assert found.grounds[0] == (
        "#2 at the end, against the baseline: error 0.1100 against 0.1100, error validation 0.1200 "
        "against 0.1200, error final 0.1300 against 0.1300"
    )
    assert "best time of the front: #1, time 500.0 µs, error 0.9000" in found.grounds


@pytest.mark.parametrize(
    ("unseen", "told"),
    [
        ({"error": 0.11, "error_validation": 0.13}, "same time, more error"),
        ({"error": 0.11, "error_validation": 0.12}, "same time, same error"),
        ({}, "same time, failed"),
    ],
)
def test_what_is_better_on_the_examples_of_the_search_alone_is_no_win(
    unseen: Mapping[str, float], told: str
) -> None:
    found = front([replace(FRONT[2], unseen=unseen)])
    assert front_table(found).rows[2][-1] == told
    assert verdict_of_front(found).kind == "same"


def test_what_is_worse_on_the_examples_of_the_search_alone_is_a_win() -> None:
    found = verdict(replace(FRONT[2], error=0.3, unseen={"error": 0.1, "error_validation": 0.03}))
    assert found.headline == "Validation error 0.03000 instead of 0.1200 at no more time (#1)"


def test_where_noise_decides_it_is_told() -> None:
    """By 1,000 examples half a point more is nothing, but the user is to see that it was measured."""
    base = replace(front().baseline, scores={"error_validation": 0.12, "error_validation_within": 0.001})
    scores = {"error_validation": 0.125, "error_validation_within": 0.009}
    (member,) = front([replace(FRONT[1], unseen={"error_validation": 0.12})]).finalists
    found = Comparison((replace(member, scores=scores),), base)
    table, told = front_table(found), verdict_of_front(found)
    assert table.rows[1][-1] == "faster, error within noise"
    assert told.headline == f"2.00{X} faster at no more error beyond the noise (#1)"
    assert (
        told.grounds[0]
        == "#1 at the end, against the baseline: error validation 0.1250 against 0.1200 (± 0.009)"
    )
    assert "same error" in front_table(front([FRONT[1]])).rows[2][-1]


def test_a_disputed_module_is_no_win() -> None:
    found = verdict(FRONT[0], FRONT[3])
    assert found.kind == "same"
    assert found.headline.startswith("Nothing is better than the baseline without being worse")
    assert any("differs on #2" in ground for ground in found.grounds)


def test_a_module_without_a_second_opinion_is_told() -> None:
    told = "the second opinion has no answer for #2: their gains are not cross-checked"
    assert told in verdict(FRONT[0], replace(FRONT[1], agrees=None)).grounds
    assert not any("no answer" in ground for ground in verdict(replace(FRONT[0], agrees=None)).grounds)


def test_a_run_is_judged_by_its_front(tmp_path: Path) -> None:
    with open_store(tmp_path / "planks.db") as store:
        task = task_of("oak", *BOTH)
        run = save_run(store, [measured(1, 1e-3, error=0.2)], front(), task=task)
        data = read_report_data(store, run, Planks())
    assert verdict_of(data) == verdict_of_front(front())


def test_with_one_objective_there_is_no_front(tmp_path: Path) -> None:
    with open_store(tmp_path / "planks.db") as store:
        run = save_run(store, [measured(1, 1e-3)], [finalist(1, 0.5, "better")])
        data = read_report_data(store, run, Planks())
    assert (data.comparison is None, data.front) == (False, None)


@pytest.mark.parametrize(
    ("objective", "verdict", "words"),
    [
        (TIME, "better", "faster"),
        (TIME, "same", "same time"),
        (ERROR, "better", "less error"),
        (ERROR, "worse", "more error"),
        (Objective("score", "", "up"), "better", "more score"),
        (Objective("score", "", "up"), "worse", "less score"),
        (ERROR, "failed", "failed"),
    ],
)
def test_a_verdict_names_its_objective(objective: Objective, verdict: str, words: str) -> None:
    assert outcome_words(objective, verdict) == words
