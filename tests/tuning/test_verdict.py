"""Verdicts in words, and the work of a program."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, Measured, Objective, Ratio, Task, Trial
from planish.core.wording import (
    amount,
    duration,
    interval,
    label,
    multiple,
    number,
    saved,
    scale,
    shorten,
    title,
    when,
    words,
)
from planish.store import ResultRow, Store, open_store
from planish.tuning.comparison import Finalist
from planish.tuning.result import read_result
from planish.tuning.stored_run import flops_of
from planish.tuning.verdict import RunVerdict, verdict_of
from report.planks import TIME, Planks, Saw, failed, finalist, measured, save_run, task_of, trial

COUNT = Objective("instructions")
X = "\N{MULTIPLICATION SIGN}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "planks.db") as opened:
        yield opened


def _verdict(
    store: Store, trials: Sequence[Trial], finalists: Sequence[Finalist] = (), task: Task | None = None
) -> RunVerdict:
    run_id = save_run(store, trials, finalists, task=task)
    return verdict_of(read_result(store, run_id, level=Planks()))


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
    found = _verdict(store, [measured(3, 0.6e-3)], [finalist(3, 1 / 1.5, "undecided", 0.6)])
    assert found.kind == "undecided"
    assert found.headline == f"Undecided: about 1.50{X} as fast as the baseline"
    assert found.grounds[0].startswith("#1: 95 % confidence interval 0.938")
    assert found.grounds[0].endswith(", which is too wide to decide")
    assert found.grounds[-1] == (
        "repeat the command, or the call of planish.tune, that made this run: "
        "it completes the comparison first"
    )


def test_no_gain_is_named_where_the_interval_is_wider_than_ten_times(store: Store) -> None:
    found = _verdict(store, [measured(3, 0.6e-3)], [finalist(3, 1 / 15, "undecided", 0.9)])
    assert found.headline == "Undecided: the measurements are too noisy"
    assert found.grounds[0].startswith(f"#1: 95 % confidence interval 7.89{X} to 150{X}")


def test_a_baseline_that_is_kept_for_want_of_a_verdict_is_no_lack_of_gain(store: Store) -> None:
    kept = finalist(0, 1.0, "same")
    run_id = save_run(
        store, [measured(0, 1e-3), measured(3, 0.6e-3)], [kept, finalist(3, 0.66, "undecided", 0.9)]
    )
    result = read_result(store, run_id, level=Planks()).at_hand(baseline_candidate=kept.candidate)
    found = verdict_of(result)
    assert (found.kind, result.keeps_baseline) == ("undecided", True)
    assert "until it is decided, the result is the baseline" in found.grounds
    assert (result.candidate, result.described) == (kept.candidate, Candidate((Saw(3),)))
    assert result.describe()["cuts"] == result.description["cuts"] == "for <cut> at Saw(at=3)"
    result.at_hand(baseline_candidate=Candidate((Saw(3),)))
    assert verdict_of(result).kind == "same", "the other one is the same as the baseline"


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
    assert verdict_of(read_result(store, run_id, level=Planks())).kind == "open"


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


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.5, "s", "1.500 s"),
        (0.0123456, "s", "12.35 ms"),
        (70.1e-6, "s", "70.10 µs"),
        (3e-9, "s", "3.000 ns"),
        (2e-12, "s", "0.002000 ns"),
        (0.0, "s", "0 s"),
        (201.94, "GFLOPS", "201.9 GFLOPS"),
        (1234567.0, "", "1,234,567"),
        (1234567.0, "B", "1,234,567 B"),
        (1234567.8, "", "1,234,568"),
        (0.0125, "", "0.01250"),
        (math.nan, "s", "not a number s"),
        (-math.inf, "", "-∞"),
    ],
)
def test_amounts(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1.234e-5, "12.3 µs"),
        (0.2, "200 ms"),
        (119.4, "119 s"),
        (125, "2 min 5 s"),
        (7620, "2 h 7 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.789, "1.79"), (1.034, "1.034"), (12.34, "12.3"), (1234, "1,234"), (0.0123, "0.012"), (math.inf, "∞")],
)
def test_multiples(ratio: float, text: str) -> None:
    assert multiple(ratio) == f"{text}\N{MULTIPLICATION SIGN}"


@given(st.floats(1e-9, 1e6))
def test_scaled_seconds_are_between_one_and_a_thousand(seconds: float) -> None:
    factor, unit = scale(seconds, "s")
    assert 1 <= seconds * factor < 1000.001 or unit == "s"
    assert seconds * factor == pytest.approx(
        seconds / {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit], rel=1e-12
    )


@given(st.floats(1e-6, 1e12))
def test_a_number_reads_back_to_four_digits(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=5.1e-4)


def test_names_times_and_long_texts() -> None:
    assert label(Objective("time_s", "s")) == "time"
    assert label(Objective("error")) == "error"
    assert when(0) == "1970-01-01 00:00:00 UTC"
    assert when(None) == "—"
    assert title("; a.ll: 2 functions\nsource_filename") == "a.ll: 2 functions"
    assert title("C[m] = A[m]") == "C[m] = A[m]"
    assert [saved(gain) for gain in (1.25, 1.0, 0.5)] == ["20.00 %", "0.00 %", "-100.00 %"]
    assert words(Objective("size", exact=True)) == {"better": "smaller", "worse": "larger"}
    assert words(Objective("size", direction="up", exact=True)) == {"better": "better", "worse": "worse"}
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd" * 500, 3) == "abc\n… (1,997 characters more)"


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (Ratio(1.36, 1.09, 1.62), "1.090x to 1.62x"),
        (Ratio(40.8, 1.1e-5, 153_376_719), "<0.001x to >1,000x"),
        (Ratio(0.5, 1e-4, 1.2), "<0.001x to 1.20x"),
        (Ratio(2000, 1500, 2500), "1,500x to 2,500x"),
    ],
)
def test_an_interval_around_1_is_written_only_as_far_as_it_means_something(gain: Ratio, text: str) -> None:
    assert interval(gain) == text.replace("x", "\N{MULTIPLICATION SIGN}")


RATE = Objective("rate", "1/s", "up")


def test_work_is_reported_by_trials_with_rate_and_time() -> None:
    trial = measured(2, 0.5, gflops=8.0)
    assert flops_of(trial, TIME) == 4
    assert flops_of(trial, RATE) is None
    assert [flops_of(each, TIME) for each in (None, failed(0), measured(1, 2.0))] == [None] * 3
