"""The part of the page that a run with several objectives has."""

from dataclasses import replace
from typing import Any

import pytest

from planish.core import Candidate
from planish.report import write_report
from planish.report.front_table import effect_grids
from planish.store import open_store
from report.fronts import BOTH, ERROR, front
from report.page import Page
from report.planks import TIME, Planks, failed, measured, save_run, task_of


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
        path = write_report(store, run, Planks(), folder / "report.html")
    return Page(path.read_text(encoding="utf-8"))


def _traces(page: Page) -> dict[str, Any]:
    """Give the front's figure: name to trace; lines to the final data have none."""
    return {trace["name"]: trace for trace in page.charts[0]["data"] if trace["name"]}


def test_the_front_comes_first_with_its_table(page: Page) -> None:
    assert list(page.sections) == ["tradeoffs", "search", "finalists", "failures", "time", "provenance"]
    text = page.sections["tradeoffs"]
    assert "tree.mlir" in text
    assert "same time, less error" in text
    assert "The second opinion differs: other numbers" in text
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
    assert traces["the second opinion differs"]["y"] == [0.05]


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
