"""What the report says first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from planish.core import Candidate, Measured, Objective, Task, Trial
from planish.report.data import read_report_data
from planish.report.verdict import Verdict, verdict_of
from planish.store import ResultRow, Store, open_store
from planish.tuning.comparison import Finalist
from report.planks import Planks, Saw, failed, finalist, measured, save_run, task_of, trial

COUNT = Objective("instructions")
X = "\N{MULTIPLICATION SIGN}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "planks.db") as opened:
        yield opened


def _verdict(
    store: Store, trials: Sequence[Trial], finalists: Sequence[Finalist] = (), task: Task | None = None
) -> Verdict:
    run_id = save_run(store, trials, finalists, task=task)
    return verdict_of(read_report_data(store, run_id, Planks()))


def test_a_gain_has_its_interval_and_both_medians(store: Store) -> None:
    found = _verdict(store, [measured(3, 0.5e-3, gflops=8.0)], [finalist(3, 0.5, "better", 0.2)])
    assert found.kind == "better"
    assert found.headline == f"2.00{X} faster than the baseline"
    assert found.grounds[:2] == (
        f"95 % confidence interval 1.67{X} to 2.50{X}",
        "median time 500.0 µs against 1.000 ms (8.000 against 4.000 GFLOPS)",
    )


def test_no_difference_is_said_as_plainly(store: Store) -> None:
    found = _verdict(store, [measured(3, 0.98e-3)], [finalist(3, 0.98, "same")])
    assert (found.kind, found.headline) == ("same", "No difference from the baseline")
    assert found.grounds[0].startswith(f"1.020{X}, which is within the noise: 95 % confidence interval 0.928")


def test_an_interval_too_wide_to_tell_is_undecided_and_says_how_to_go_on(store: Store) -> None:
    found = _verdict(store, [measured(3, 0.6e-3)], [finalist(3, 1 / 1.5, "undecided", 0.9)])
    assert found.kind == "undecided"
    assert found.headline == f"Undecided: about 1.50{X} as fast as the baseline, not settled"
    assert found.grounds[0].startswith("#1: 95 % confidence interval 0.79")
    assert found.grounds[0].endswith(", which is too wide to tell")
    assert found.grounds[-1] == (
        "repeat the command, or the call of planish.tune, that made this run: it settles the comparison first"
    )


def test_a_baseline_that_is_kept_for_want_of_a_verdict_is_no_lack_of_gain(store: Store) -> None:
    kept = finalist(0, 1.0, "same")
    run_id = save_run(
        store, [measured(0, 1e-3), measured(3, 0.6e-3)], [kept, finalist(3, 0.66, "undecided", 0.9)]
    )
    data = replace(read_report_data(store, run_id, Planks()), baseline=kept.candidate)
    found = verdict_of(data)
    assert (found.kind, data.keeps_baseline) == ("undecided", True)
    assert "until it is settled, the result is the baseline itself" in found.grounds
    settled = replace(data, baseline=Candidate((Saw(3),)))
    assert verdict_of(settled).kind == "same", "the other one is the same as the baseline"


def test_a_loss_is_said(store: Store) -> None:
    found = _verdict(store, [measured(3, 1.0)], [finalist(3, 1.25, "worse", 0.05)])
    assert (found.kind, found.headline) == ("worse", f"Slower than the baseline: 0.80{X}")


def test_what_is_no_time_is_better_and_not_faster(store: Store) -> None:
    trials = [trial(3, Measured({"instructions": 50.0}))]
    found = _verdict(store, trials, [finalist(3, 0.5, "better")], task_of("elm", COUNT))
    assert found.headline == f"2.00{X} better than the baseline"


def test_a_count_is_smaller_and_has_no_noise(store: Store) -> None:
    trials = [trial(3, Measured({"size": 75.0}))]
    exact = Objective("size", exact=True)
    found = _verdict(store, trials, [finalist(3, 0.75, "better")], task_of("elm", exact))
    assert found.headline == "25.00 % smaller than the baseline"
    assert not any("interval" in ground for ground in found.grounds)


def test_without_a_comparison_there_is_no_gain(store: Store) -> None:
    found = _verdict(store, [failed(0), measured(1, 2e-6), measured(2, 1e-6)])
    assert (found.kind, found.headline) == ("undecided", "Undecided: not compared with the baseline")
    assert found.grounds[0] == "best time of the search: 1.000 µs, in trial 3"


def test_a_finalist_without_figures_is_no_gain(store: Store) -> None:
    run_id = save_run(store, [measured(0, 1e-6)])
    store.resume_run(run_id)
    store.save_result(run_id, [ResultRow(Candidate((Saw(0),)), 3.0)])
    assert verdict_of(read_report_data(store, run_id, Planks())).kind == "open"


def test_nothing_measured_names_the_reasons(store: Store) -> None:
    found = _verdict(store, [failed(0), failed(1, "refused"), failed(2)])
    assert (found.kind, found.headline) == ("nothing", "Nothing could be measured")
    assert found.grounds == ("3 tried; build: timeout (2), build: refused (1)",)


def test_nothing_tried(store: Store) -> None:
    found = _verdict(store, [])
    assert (found.kind, found.headline, found.grounds) == (
        "nothing",
        "Nothing was tried",
        ("the run is finished",),
    )
