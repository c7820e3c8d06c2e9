"""Who failed when it was measured again, or was left out, is shown among the finalists as just that."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planish.cli.summary import result_document, show_result
from planish.core import Candidate
from planish.report import write_report
from planish.report.data import ReportData, read_report_data
from planish.store import open_store
from planish.tuning.comparison import Comparison
from report import fronts
from report.page import Page
from report.planks import Planks, compared, finalist, measured, save_run, task_of
from report.unmeasured import LATE, WRONG, with_unmeasured

ONE = compared([finalist(2, 0.5, "better"), finalist(0, 0.97, "same")])


def kept(folder: Path, found: Comparison) -> tuple[ReportData, Page]:
    """Store a comparison; gives what is read of it, and its page."""
    task = task_of("elm", *found.objectives)
    trials = [replace(measured(0, 2e-3, error=0.2), candidate=Candidate()), measured(2, 5e-4, error=0.1)]
    with open_store(folder / "planks.db") as store:
        run = save_run(store, trials, found, task=task)
        page = write_report(store, run, Planks(), folder / "report.html")
        return read_report_data(store, run, Planks()), Page(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("found", [ONE, fronts.front()], ids=["one", "several"])
def test_it_is_shown_by_the_terminal_and_the_report(
    found: Comparison, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, page = kept(tmp_path, with_unmeasured(found))
    count = len(found.finalists)
    assert data.finalists == found.finalists, "they are no finalists to be chosen from"
    show_result(data)
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("#")}
    assert list(rows)[: count + 2] == [f"#{place}" for place in range(1, count + 3)]
    assert rows[f"#{count + 1}"].rstrip().endswith("failed: verify: wrong answer")
    assert rows[f"#{count + 2}"].rstrip().endswith("undecided")
    text = page.sections["tradeoffs" if count > 2 else "finalists"]
    assert text.count("failed: verify: wrong answer") == 1
    assert "undecided" in text


@pytest.mark.parametrize("found", [ONE, fronts.front()], ids=["one", "several"])
def test_it_is_told_to_programs(found: Comparison, tmp_path: Path) -> None:
    data, _ = kept(tmp_path, with_unmeasured(found))
    document = json.loads(json.dumps(result_document(data)))
    assert len(document["finalists"]) == len(found.finalists)
    rows = [(each["verdict"], each["why"], each["hash"]) for each in document["unmeasured"]]
    assert rows == [
        ("failed", "verify: wrong answer", WRONG.candidate.hash),
        ("undecided", "", LATE.candidate.hash),
    ]
    assert document["unmeasured"][0]["edits"] == {"searched": 3, "left": 1}


def test_where_there_is_none_nothing_is_said(tmp_path: Path) -> None:
    data, page = kept(tmp_path, compared([finalist(2, 0.5, "better")]))
    assert "unmeasured" not in result_document(data)
    assert "undecided" not in page.sections["finalists"]
