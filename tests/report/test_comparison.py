"""The page of several runs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from planish.core import Candidate, PlanishError, Task, Trial
from planish.report import write_report
from planish.store import Store, open_store
from planish.tuning.comparison import Finalist
from planish.tuning.result import Result, read_result
from report.browser import charts, needs_browser, shown, width_in_narrow_window
from report.page import Page
from report.planks import ERROR, TIME, Planks, failed, finalist, measured, save_run, task_of

SECTIONS = ["runs", "gains", "search", "distribution", "time", "differences"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "planks.db") as opened:
        yield opened


def _run(
    store: Store,
    trials: Sequence[Trial],
    found: Sequence[Finalist] = (),
    *,
    task: Task | None = None,
    searcher: str = "random",
    end: bool = True,
) -> Result:
    run_id = save_run(store, trials, found, task=task, searcher=searcher, end=end)
    return read_result(store, run_id, level=Planks())


def _page(runs: Sequence[Result], folder: Path) -> Page:
    return Page(write_report(runs, folder / "runs.html").read_text(encoding="utf-8"))


def test_runs_stand_beside_each_other(store: Store, tmp_path: Path) -> None:
    runs = [
        _run(store, [measured(0, 1e-3), failed(1)], [finalist(0, 0.5, "better")]),
        _run(store, [measured(2, 9e-4)], [finalist(2, 0.9, "same")], searcher="genetic"),
        _run(store, [measured(3, 8e-4)], end=False, searcher="policy"),
    ]
    page = _page(runs, tmp_path)
    assert list(page.sections) == SECTIONS
    table = page.sections["runs"]
    for result in runs:
        assert result.run.id in table
    assert "2.00\N{MULTIPLICATION SIGN}" in table
    assert "900.0 µs" in table
    assert "800.0 µs" in table, "a run that was not compared has the best of its search"
    assert "faster" in table
    assert "undecided" in table or "not compared" in table
    assert "genetic" in page.sections["differences"]
    assert "the same search" not in page.html
    assert [e.text for e in page.all("pre", kind="program wrapped")] == ["oak"]


def test_each_chart_has_every_run(store: Store, tmp_path: Path) -> None:
    runs = [
        _run(store, [measured(at, 1e-3), measured(9, 2e-3)], [finalist(at, 0.5, "better")]) for at in (0, 1)
    ]
    gains, trials, time, distribution, whole, each = _page(runs, tmp_path).charts
    names = {f"{result.run.id} · random" for result in runs}
    assert set(gains["layout"]["yaxis"]["ticktext"]) == names
    for chart in (trials, time, distribution, whole, each):
        assert names == {trace["name"] for trace in chart["data"] if trace["name"]}


def test_fronts_are_drawn_together(store: Store, tmp_path: Path) -> None:
    trials = [replace(measured(0, 1.0, error=0.1), candidate=Candidate()), measured(1, 0.5, error=0.3)]
    runs = [_run(store, trials, task=task_of("elm", TIME, ERROR)) for _ in range(2)]
    assert "front" in _page(runs, tmp_path).sections


def test_runs_of_several_programs_say_so(store: Store, tmp_path: Path) -> None:
    runs = [_run(store, [measured(0, 1e-3)], task=task_of(text)) for text in ("oak", "elm")]
    page = _page(runs, tmp_path)
    assert "The runs are of 2 programs" in page.html
    assert "elm" in page.sections["runs"]


def test_runs_without_a_measured_trial_are_compared(store: Store, tmp_path: Path) -> None:
    page = _page([_run(store, [failed(0)]), _run(store, [], end=False)], tmp_path)
    assert list(page.sections) == ["runs", "time", "differences"]
    assert "nothing measured" in page.sections["runs"]


def test_what_cannot_be_compared_is_refused(store: Store, tmp_path: Path) -> None:
    one = _run(store, [measured(0, 1e-3)])
    by_error = _run(store, [measured(0, 1e-3, error=0.5)], task=task_of("oak", ERROR))
    elsewhere = replace(one, stored=replace(one.stored, level="beams"), run=replace(one.run, id="other"))
    refusals = {
        f"run {one.run.id} is named twice": one,
        f"runs {one.run.id} and {by_error.run.id} have different objectives, time_s and error": by_error,
        f"runs {one.run.id} and other are of different levels, 'planks' and 'beams'": elsewhere,
    }
    for message, other in refusals.items():
        with pytest.raises(PlanishError, match=message):
            write_report([one, other], tmp_path / "runs.html")
    assert not (tmp_path / "runs.html").exists()


@pytest.mark.slow
@needs_browser
def test_every_chart_is_drawn_and_fits_a_narrow_window(store: Store, tmp_path: Path) -> None:
    trials = [replace(measured(0, 1.0, error=0.1), candidate=Candidate()), measured(1, 0.5, error=0.3)]
    task = task_of(f"{'x' * 120} <b>", TIME, ERROR)
    runs = [_run(store, trials, [finalist(1, 0.5, "better")], task=task) for _ in range(3)]
    path = write_report(runs, tmp_path / "runs.html")
    elements = shown(path)
    assert len(charts(elements)) == 7
    assert "best time so far" in elements
    assert all(f">{run.run.id} · random" in elements for run in runs)
    assert width_in_narrow_window(path) <= 400
