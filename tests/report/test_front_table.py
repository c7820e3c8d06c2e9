"""Fronts of several objectives in tables and on the page, and finalists that were not measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planish.cli.summary import result_document, show_result
from planish.core import Candidate, Objective
from planish.core.wording import outcome_words
from planish.report import write_report
from planish.report.page import effect_grids, front_table
from planish.store import open_store
from planish.tuning.comparison import Comparison
from planish.tuning.result import Result, read_result
from planish.tuning.verdict import RunVerdict, verdict_of, verdict_of_front
from report import fronts
from report.fronts import BOTH, ERROR, FRONT, Cut, front
from report.page import Page
from report.planks import TIME, Planks, compared, failed, finalist, measured, save_run, task_of
from report.unmeasured import LATE, WRONG, with_unmeasured

X = "\N{MULTIPLICATION SIGN}"


def verdict(*cuts: Cut) -> RunVerdict:
    return verdict_of_front(front(cuts))


def test_the_table_has_both_baselines_first() -> None:
    table = front_table(front())
    assert table.columns == (
        *("", "time", "gain", "error", "search", "validation", "final", "edits"),
        *("cross-check", "verdict"),
    )
    assert table.rows[0] == ("baseline", "2.000 ms", "", "0.2000", "0.1100", "0.1200", "0.1300", "", "", "")
    assert table.rows[1][:4] == ("secondary", "3.000 ms", "", "0.2000")
    assert table.rows[2] == (
        *("#1", "500.0 µs", f"4.00{X}", "0.9000", "0.4950", "0.5400", "0.5850", "1 of 5"),
        *("agrees", "faster, more error"),
    )
    assert table.rows[4][-3:] == ("2", "agrees", "same time, less error")
    assert table.rows[5][-2:] == ("differs", "failed")
    assert table.note == (
        "error: as in the search; search, validation, final: at the end; verdict on error: by validation; "
        "secondary: tree.mlir"
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
    column = table.columns.index("final")
    assert [row[column] for row in table.rows] == ["0.5000", "0.5000 ± 0.0031"]
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
    ("unseen", "cell"),
    [
        ({"error": 0.11, "error_validation": 0.13}, "same time, more error"),
        ({"error": 0.11, "error_validation": 0.12}, "same time, same error"),
        ({}, "same time, failed"),
    ],
)
def test_what_is_better_on_the_examples_of_the_search_alone_is_no_win(
    unseen: Mapping[str, float], cell: str
) -> None:
    found = front([replace(FRONT[2], unseen=unseen)])
    assert front_table(found).rows[2][-1] == cell
    assert verdict_of_front(found).kind == "same"


def test_what_is_worse_on_the_examples_of_the_search_alone_is_a_win() -> None:
    found = verdict(replace(FRONT[2], error=0.3, unseen={"error": 0.1, "error_validation": 0.03}))
    assert found.headline == "Validation error 0.03000 instead of 0.1200 at no more time (#1)"


def test_where_noise_decides_it_is_reported() -> None:
    """By 1,000 examples half a point more is nothing, but the user is to see that it was measured."""
    base = replace(front().baseline, scores={"error_validation": 0.12, "error_validation_within": 0.001})
    scores = {"error_validation": 0.125, "error_validation_within": 0.009}
    (member,) = front([replace(FRONT[1], unseen={"error_validation": 0.12})]).finalists
    found = Comparison((replace(member, scores=scores),), base)
    table, decided = front_table(found), verdict_of_front(found)
    assert table.rows[1][-1] == "faster, error within noise"
    assert decided.headline == f"2.00{X} faster at no more error beyond the noise (#1)"
    assert (
        decided.grounds[0]
        == "#1 at the end, against the baseline: error validation 0.1250 against 0.1200 (± 0.009)"
    )
    assert "same error" in front_table(front([FRONT[1]])).rows[2][-1]


def test_a_disputed_module_is_no_win() -> None:
    found = verdict(FRONT[0], FRONT[3])
    assert found.kind == "same"
    assert found.headline.startswith("No candidate is better than the baseline without being worse")
    assert any("differs on #2" in ground for ground in found.grounds)


def test_a_module_without_a_cross_check_is_reported() -> None:
    ground = "the cross-check has no answer for #2: their gains are not cross-checked"
    assert ground in verdict(FRONT[0], replace(FRONT[1], agrees=None)).grounds
    assert not any("no answer" in ground for ground in verdict(replace(FRONT[0], agrees=None)).grounds)


def test_a_run_is_judged_by_its_front(tmp_path: Path) -> None:
    with open_store(tmp_path / "planks.db") as store:
        task = task_of("oak", *BOTH)
        run = save_run(store, [measured(1, 1e-3, error=0.2)], front(), task=task)
        assert verdict_of(read_result(store, run, level=Planks())) == verdict_of_front(front())


def test_with_one_objective_there_is_no_front(tmp_path: Path) -> None:
    with open_store(tmp_path / "planks.db") as store:
        run = save_run(store, [measured(1, 1e-3)], [finalist(1, 0.5, "better")])
        data = read_result(store, run, level=Planks())
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


ONE = compared([finalist(2, 0.5, "better"), finalist(0, 0.97, "same")])


def kept(folder: Path, found: Comparison) -> tuple[Result, Page]:
    """Store a comparison; return what is read of it, and its page."""
    task = task_of("elm", *found.objectives)
    trials = [replace(measured(0, 2e-3, error=0.2), candidate=Candidate()), measured(2, 5e-4, error=0.1)]
    with open_store(folder / "planks.db") as store:
        run = save_run(store, trials, found, task=task)
        result = read_result(store, run, level=Planks())
        page = write_report(result, folder / "report.html")
        return result, Page(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("found", [ONE, fronts.front()], ids=["one", "several"])
def test_it_is_shown_by_the_terminal_and_the_report(
    found: Comparison, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, page = kept(tmp_path, with_unmeasured(found))
    count = len(found.finalists)
    assert data.finalists == found.finalists, "they are no finalists to be chosen from"
    show_result(data)
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("#")}
    assert list(rows)[: count + 2] == [f"#{rank}" for rank in range(1, count + 3)]
    assert rows[f"#{count + 1}"].rstrip().endswith("failed: verify: wrong answer")
    assert rows[f"#{count + 2}"].rstrip().endswith("undecided")
    text = page.sections["tradeoffs" if count > 2 else "finalists"]
    assert text.count("failed: verify: wrong answer") == 1
    assert "undecided" in text


@pytest.mark.parametrize("found", [ONE, fronts.front()], ids=["one", "several"])
def test_json_has_it(found: Comparison, tmp_path: Path) -> None:
    data, _ = kept(tmp_path, with_unmeasured(found))
    document = json.loads(json.dumps(result_document(data)))
    assert len(document["finalists"]) == len(found.finalists)
    rows = [(each["verdict"], each["why"], each["hash"]) for each in document["unmeasured"]]
    assert rows == [
        ("failed", "verify: wrong answer", WRONG.candidate.hash),
        ("undecided", "", LATE.candidate.hash),
    ]
    assert document["unmeasured"][0]["edits"] == {"found": 3, "left": 1}


def test_where_there_is_none_nothing_is_said(tmp_path: Path) -> None:
    data, page = kept(tmp_path, compared([finalist(2, 0.5, "better")]))
    assert "unmeasured" not in result_document(data)
    assert "undecided" not in page.sections["finalists"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """A run whose first trial is the baseline."""
    folder = tmp_path_factory.mktemp("front")
    start = replace(measured(0, 2e-3, error=0.2), candidate=Candidate())
    trials = [
        start,
        failed(1),
        measured(2, 1e-3, error=0.2),
        measured(3, 2e-3, error=0.1),
        measured(4, 9.0, error=1.0),
    ]
    with open_store(folder / "planks.db") as store:
        task = task_of("elm", *BOTH)
        run = save_run(store, trials, front(), task=task)
        path = write_report(read_result(store, run, level=Planks()), folder / "report.html")
    return Page(path.read_text(encoding="utf-8"))


def _traces(page: Page) -> dict[str, Any]:
    """Return the front's figure: name to trace; lines to the final data have none."""
    return {trace["name"]: trace for trace in page.charts[0]["data"] if trace["name"]}


