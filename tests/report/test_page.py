"""The HTML page: what is written, what a browser shows, and where its data are from."""

import gzip
import hashlib
import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any

import pytest

import planish
from planish.core import Candidate, Measured, Objective, PlanishError, TargetError, Trial, TrialPrediction
from planish.report import write_report
from planish.report.page import provenance, repeat
from planish.store import Store, open_store
from planish.tuning.result import Result, read_result
from planish.tuning.settings import Budget, Settings
from report.browser import charts, needs_browser, shown, width_in_narrow_window
from report.page import Page
from report.planks import (
    ERROR,
    TIME,
    Plank,
    Planks,
    Saw,
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
    path = write_report(read_result(store, run_id, level=Planks()), tmp_path / "new" / "report.html")
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
    assert len(page.charts) == 6
    links = [a.attributes["href"] for a in page.all("a")]
    assert links == [f"#{name}" for name in SECTIONS]


def test_the_file_needs_nothing_else(store: Store, tmp_path: Path) -> None:
    page = _page(store, save_run(store, _usual(), [finalist(2, 0.5, "better")]), tmp_path)
    assert not {e.tag for e in page.elements} & {"link", "img", "iframe", "object", "base"}
    assert all("src" not in e.attributes for e in page.elements)
    assert all(e.attributes["href"].startswith("#") for e in page.elements if "href" in e.attributes)
    policy = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy[0].attributes["content"].startswith("default-src 'none'; ")
    (code,) = page.all("script", id="plotly")
    assert "plotly.js" in gzip.decompress(b64decode(code.text))[:200].decode()
    rest = page.html.replace(code.text, "")
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
        assert "the search is still running" in _page(store, run_id, tmp_path).verdict[1]
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


MOST_BYTES = 1_500_000


@pytest.mark.slow
def test_the_largest_run_has_a_small_file(store: Store, tmp_path: Path) -> None:
    """Texts of megabytes, markup in them, hundreds of trials on the front, and long lists of steps."""
    noise, count = "<&\ud800>" * 10_000, 800
    long = Candidate(tuple(map(Saw, range(4000))))
    trials = [
        failed(i, f"reason {i % 500}", noise) if i % 2 else measured(i, 1 + i / 10, error=float(count - i))
        for i in range(count)
    ]
    trials[0] = replace(trials[0], candidate=long)
    finalists = [replace(finalist(i, 0.5, "better"), candidate=long.then(Saw(i))) for i in range(2, 40)]
    task = task_of("elm <tensor> " * 100_000, TIME, ERROR)
    path = tmp_path / "report.html"
    write_report(read_result(store, save_run(store, trials, finalists, task=task), level=Planks()), path)
    assert path.stat().st_size <= MOST_BYTES
    page = Page(path.read_text(encoding="utf-8"))
    assert "other reasons" in page.sections["failures"]
    assert len(page.charts) == 8


@pytest.mark.slow
def test_a_model_of_many_trials_has_a_small_file(store: Store, tmp_path: Path) -> None:
    trials = [
        replace(measured(i, 1 + i * 7919 % 997), prediction=TrialPrediction(float(i), i))
        for i in range(10_000)
    ]
    path = tmp_path / "report.html"
    run_id = save_run(store, trials, searcher="model-guided")
    write_report(read_result(store, run_id, level=Planks()), path)
    assert path.stat().st_size <= MOST_BYTES


def test_what_is_wrong_is_said(store: Store, tmp_path: Path) -> None:
    run_id = save_run(store, _usual())
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanishError, match="cannot be written to"):
        write_report(read_result(store, run_id, level=Planks()), tmp_path / "file" / "report.html")
    with pytest.raises(PlanishError, match="cannot be written to"):
        write_report(read_result(store, run_id, level=Planks()), tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_importing_draws_nothing() -> None:
    code = "import planish.report, sys; print([m for m in ('plotly', 'jinja2') if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_what_was_gained_comes_before_a_long_program(store: Store, tmp_path: Path) -> None:
    program = "; a module\n" + "declare void @f()\n" * 400
    run_id = save_run(store, [measured(0, 0.5e-3)], [finalist(0, 0.5, "better")], task=task_of(program))
    html = write_report(read_result(store, run_id, level=Planks()), tmp_path / "r.html").read_text()
    page = Page(html)
    assert html.index("faster than the baseline</strong>") < html.index("declare void @f()")
    (shown,) = [e for e in page.all("summary") if e.text.startswith("the program: ")]
    assert shown.text == "the program: a module"
    assert program.strip() in page.all("pre", kind="program wrapped")[0].text


def test_the_code_of_charts_is_what_its_authors_released() -> None:
    static = files("planish.report") / "static"
    known = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
    assert hashlib.sha256((static / "plotly-basic.min.js").read_bytes()).hexdigest() == known
    assert "MIT License" in (static / "LICENSE-plotly.txt").read_text()


@needs_browser
def test_every_chart_is_drawn(tmp_path: Path) -> None:
    trials = [measured(0, 2e-3, error=0.1), failed(1), measured(2, 1e-3, error=0.3)]
    with open_store(tmp_path / "planks.db") as store:
        run_id = save_run(store, trials, [finalist(2, 0.5, "better")], task=task_of("elm", TIME, ERROR))
        path = write_report(read_result(store, run_id, level=Planks()), tmp_path / "report.html")
    elements = shown(path)
    assert len(charts(elements)) == 7
    for text in (
        "best so far",
        "baseline 1.000 ms",
        "front",
        "times better than the baseline",
        "time of the run",
    ):
        assert f">{text}" in elements


@pytest.mark.slow
@needs_browser
def test_nothing_is_wider_than_a_narrow_window(tmp_path: Path) -> None:
    """Names without a blank, of programs, objectives, passes, hosts and failures, wrap."""
    long = "x" * 120
    named = Objective(f"time_{long}")
    trials = [Trial(Candidate((Saw(0),)), Measured({named.name: 2.0}), 0, host=long), failed(1, long, long)]
    with open_store(tmp_path / "planks.db") as store:
        found = replace(compared([finalist(0, 0.5, "better")], [named]), notes=(long,))
        run_id = save_run(store, trials, found, task=task_of(f"{long}\n{long}", named))
        path = write_report(read_result(store, run_id, level=Planks()), tmp_path / "report.html")
    assert width_in_narrow_window(path) <= 400


TEXT = "oak \"beam\" 'a' \\ {n}\nsecond <line>"


def _story(folder: Path, text: str = TEXT) -> Result:
    with open_store(folder / "planks.db") as store:
        run_id = save_run(store, [measured(0, 1.0), failed(1)], task=task_of(text, TIME, ERROR))
        result = read_result(store, run_id, level=Planks())
        assert result.stored_trials, "they are read while the store is open"
        return result


def test_the_trial_of_the_baseline_is_named(store: Store, tmp_path: Path) -> None:
    unchanged = replace(measured(0, 1e-3), candidate=Candidate())
    run_id = save_run(store, [unchanged, measured(1, 0.5e-3)])
    assert "Trial 1 is the baseline" in _page(store, run_id, tmp_path).sections["search"]
    other = save_run(store, [measured(1, 0.5e-3)])
    assert "is the baseline" not in _page(store, other, tmp_path).sections["search"]


def test_the_libraries_of_importances_may_be_missing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = [measured(number, 1e-3 * (1 + number % 5)) for number in range(30)]
    run_id = save_run(store, trials, [finalist(1, 0.5, "better")])
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(TargetError, match="scikit-learn"):
        planish.plot.importances(read_result(store, run_id, level=Planks()))
    assert "steps" in _page(store, run_id, tmp_path).sections


def test_what_decided_the_run_is_shown(tmp_path: Path) -> None:
    data = _story(tmp_path)
    facts = provenance(data)
    assert (
        facts["run"].items()
        >= {
            "run": data.run.id,
            "status": "finished",
            "trials": "2 (1 failed)",
            "planish": "1.2.3",
        }.items()
    )
    assert facts["search"] == {
        "searcher": "random",
        "temperature (option)": "0.5",
        "space": "cuts",
        "seed": "7",
    }
    assert facts["task"] == {
        "key": data.task.key,
        "level": "planks, version 1",
        "objectives": "time_s (s), less is better; error, less is better",
    }
    assert facts["target"] == {"processor": "bench", "cores": "2", "features": "clamp, vice", "saw": "2.1"}


def test_the_lines_tune_again_with_the_same_settings(tmp_path: Path) -> None:
    calls: list[tuple[str, Any]] = []

    def tune(program: str, **options: Any) -> None:
        calls.append((program, options))

    lines = repeat(_story(tmp_path))
    assert "from planish import Budget, Settings, tune\n" in lines
    exec(lines.replace(", tune\n", "\n"), {"tune": tune})
    settings = Settings(
        level="planks",
        objectives=("time_s", "error"),
        searcher="random",
        space="cuts",
        searcher_options={"temperature": "0.5"},
        seed=7,
        cores=2,
        remeasure=True,
    )
    assert calls == [(TEXT, {"budget": Budget(trials=2), "settings": settings})]


def test_a_searcher_that_is_not_installed_is_named(tmp_path: Path) -> None:
    result = _story(tmp_path)
    clients = replace(result, run=replace(result.run, searcher="clients"))
    assert "# 'clients' is not an installed searcher: choose another one.\n" in repeat(clients)
    assert "installed" not in repeat(result)


def test_a_long_program_is_read_from_a_file(tmp_path: Path) -> None:
    lines = repeat(_story(tmp_path, "oak " * 5000))
    assert len(lines) < 1000
    compile(lines, "repeat", "exec")
    assert "read_text" in lines
