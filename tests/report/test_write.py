"""The HTML file: whole, self-contained, and safe whatever the texts hold."""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from planish.core import Candidate, Measured, Objective, PlanishError, StoreError, Trial
from planish.report import write_report
from planish.store import Store, open_store
from report.page import Page
from report.planks import (
    ERROR,
    TIME,
    Plank,
    Planks,
    compared,
    failed,
    finalist,
    measured,
    save_run,
    task_of,
    trial,
)

EVIL = "</pre></script><script>alert(1)</script><img src=x onerror=alert(1)>&amp;\ud800\0"
SECTIONS = ["search", "finalists", "winner", "failures", "time", "provenance"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "planks.db") as opened:
        yield opened


def _page(store: Store, run_id: str, tmp_path: Path) -> Page:
    path = write_report(store, run_id, Planks(), tmp_path / "new" / "report.html")
    assert path == tmp_path / "new" / "report.html"
    return Page(path.read_text(encoding="utf-8"))


def _usual() -> list[Trial]:
    return [measured(0, 1e-3), failed(1, "refused", "no vice"), measured(2, 0.5e-3), failed(3)]


def test_a_finished_run(store: Store, tmp_path: Path) -> None:
    run_id = save_run(store, _usual(), [finalist(2, 0.5, "better"), finalist(0, 0.97, "same")])
    page = _page(store, run_id[:6], tmp_path)
    assert list(page.sections) == SECTIONS
    assert page.verdict[0] == "better"
    assert "faster than the baseline" in page.verdict[1]
    assert "for <cut> at Saw(at=2)" in page.sections["winner"]
    assert "program & size" in page.sections["winner"]
    assert "refused" in page.sections["failures"]
    assert "no vice" in page.sections["failures"]
    assert "25.0 %" in page.sections["failures"]
    assert run_id in page.sections["provenance"]
    assert [e.text for e in page.all("pre", kind="program wrapped")] == ["oak"]
    assert len(page.charts) == 5
    links = [a.attributes["href"] for a in page.all("a")]
    assert links == [f"#{name}" for name in SECTIONS]


def test_the_file_needs_nothing_else(store: Store, tmp_path: Path) -> None:
    page = _page(store, save_run(store, _usual(), [finalist(2, 0.5, "better")]), tmp_path)
    assert not {e.tag for e in page.elements} & {"link", "img", "iframe", "object", "base"}
    assert all("src" not in e.attributes for e in page.elements)
    assert all(e.attributes["href"].startswith("#") for e in page.elements if "href" in e.attributes)
    policy = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy[0].attributes["content"].startswith("default-src 'none'; ")
    code = [e for e in page.all("script") if "plotly.js" in e.text[:200]]
    assert len(code) == 1
    rest = page.html.replace(code[0].text, "")
    assert not re.search(r"https?:|//cdn|url\(|@import", rest)


def test_texts_cannot_become_markup(store: Store, tmp_path: Path) -> None:
    odd = Objective(EVIL[:60], "s")
    trials = [
        trial(0, Measured({"time_s": 1.0, odd.name: 2.0})),
        failed(1, EVIL, EVIL),
        measured(2, 2.0),
    ]
    run_id = save_run(store, trials, [finalist(0, 0.5, "better")], task=task_of(EVIL[:-2], TIME, odd))
    page = _page(store, run_id, tmp_path)
    plain = _page(store, save_run(store, _usual(), task=task_of("oak", TIME, ERROR)), tmp_path)
    assert not page.all("img")
    assert len(page.all("script")) - len(page.charts) == len(plain.all("script")) - len(plain.charts)
    assert page.all("pre", kind="program wrapped")[0].text == EVIL[:-2]
    assert "&amp;\\ud800" in page.sections["failures"]
    assert any(odd.name.removesuffix("_s") in str(chart) for chart in page.charts)


def test_an_interrupted_run(tmp_path: Path) -> None:
    with open_store(tmp_path / "planks.db") as store:
        run_id = save_run(store, _usual(), end=False)
        assert "the search goes on" in _page(store, run_id, tmp_path).verdict[1]
    with open_store(tmp_path / "planks.db", read_only=True) as store:
        page = _page(store, run_id, tmp_path)
    assert page.verdict[0] == "undecided"
    assert "interrupted" in page.verdict[1]
    assert list(page.sections) == [name for name in SECTIONS if name != "finalists"]
    assert "Best of the search" in page.sections["winner"]
    assert "not known" in page.sections["time"]


def test_a_run_of_one_trial(store: Store, tmp_path: Path) -> None:
    page = _page(store, save_run(store, [measured(0, 1e-3)], [finalist(0, 1.0, "same")]), tmp_path)
    assert page.verdict[0] == "same"
    assert "No difference from the baseline" in page.verdict[1]
    assert "No trial failed" in page.sections["failures"]