def test_the_front_comes_first_with_its_table(page: Page) -> None:
    assert list(page.sections) == ["tradeoffs", "search", "finalists", "failures", "time", "provenance"]
    text = page.sections["tradeoffs"]
    assert "tree.mlir" in text
    assert "same time, less error" in text
    assert "The cross-check differs: other numbers" in text
    assert "3 of 5" in text


def test_the_figure_has_the_search_both_errors_and_both_baselines(page: Page) -> None:
    traces = _traces(page)
    assert traces["trials"]["x"] == [2, 1, 2], "the one far beyond is not drawn"
    assert list(zip(traces["front of the search"]["x"], traces["front of the search"]["y"], strict=True)) == [
        (1, 0.2),
        (2, 0.1),
    ]
    again = traces["measured again: error in the search"]
    assert again["y"] == [0.9, 0.2, 0.1]
    assert traces["error on the final data"]["y"] == [0.585, 0.13, 0.065, 0.0325]
    assert (traces["baseline"]["marker"]["symbol"], traces["baseline"]["y"]) == ("diamond", [0.2])
    assert traces["baseline, final data"]["y"] == [0.13]
    assert (traces["tree.mlir"]["x"], traces["tree.mlir"]["marker"]["symbol"]) == ([3], "star")
    assert traces["the cross-check differs"]["y"] == [0.05]


