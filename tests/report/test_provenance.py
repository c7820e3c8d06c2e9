"""Where a result comes from, and whether the lines that repeat it do."""

from pathlib import Path
from typing import Any

import pytest

import planish
from planish.budget import Budget
from planish.report.data import ReportData, read_report_data
from planish.report.page import provenance, repeat
from planish.settings import Settings
from planish.store import open_store
from report.planks import ERROR, TIME, Planks, failed, measured, save_run, task_of

TEXT = "oak \"beam\" 'a' \\ {n}\nsecond <line>"


def _story(folder: Path, text: str = TEXT) -> ReportData:
    with open_store(folder / "planks.db") as store:
        run_id = save_run(store, [measured(0, 1.0), failed(1)], task=task_of(text, TIME, ERROR))
        return read_report_data(store, run_id, Planks())


def test_what_decided_the_run_is_told(tmp_path: Path) -> None:
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


def test_the_lines_tune_again_with_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []

    def tune(program: str, **options: Any) -> None:
        calls.append((program, options))

    monkeypatch.setattr(planish, "tune", tune)
    exec(repeat(_story(tmp_path)), {})
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


def test_a_long_program_is_read_from_a_file(tmp_path: Path) -> None:
    lines = repeat(_story(tmp_path, "oak " * 5000))
    assert len(lines) < 1000
    compile(lines, "repeat", "exec")
    assert "read_text" in lines
