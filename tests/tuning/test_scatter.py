"""The front drawn with characters."""

import pytest

from planish.core import Candidate, Measured, Objective, Step, Trial
from planish.core.front import HypervolumeTracker, growth_of
from planish.tuning.result_text import ASCII, FULL, Glyphs, scatter

TIME, ERROR, RATE = Objective("time_s", "s"), Objective("error", exact=True), Objective("rate", "/s", "up")
START = Candidate()


def grown(
    *points: tuple[float, float], objectives: tuple[Objective, ...] = (TIME, ERROR)
) -> HypervolumeTracker:
    """Return the growth of some points; the first is the baseline."""
    names = [o.name for o in objectives]
    trials = [
        Trial(Candidate((Step(),)) if i else START, Measured(dict(zip(names, point, strict=True))), i)
        for i, point in enumerate(points)
    ]
    return growth_of(trials, objectives, START)


def test_nothing_measured_is_nothing_drawn() -> None:
    assert scatter(HypervolumeTracker((TIME, ERROR))) == []


def test_each_is_where_it_belongs() -> None:
    growth = grown((2e-3, 0.5), (1e-3, 0.5), (1e-3, 0.25), (2e-3, 0.4), (9.0, 0.9))
    lines = scatter(growth, ASCII, 40, 10)
    assert lines[0] == "error   o front   # baseline"
    assert lines[-1].split() == ["0.9600", "ms", "time", "2.040", "ms"]
    drawn = [line.partition("|")[2] for line in lines[1:-2]]
    columns = {
        mark: [(line.find(mark), row) for row, line in enumerate(drawn) if mark in line] for mark in "#.o"
    }
    ((across, up),) = columns["#"]
    ((front_across, front_up),) = columns["o"]
    assert front_across < 4 < 25 < across
    assert up < 3 < front_up
    assert len(columns["."]) == 2, "the one beyond twice the baseline is left out"


def test_where_more_is_better_values_are_drawn_and_not_costs() -> None:
    lines = scatter(grown((10.0, 0.5), (30.0, 0.5), objectives=(RATE, ERROR)), ASCII, 40, 8)
    body = [line for line in lines[1:-2] if "#" in line or "o" in line]
    assert body[0].index("#") < body[0].index("o")


@pytest.mark.parametrize("glyphs", [ASCII, FULL])
@pytest.mark.parametrize("width", [30, 80])
def test_it_keeps_within_its_width(glyphs: Glyphs, width: int) -> None:
    points = [(1e-4 * (1 + i % 7), 0.1 + i / 100) for i in range(50)]
    lines = scatter(grown(*points), glyphs, width, 12)
    assert len(lines) == 12
    assert max(map(len, lines)) <= width
    assert all(line.isascii() for line in lines) or glyphs is FULL


def test_one_point_is_drawn() -> None:
    assert sum("◆" in line for line in scatter(grown((0.0, 0.0)))) == 2