def test_hovering_tells_the_edits(page: Page) -> None:
    again = _traces(page)["measured again: error in the search"]
    assert again["text"][1] == "<b>#2</b><br>1. Saw(at=1)<br>2. Saw(at=2)<br>3. Saw(at=3)"
    assert again["hovertemplate"].endswith("%{text}")
    assert _traces(page)["front of the search"]["text"] == ["1. Saw(at=2)", "1. Saw(at=3)"]


def test_the_hypervolume_grows_from_the_baseline(page: Page) -> None:
    (line,) = (t for t in page.charts[1]["data"] if t["name"] == "hypervolume of the front")
    assert list(zip(line["x"], line["y"], strict=True)) == [(1, 1), (3, 1.5), (4, 2), (5, 2)]


def test_effects_are_grids_of_edits_alone_and_in_pairs(page: Page) -> None:
    cuts = front().finalists
    time, error = effect_grids(cuts[1], BOTH)
    assert [[cell.text for cell in row] for row in time.rows] == [
        ["0.900×", "0.50×", "—"],  # noqa: RUF001
        ["—", "—"],
        ["1.010×"],  # noqa: RUF001
    ]
    assert [cell.together for cell in time.rows[0]] == [False, True, False]
    assert [cell.kind for cell in time.rows[0]] == ["better", "better", ""]
    assert time.rows[2][0].kind == "", "within the noise"
    assert (error.rows[0][0].text, error.rows[2][0].kind) == ("−0.05000", "worse")  # noqa: RUF001
    assert (time.rows[1][0].why, time.rows[1][1].why) == ("not legal alone", "not measured")
    assert effect_grids(cuts[0], (TIME, ERROR)) == []
    assert [(places, cell.text, cell.together) for places, cell in time.triples] == [
        ("1, 2, 3", "0.25×", True)  # noqa: RUF001
    ]
    framed = [e for e in page.all("td") if "together" in e.attributes.get("class", "")]
    assert [e.text for e in framed] == ["0.50×"]  # noqa: RUF001
    assert [e.text for e in page.all("span") if e.attributes.get("class") == "together"] == ["0.25×"]  # noqa: RUF001
