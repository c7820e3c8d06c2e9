"""What a run with several objectives shows and writes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cli.conftest import PROGRAM, Planish
from planish.cli.summary import show_front, show_front_table, show_members
from planish.core import Candidate
from planish.core.front import HypervolumeTracker
from planish.report.page import FrontTable
from planish.store import open_store
from planish.tuning.progress import ProgressDisplay, RunStatus
from planish.tuning.recorder import Progress
from planish.tuning.result import Result, read_result
from planish.tuning.settings import Budget
from report import fronts
from report.fronts import BOTH
from report.planks import Planks, measured, save_run, task_of

TRADE = ("tune", PROGRAM, "--objective", "time,gflops", "--trials", 20, "--finalists", 2)
START = replace(measured(0, 2e-3, error=0.2), candidate=Candidate())


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Result]:
    with open_store(tmp_path / "planks.db") as store:
        trials = [START, measured(1, 1e-3, error=0.2), measured(2, 2e-3, error=0.1)]
        yield read_result(
            store, save_run(store, trials, fronts.front(), task=task_of("elm", *BOTH)), level=Planks()
        )


def test_the_front_is_plotted_and_listed(data: Result, capsys: pytest.CaptureFixture[str]) -> None:
    show_front(data)
    said = capsys.readouterr().out
    assert said.startswith("error   ● front   ◆ baseline\n")
    assert "hypervolume 2.000 (baseline 1), reached after 3 evaluations" in said
    rows = [line.split() for line in said.splitlines() if line.startswith(("#", "baseline", "secondary "))]
    assert [row[0] for row in rows][:6] == ["baseline", "secondary", "#1", "#2", "#3", "#4"]
    assert "#4: other numbers" in said


def test_in_a_narrow_terminal_the_scores_have_a_table_of_their_own(
    data: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    show_front(data, 80)
    heads = [
        line.split()
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("   ") and "e" in line
    ]
    assert ["time", "gain", "error", "edits", "cross-check", "verdict"] in heads
    assert ["search", "validation", "final"] in heads


def test_columns_of_one_name_keep_their_own_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    columns = ("", "one", "gain", "other", "gain")
    row = ("#1", "1 ms", "17.8", "2 ms", "1.23")
    made = FrontTable(columns, frozenset(columns), frozenset(), (row,), "")
    show_front_table(made, 1000)
    assert ["#1", "1", "ms", "17.8", "2", "ms", "1.23"] in map(
        str.split, capsys.readouterr().out.splitlines()
    )


def test_each_of_a_front_tells_its_changes(data: Result, capsys: pytest.CaptureFixture[str]) -> None:
    show_members(data, effects=True)
    said = capsys.readouterr().out
    assert "#2: cuts\n--------\nfor <cut> at Saw(at=1)" in said
    assert "effects of single edits and of pairs: time, times the baseline's" in said
    assert "0.50×*" in said  # noqa: RUF001
    assert "1, 2, 3 together: 0.25×*" in said  # noqa: RUF001
    assert "* differs from the effects of both alone" in said
    show_members(data, effects=False)
    assert "effect of" not in capsys.readouterr().out


def test_tune_and_show_write_all_of_it_as_json(planish: Planish, lattice: None) -> None:
    del lattice
    tuned = json.loads(planish(*TRADE, "--format", "json").out)
    shown = json.loads(planish("show", tuned["run"]["id"], "--format", "json").out)
    assert shown == {name: value for name, value in tuned.items() if name not in ("again", "files")}
    grew = tuned["hypervolume"]["grew"]
    assert grew[0] == {"evaluations": 1, "value": 1.0}
    assert tuned["hypervolume"]["value"] == grew[-1]["value"]
    assert tuned["hypervolume"]["evaluations"] == 20
    assert set(tuned["hypervolume"]["reference"]) == {"time_s", "gflops"}
    assert tuned["front"][0]["values"]["time_s"] == min(f["values"]["time_s"] for f in tuned["front"])
    assert set(tuned["finalists"][0]["objectives"]) == {"time_s", "gflops"}
    assert {"cross_check", "edits", "main_effects", "scores", "trial"} <= set(tuned["finalists"][0])
    assert set(tuned["baseline"]["objectives"]) == {"time_s", "gflops"}
    assert len(tuned["descriptions"]) == len(tuned["finalists"])


@pytest.mark.slow
def test_without_a_terminal_lines_report_the_front(planish: Planish, lattice: None) -> None:
    del lattice
    said = planish(*TRADE, "--option", "pause=0.06")
    assert "front of 1: time " in said.err
    assert "hypervolume " in said.err
    assert "#1" in said.out


@pytest.mark.parametrize("width", [50, 80])
def test_the_live_plot_fits_the_terminal(data: Result, width: int) -> None:
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None)
    display = ProgressDisplay(console=console)
    progress = Progress(
        task_of("elm", *BOTH), "1a2b3c4d", hypervolume=HypervolumeTracker(BOTH, START.candidate)
    )
    display.begin(RunStatus(progress, Budget(trials=10)))
    for trial in data.stored_trials:
        progress.add(trial)
    with console.capture() as drawn:
        console.print(display.draw())
    lines = drawn.get().splitlines()
    assert any(line.startswith("error   ● front") for line in lines)
    assert sum("◆" in line for line in lines) == 2
    assert max(map(len, lines)) <= width


def test_a_baseline_that_fails_ends_the_run_at_once(planish: Planish, lattice: None) -> None:
    del lattice
    said = planish(*TRADE, "--option", "fail=yes", "--format", "json")
    assert said.code == 2
    assert said.error.startswith(
        "the baseline failed: build: refused: as asked. Fix the program, data or metric,"
    )
    (run,) = json.loads(planish("show", "--format", "json").out)["runs"]
    assert (run["status"], run["trials"]) == ("failed", 1)
