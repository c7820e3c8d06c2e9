"""Results in Python and in notebooks: the repr, HTML, the summary, records and tables of trials."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from importlib.util import find_spec
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace

import pytest

from planish.core import TargetError, Task, Trial
from planish.store import Store, open_store
from planish.tuning.comparison import Finalist
from planish.tuning.result import Result, read_result
from report.planks import TIME, Planks, failed, finalist, measured, save_run, task_of

in_notebook = methodcaller("_repr_html_")
X = "\N{MULTIPLICATION SIGN}"
TRIALS = [measured(0, 1e-3), measured(1, 2e-3), failed(2), measured(3, 0.5e-3)]
BETTER = [finalist(3, 0.5, "better", 0.2)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "planks.db") as opened:
        yield opened


def stored(
    store: Store,
    trials: Sequence[Trial] = TRIALS,
    finalists: Sequence[Finalist] = BETTER,
    task: Task | None = None,
) -> Result:
    run_id = save_run(store, trials, finalists, task=task)
    return read_result(store, run_id, level=Planks())


class Texts(HTMLParser):
    """Collects the texts and the tags of a page, and requires that tags are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts, self.tags, self._open = list[str](), list[str](), list[str]()
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.append(tag)
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_repr_is_three_lines(store: Store) -> None:
    run, program, verdict = repr(result := stored(store)).splitlines()
    assert run == f"Run {result.run.id} (level planks, searcher {result.run.searcher}): finished, 4 trials"
    assert program.startswith("Program: ")
    assert (
        verdict == f"Verdict: 2.00{X} faster than the baseline; 95 % confidence interval 1.67{X} to 2.50{X}"
    )


def test_a_repr_does_not_raise_where_the_store_is_gone(tmp_path: Path) -> None:
    with open_store(tmp_path / "planks.db") as store:
        result = stored(store, finalists=())
    for file in tmp_path.iterdir():
        file.unlink()
    *_, verdict = repr(result).splitlines()
    assert verdict.startswith("Verdict: not known: there is no store")
    assert "<svg" not in in_notebook(result)


def test_a_long_program_of_many_lines_is_one_short_line(store: Store) -> None:
    lines = repr(stored(store, task=task_of("oak " * 99 + "\nsecond line", TIME))).splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) < 130


def test_a_notebook_shows_the_verdict_the_comparison_and_a_chart_without_any_script(store: Store) -> None:
    found = Texts(in_notebook(stored(store)))
    assert found.texts[0] == f"2.00{X} faster than the baseline; 95 % confidence interval 1.67{X} to 2.50{X}"
    assert {"baseline", "#1", f"2.00{X}", f"1.67{X} to 2.50{X}", "faster"} <= set(found.texts)
    assert "best time over 4 trials: 1.000 ms to 500.0 µs" in found.texts
    assert {"table", "svg", "polyline"} <= set(found.tags)
    assert "script" not in found.tags


def test_texts_of_a_program_are_escaped(store: Store) -> None:
    page = in_notebook(stored(store, task=task_of("<script>alert(1)</script>", TIME)))
    assert "<script" not in page
    assert "<script>alert(1)</script>" in "".join(Texts(page).texts)


def test_a_run_in_which_all_failed_has_no_chart(store: Store) -> None:
    result = stored(store, [failed(0), failed(1)], ())
    assert "svg" not in Texts(in_notebook(result)).tags
    assert "Nothing could be measured" in repr(result)


def test_the_summary_has_the_grounds_the_table_the_failures_and_the_notes(store: Store) -> None:
    text = stored(store).summary()
    assert f"2.00{X} faster than the baseline.\n  95 % confidence interval" in text
    table = [line.split() for line in text.splitlines() if line.startswith(("baseline", "#1"))]
    assert table == [
        ["baseline", "1.000", "ms"],
        ["#1", "500.0", "µs", f"2.00{X}", f"1.67{X}", "to", f"2.50{X}", "faster"],
    ]
    assert "1 of 4 trials failed:" in text


def test_trials_are_plain_records(store: Store) -> None:
    first, *_, third, last = stored(store).trials()
    assert (first["index"], first["state"], first["time_s"], first["reason"]) == (0, "measured", 1e-3, None)
    assert (third["state"], third["time_s"]) == ("failed", None)
    assert third["reason"]
    assert last["steps"] == [str(step) for step in BETTER[0].candidate.steps]
    assert first.keys() == third.keys()


def test_without_pandas_an_error_names_what_serves_instead(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        TargetError, match=r"needs pandas, which is not installed.*pip install pandas.*trials\(\)"
    ):
        stored(store).trials_dataframe()


def test_with_pandas_each_trial_is_a_row(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    result = stored(store)
    if find_spec("pandas") is None:  # then what is handed to it is shown by a stand-in
        frame = SimpleNamespace(DataFrame=SimpleNamespace(from_records=list))
        monkeypatch.setitem(sys.modules, "pandas", frame)
        assert result.trials_dataframe() == result.trials()
        return
    table = result.trials_dataframe()
    assert len(table) == 4
    assert table["time_s"].min() == 0.5e-3
    assert list(table.columns) == list(result.trials()[0])
