"""`planish.plot`: figures of each kind of run, what is refused, and colors that readers can tell apart."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planish import plot as plot_module
from planish.core import ArgumentError, Candidate, Objective, PlanishError, Task, Trial, TrialPrediction, rng
from planish.plot.axes import BACKGROUNDS, COLORS, GREY
from planish.store import Store, open_store
from planish.tuning.comparison import Comparison, Finalist
from planish.tuning.result import Result, read_result
from report.fronts import BOTH, front
from report.planks import ERROR, TIME, Planks, Saw, failed, finalist, measured, save_run, task_of

plot: Any = plot_module  # plotly does not type the traces of its figures
OF_SEVERAL = (plot.history, plot.distribution, plot.stages, plot.comparison, plot.compare_runs)
OF_ONE = (plot.samples, plot.importances, plot.parallel_coordinates)
OF_MODELS = (plot.predictions, plot.rank_correlation)
OF_FRONTS = (plot.pareto_front, plot.hypervolume)
ALL = (*OF_SEVERAL, *OF_ONE, *OF_MODELS, *OF_FRONTS)
Draw = Callable[..., Any]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "planks.db") as opened:
        yield opened


def _read(
    store: Store,
    trials: Sequence[Trial],
    found: Comparison | Sequence[Finalist] = (),
    *,
    task: Task | None = None,
    searcher: str = "random",
    importance: Sequence[tuple[str, float]] = (),
) -> Result:
    run_id = save_run(store, trials, found, task=task, searcher=searcher, importance=importance)
    return read_result(store, run_id, level=Planks())


def _sawn(index: int, *cuts: int) -> Trial:
    """Return a trial whose time depends on whether there is a cut at 1, and on nothing else."""
    trial = measured(index, 0.5e-3 + index * 1e-9 if 1 in cuts else 1e-3 + index * 1e-9)
    prediction = TrialPrediction(trial.outcome.values["time_s"] * (-1) ** index, index // 8)  # type: ignore[union-attr]
    return replace(trial, candidate=Candidate(tuple(map(Saw, cuts))), prediction=prediction)


def _usual(store: Store, searcher: str = "model-guided") -> Result:
    """Read a run that has something for every figure of one objective."""
    cuts = [tuple(cut for cut in range(5) if index >> cut & 1) for index in range(32)]
    trials = [*(_sawn(index, *each) for index, each in enumerate(cuts)), failed(32)]
    found = [finalist(2, 0.5, "better"), finalist(3, 1.0, "same"), finalist(4, 1.5, "worse")]
    return _read(store, trials, found, searcher=searcher, importance=[("depth", 2.5), ("width", -0.5)])


def _front(store: Store) -> Result:
    start = replace(measured(0, 2e-3, error=0.2), candidate=Candidate())
    trials = [start, *(measured(i, 2e-3 / i, error=0.1 * i) for i in range(1, 9)), failed(9)]
    return _read(store, trials, front(), task=task_of("elm", *BOTH))


def _run_for(draw: Draw, store: Store) -> Result:
    return _front(store) if draw in OF_FRONTS else _usual(store)


def _titles(figure: Any) -> list[str]:
    return [axis.title.text for axis in (figure.layout.xaxis, figure.layout.yaxis) if axis.title.text]


@pytest.mark.parametrize("draw", ALL)
def test_a_run_has_a_figure_of_the_traces_that_reports_can_draw(draw: Draw, store: Store) -> None:
    figure = draw(_run_for(draw, store))
    assert {trace.type for trace in figure.data} <= {"scatter", "bar"}, "all that is in the basic bundle"
    assert any(len(trace.x) for trace in figure.data)
    assert figure.layout.template.layout.paper_bgcolor == BACKGROUNDS["planish"]
    if draw is not plot.parallel_coordinates:
        assert _titles(figure)


@pytest.mark.slow(after=8)
@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize(("template", "background"), [("planish_dark", "#15171b"), ("none", "rgba(0,0,0,0)")])
def test_figures_take_a_template(draw: Draw, store: Store, template: str, background: str) -> None:
    layout = draw(_run_for(draw, store), template=template).layout
    assert (layout.paper_bgcolor or layout.template.layout.paper_bgcolor) == background


@pytest.mark.parametrize("draw", [plot.history, plot.distribution, plot.samples])
def test_axes_are_named_with_their_units(draw: Draw, store: Store) -> None:
    assert any(title in ("time (ms)", "time (µs)") for title in _titles(draw(_usual(store))))


def test_history_runs_over_trials_or_time(store: Store) -> None:
    run = _usual(store)
    best = {over: _trace(plot.history(run, over=over), "best so far").x[-1] for over in ("trials", "time")}
    assert best["trials"] == 33
    assert best["time"] == pytest.approx(33, abs=1)
    assert _trace(plot.history(run), "failed").x == (33,)


def _trace(figure: Any, name: str) -> Any:
    (found,) = (trace for trace in figure.data if trace.name == name)
    return found


def test_the_distribution_ends_at_the_share_that_was_measured(store: Store) -> None:
    line = _trace(
        plot.distribution(_read(store, [measured(0, 2e-3), failed(1), measured(2, 1e-3)])), "trials"
    )
    assert line.x == (1, 2)
    assert line.y == pytest.approx((100 / 3, 200 / 3), rel=1e-4)


def test_a_comparison_has_the_gain_and_the_interval_of_each_finalist(store: Store) -> None:
    figure = plot.comparison(_usual(store))
    better = _trace(figure, "faster")
    assert better.x == (2,)
    assert (
        better.x[0] - better.error_x.arrayminus[0],
        better.x[0] + better.error_x.array[0],
    ) == pytest.approx((1 / 0.55, 1 / 0.45), rel=1e-4)
    assert [trace.name for trace in figure.data] == ["faster", "same", "slower"]
    assert len({trace.marker.symbol for trace in figure.data}) == 3
    assert figure.layout.yaxis.ticktext == ("#1", "#2", "#3")


def test_a_wide_interval_is_drawn_whole(store: Store) -> None:
    wide = finalist(3, 1 / 15, "undecided", 0.99)
    axis = plot.compare_runs(_read(store, [measured(3, 1e-3)], [wide])).layout.xaxis
    gain = wide.lead.gain
    assert axis.type == "log"
    assert 10 ** axis.range[0] <= min(1.0, gain.low)
    assert 10 ** axis.range[1] >= gain.high


def test_runs_are_ordered_by_their_gains(store: Store) -> None:
    trials = [measured(0, 1e-3)]
    runs = [_read(store, trials, [finalist(0, ratio, "better")]) for ratio in (0.9, 0.3, 0.6)]
    ids = [runs[index].run.id for index in (1, 2, 0)]
    assert plot.compare_runs(runs).layout.yaxis.ticktext == tuple(f"{each} · random" for each in ids)


@pytest.mark.parametrize("draw", [*OF_SEVERAL, plot.pareto_front])
def test_several_runs_are_drawn_together(draw: Draw, store: Store) -> None:
    runs = [_run_for(draw, store) for _ in range(2)]
    figure = draw(runs)
    drawn = " ".join([*(trace.name or "" for trace in figure.data), *(figure.layout.yaxis.ticktext or ())])
    assert all(run.run.id in drawn for run in runs)


def test_lines_of_several_runs_differ_in_more_than_their_colors(store: Store) -> None:
    runs = [_read(store, [measured(i, 1e-3 * (i + 1)) for i in range(3)]) for _ in range(5)]
    lines = [trace.line for trace in plot.history(runs).data if trace.name]
    assert len({line.color for line in lines}) == len({line.dash for line in lines}) == 5


def test_programs_are_named_where_they_differ(store: Store) -> None:
    runs = [_read(store, [measured(0, 1e-3)], task=task_of(text)) for text in ("oak", "elm")]
    names = [trace.name for trace in plot.history(runs).data if trace.name]
    assert names == [f"{runs[0].run.id} · random · oak", f"{runs[1].run.id} · random · elm"]


def test_the_axis_of_a_front_can_be_chosen(store: Store) -> None:
    size = Objective("size_bytes", "bytes")
    trials = [measured(i, i + 1.0, error=9.0 - i, size_bytes=2.0 + i) for i in range(3)]
    run = _read(store, trials, task=task_of("elm", TIME, ERROR, size))
    assert _titles(plot.pareto_front(run)) == ["time (s)", "error"]
    assert _titles(plot.pareto_front(run, against="size_bytes")) == ["time (s)", "size (bytes)"]
    with pytest.raises(PlanishError, match=r"no further objective 'size_byte'\. Did you mean 'size_bytes'"):
        plot.pareto_front(run, against="size_byte")


def test_steps_that_matter_are_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = plot.importances(_usual(store))
    assert figure.data[0].y[0] == "Saw 1"
    monkeypatch.delattr("planish.plot.steps.importances_of")  # takes seconds
    shown = plot.parallel_coordinates(_usual(store), top=2).layout.xaxis.ticktext
    assert (shown[0], shown[-1], len(shown)) == ("Saw 1", "time (ms)", 3)


def test_importances_are_left_out_where_they_say_nothing(store: Store) -> None:
    values = rng(7).permutation(64)
    trials = [
        replace(measured(i, 1e-3 * (1 + value)), candidate=Candidate((Saw(i % 8),)))
        for i, value in enumerate(values)
    ]
    few = _read(store, trials[:5])
    with pytest.raises(plot.NothingToDrawError, match=r"measured 5 candidates\. plot\.importances needs 20"):
        plot.importances(few)
    trials = [replace(each, candidate=Candidate((Saw(i % 8), Saw(100 + i)))) for i, each in enumerate(trials)]
    run = _read(store, trials)
    with pytest.raises(plot.NothingToDrawError, match="cannot predict the order of its trials"):
        plot.importances(run)
    assert plot.parallel_coordinates(run).data


@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize("wrong", ["3f2a", None, 7, [], ["3f2a"], [None]])
def test_what_is_no_result_is_refused(draw: Draw, wrong: object) -> None:
    with pytest.raises(PlanishError, match=rf"^plot\.{draw.__name__} (takes a Result|has no run)") as raised:
        draw(wrong)
    assert "load_run" in str(raised.value)


@pytest.mark.parametrize("draw", [*OF_SEVERAL, plot.pareto_front])
def test_runs_of_different_objectives_are_refused(draw: Draw, store: Store) -> None:
    runs = [_read(store, [measured(0, 1.0, error=1.0)], task=task_of("oak", each)) for each in (TIME, ERROR)]
    with pytest.raises(PlanishError, match="have different objectives, time_s and error"):
        draw(runs)


@pytest.mark.parametrize("draw", [*OF_ONE, *OF_MODELS, plot.hypervolume])
def test_figures_of_one_run_refuse_several(draw: Draw, store: Store) -> None:
    with pytest.raises(PlanishError, match=rf"plot\.{draw.__name__} shows one run, not 2"):
        draw([_usual(store), _usual(store)])


@pytest.mark.parametrize("draw", ALL)
def test_a_run_without_a_measured_trial_has_no_figure(draw: Draw, store: Store) -> None:
    run = _read(store, [failed(0)], task=task_of("oak", *BOTH) if draw in OF_FRONTS else None)
    if draw is plot.stages:
        assert plot.stages(run).data, "its time is known"
        return
    with pytest.raises(plot.NothingToDrawError, match=run.run.id):
        draw(run)


@pytest.mark.parametrize(
    ("draw", "options", "message"),
    [
        (plot.history, {"over": "days"}, "over= takes 'trials' or 'time', not 'days'"),
        (plot.stages, {"of": "worker"}, "of= takes 'run' or 'trial', not 'worker'"),
        (plot.importances, {"of": "knobs"}, "of= takes 'steps' or 'features', not 'knobs'"),
        (plot.importances, {"top": 0}, "top= takes a whole number of at least 1"),
        (plot.parallel_coordinates, {"top": "3"}, "top= takes a whole number, not '3'"),
        (plot.history, {"template": "planisch"}, "no template 'planisch'. Did you mean 'planish'"),
    ],
)
def test_wrong_options_are_named(draw: Draw, options: dict[str, Any], message: str, store: Store) -> None:
    with pytest.raises(ArgumentError, match=message):
        draw(_usual(store), **options)


def test_planish_loads_figures_when_they_are_asked_for() -> None:
    code = (
        "import planish, sys; before = 'planish.plot' in sys.modules; planish.plot.history; "
        "print(before, 'planish.plot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False True\n"


def _linear(color: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    assert re.fullmatch("#[0-9a-f]{6}", color)
    known = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(known <= 0.04045, known / 12.92, ((known + 0.055) / 1.055) ** 2.4)


def _contrast(one: str, other: str) -> float:
    """Return the contrast of WCAG 2.1."""
    low, high = sorted(float(_linear(each) @ [0.2126, 0.7152, 0.0722]) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


SIGHTS = {
    "usual": np.eye(3),
    # Machado, Oliveira and Fernandes, 2009, severity 1.
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def _lab(color: str, sight: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a color as it is seen, in CIELAB."""
    xyz = TO_XYZ @ np.clip(SIGHTS[sight] @ _linear(color), 0, 1) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("background", BACKGROUNDS.values())
@pytest.mark.parametrize("color", [*COLORS, GREY])
def test_marks_stand_out_from_the_background(color: str, background: str) -> None:
    assert _contrast(color, background) >= 3


@pytest.mark.parametrize("sight", SIGHTS)
def test_every_reader_can_tell_colors_apart(sight: str) -> None:
    differences = [np.linalg.norm(_lab(a, sight) - _lab(b, sight)) for a, b in combinations(COLORS, 2)]
    assert min(differences) > 20