def test_a_run_without_a_measured_trial(store: Store, tmp_path: Path) -> None:
    page = _page(store, save_run(store, [failed(0), failed(1)]), tmp_path)
    assert list(page.sections) == ["failures", "time", "provenance"]
    assert "Nothing could be measured" in page.verdict[1]


def test_a_run_without_a_trial(store: Store, tmp_path: Path) -> None:
    page = _page(store, save_run(store, [], end=False), tmp_path)
    assert list(page.sections) == ["failures", "provenance"]
    assert page.charts == []


def test_several_objectives_have_their_trade_off(store: Store, tmp_path: Path) -> None:
    trials = [replace(measured(0, 1.0, error=0.1), candidate=Candidate()), measured(1, 0.5, error=0.3)]
    run_id = save_run(store, trials, [finalist(1, 0.5, "better")], task=task_of("elm", TIME, ERROR))
    page = _page(store, run_id, tmp_path)
    assert "tradeoffs" in page.sections
    diamonds = [t for c in page.charts for t in c["data"] if t.get("marker", {}).get("symbol") == "diamond"]
    assert [(t["name"], t["x"], t["y"]) for t in diamonds] == [
        ("baseline in the search", [1000], [0.1]),
        ("baseline", [1], [1e-3]),
    ]


def test_the_trials_stand_beside_the_baseline_of_the_search(store: Store, tmp_path: Path) -> None:
    trials = [replace(measured(0, 3.0), candidate=Candidate()), measured(1, 2.0), measured(2, 1.0)]
    page = _page(store, save_run(store, trials, [finalist(2, 0.5, "better")]), tmp_path)
    (line,) = (t for t in page.charts[0]["data"] if t["name"].startswith("baseline"))
    assert line["name"] == "baseline 3.000 s"
    assert line["y"] == [3, 3]


def test_values_that_are_not_finite_do_not_break_the_charts(store: Store, tmp_path: Path) -> None:
    task = task_of("elm", TIME, ERROR)
    found = compared([finalist(1, 0.5, "better")], task.objectives)
    base = found.baseline.lead
    odd = {**found.baseline.measured, "time_s": replace(base, median=inf, samples=(float("nan"), inf))}
    found = replace(found, baseline=replace(found.baseline, measured=odd))
    trials = [measured(0, float("inf"), error=1.0), measured(1, 1.0, error=float("nan"))]
    run_id = save_run(store, trials, found, task=task)
    assert not re.search(r"\b(NaN|Infinity)\b", str(_page(store, run_id, tmp_path).charts))


def test_a_program_that_the_level_refuses_today_is_still_reported(store: Store, tmp_path: Path) -> None:
    task = replace(task_of("oak"), program=Plank("rotten"))
    page = _page(store, save_run(store, _usual(), [finalist(2, 0.5, "better")], task=task), tmp_path)
    assert "this plank is <rotten>. Take another." in page.sections["winner"]
    assert "Saw(at=2)" in page.sections["winner"]


def test_thousands_of_trials_keep_the_file_small(store: Store, tmp_path: Path) -> None:
    noise = "x" * 10_000
    trials = [
        failed(i, f"reason {i % 500}", noise) if i % 2 else measured(i, 1 + (i * 7919 % 997), error=i / 10)
        for i in range(6000)
    ]
    run_id = save_run(store, trials, task=task_of("elm " * 500_000, TIME, ERROR))
    page = _page(store, run_id, tmp_path)
    assert len(page.html) < 8e6
    assert "other reasons" in page.sections["failures"]


def test_what_is_wrong_is_said(store: Store, tmp_path: Path) -> None:
    run_id = save_run(store, _usual())
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanishError, match="cannot be written to"):
        write_report(store, run_id, Planks(), tmp_path / "file" / "report.html")
    with pytest.raises(PlanishError, match="cannot be written to"):
        write_report(store, run_id, Planks(), tmp_path)
    with pytest.raises(StoreError, match="no run"):
        write_report(store, "zzz", Planks(), tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_importing_draws_nothing() -> None:
    code = "import planish.report, sys; print([m for m in ('plotly', 'jinja2') if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_what_was_gained_comes_before_a_long_program(store: Store, tmp_path: Path) -> None:
    program = "; a module\n" + "declare void @f()\n" * 400
    run_id = save_run(store, [measured(0, 0.5e-3)], [finalist(0, 0.5, "better")], task=task_of(program))
    html = write_report(store, run_id, Planks(), tmp_path / "r.html").read_text()
    page = Page(html)
    assert html.index("faster than the baseline</strong>") < html.index("declare void @f()")
    (shown,) = [e for e in page.all("summary") if e.text.startswith("the program: ")]
    assert shown.text == "the program: a module"
    assert program.strip() in page.all("pre", kind="program wrapped")[0].text
