"""Figures of comparisons with the baseline: gains with their intervals, samples, and several runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from planish.core import Objective, Ratio
from planish.core.wording import amount, interval, label, multiple, verdict_word
from planish.plot.axes import (
    BLUE,
    COUNTS,
    GREEN,
    LIGHT,
    ORANGE,
    RED,
    PlotAxis,
    axis_of,
    blank,
    put,
    scaled,
)
from planish.plot.runs import NothingToDrawError, Results, one_result, results_of, run_names
from planish.tuning.comparison import Finalist
from planish.tuning.result import Result

SAMPLE_POINTS = 200
"""Points drawn of one sample at most."""

_GOLDEN = 0.6180339887498949
_ROW_PX = 46
_GAIN_ROW_PX = 34


@dataclass(frozen=True)
class Box:
    """A sample in five numbers (Tukey's box plot).

    Args:
        quartiles: the lower one, the median, the upper one.
        whiskers: the farthest samples within 1.5 times the box's length.
    """

    quartiles: tuple[float, float, float]
    whiskers: tuple[float, float]


@dataclass(frozen=True)
class ChartRow:
    """One line of the chart.

    Args:
        name: of the side that the samples are of.
        box: of all of them.
        points: sorted; of many, evenly many of all parts, and both ends; none outside the window.
        jitter: a position for each point across the line, from 0 to 1.
        beyond: how many lie outside the window.
        count: how many there are.
    """

    name: str
    box: Box
    points: tuple[float, ...]
    jitter: tuple[float, ...]
    beyond: int
    count: int


@dataclass(frozen=True)
class Strip:
    """Box plots in one window.

    Args:
        rows: the sides that have samples.
        window: the range that holds all whiskers and some more. Interruptions of the machine lie far beyond,
            and would press the boxes flat.
    """

    rows: tuple[ChartRow, ...]
    window: tuple[float, float]


def strip_of(samples: Mapping[str, Sequence[float]]) -> Strip | None:
    """Return the data that is drawn of the finite samples of all sides, by name; None for none."""
    finite = {name: sorted(v for v in known if math.isfinite(v)) for name, known in samples.items()}
    boxes = {name: _box(known) for name, known in finite.items() if known}
    if not boxes:
        return None
    window = _window(list(boxes.values()))
    return Strip(tuple(_row(name, box, finite[name], window) for name, box in boxes.items()), window)


def _box(known: Sequence[float]) -> Box:
    lower, middle, upper = (
        statistics.quantiles(known, n=4, method="inclusive") if len(known) > 1 else (known[0],) * 3
    )
    reach = 1.5 * (upper - lower)
    inside = [s for s in known if lower - reach <= s <= upper + reach]
    return Box((lower, middle, upper), (inside[0], inside[-1]))


def _window(boxes: Sequence[Box]) -> tuple[float, float]:
    low, high = min(box.whiskers[0] for box in boxes), max(box.whiskers[1] for box in boxes)
    margin = (high - low) / 10 or abs(high) / 10 or 1.0
    # What is above zero stays there, for a logarithmic axis.
    return low - (min(margin, low / 2) if low > 0 else margin), high + margin


def _row(name: str, box: Box, known: Sequence[float], window: tuple[float, float]) -> ChartRow:
    inside = [s for s in known if window[0] <= s <= window[1]]
    count = min(SAMPLE_POINTS, len(inside))
    points = tuple(inside[round(i * (len(inside) - 1) / max(1, count - 1))] for i in range(count))
    jitter = tuple((i + 1) * _GOLDEN % 1 for i in range(count))
    return ChartRow(name, box, points, jitter, len(known) - len(inside), len(known))


def samples(result: Result, *, template: str = LIGHT) -> go.Figure:
    """Draw the samples of the finalists and the baseline, as box plots with their points.

    The box holds the middle half, the line in it is the median, and whiskers reach 1.5 times the box at most.

    Args:
        result: of a run that has a comparison.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: it is not a result, or the comparison was left out.
    """
    result = one_result(result, "samples")
    sides = (*result.finalists, result.comparison.baseline) if result.comparison else ()
    strip = strip_of(
        {each.title if isinstance(each, Finalist) else each.name: each.lead.samples for each in sides}
    )
    if strip is None:
        raise NothingToDrawError(_uncompared([result]), "Run the same command again.")
    across = axis_of(strip.window, result.objective.unit)
    low, high = put(strip.window, across)
    figure = blank(template, 110 + _ROW_PX * len(strip.rows), legend=False)
    for row_index, row in enumerate(strip.rows):
        _draw_box(figure, row, row_index, across)
    figure.update_layout(
        xaxis={
            **scaled(across, label(result.objective)),
            "range": [math.log10(low), math.log10(high)] if across.log else [low, high],
        },
        yaxis=_named_rows([row.name for row in strip.rows]),
    )
    return figure


def _draw_box(figure: go.Figure, row: ChartRow, row_index: int, across: PlotAxis) -> None:
    """Draw a box of lines, since the parts of plotly that reports and live pages hold draw no others."""
    color = ORANGE if row.name == "baseline" else BLUE
    low, lower, middle, upper, high = put(
        (row.box.whiskers[0], *row.box.quartiles, row.box.whiskers[1]), across
    )
    top, bottom, half = row_index - 0.31, row_index + 0.31, 0.12
    # A None lifts the pen.
    outline = [
        (lower, top), (upper, top), (upper, bottom), (lower, bottom), (lower, top), None,
        (middle, top), (middle, bottom), None,
        (low, row_index), (lower, row_index), None, (upper, row_index), (high, row_index), None,
        (low, row_index - half), (low, row_index + half), None,
        (high, row_index - half), (high, row_index + half),
    ]  # fmt: skip
    figure.add_scatter(
        x=[point and point[0] for point in outline],
        y=[point and point[1] for point in outline],
        mode="lines",
        name=row.name,
        line={"color": color, "width": 1.5},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=put(row.points, across),
        y=[row_index + (jitter - 0.5) * 0.44 for jitter in row.jitter],
        mode="markers",
        name=row.name,
        marker={"color": color, "size": 4, "opacity": 0.35},
        hovertemplate=f"%{{x:.5~g}} {across.unit}; median {middle:.5g}",
    )
    if row.beyond:
        text = f"{row.beyond:,} of {row.count:,} beyond"
        where = {"xref": "paper", "x": 1, "xanchor": "right", "y": row_index - 0.45, "yanchor": "middle"}
        figure.add_annotation(text=text, showarrow=False, font={"size": 11}, **where)


def _named_rows(names: Sequence[str]) -> dict[str, object]:
    """Return plotly's settings of a y axis with a name for each row, the first at the top."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "range": [len(names) - 0.4, -0.6],
        "showgrid": False,
        "zeroline": False,
    }


@dataclass(frozen=True)
class GainRow:
    """A finalist beside its run's baseline.

    Args:
        name: of the row.
        finalist: whose gain it is.
        baseline: median of what it is compared with.
    """

    name: str
    finalist: Finalist
    baseline: float


def comparison(results: Results, *, template: str = LIGHT) -> go.Figure:
    """Draw how many times better than the baseline each finalist is, with its 95 % interval.

    An interval that does not contain 1 is a difference.

    Args:
        results: a run that has a comparison, or several of the same objective.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: the results cannot be drawn together, or nothing was compared.
    """
    runs = results_of(results, "comparison")
    names = [""] if len(runs) == 1 else [f"{name} · " for name in run_names(runs)]
    rows = [row for name, each in zip(names, runs, strict=True) for row in _gain_rows(each, name)]
    return _gains(runs, rows, template)


def _gain_rows(result: Result, prefix: str) -> Iterator[GainRow]:
    if result.comparison:
        base = result.comparison.baseline.lead.median
        for each in result.finalists:
            if each.candidate != result.baseline_candidate:
                yield GainRow(f"{prefix}{each.title}", each, base)


def compare_runs(results: Results, *, template: str = LIGHT) -> go.Figure:
    """Draw how many times better than its baseline the best finalist of each run is, the best run first.

    Each run's gain is measured beside a baseline of its own, so runs of different days can be compared.

    Args:
        results: runs of the same level and objective that have comparisons.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: the results cannot be drawn together, or nothing was compared.
    """
    runs = results_of(results, "compare_runs")
    rows = [
        GainRow(name, best, each.comparison.baseline.lead.median)
        for name, each in zip(run_names(runs), runs, strict=True)
        if each.comparison and (best := each.comparison.contender(each.baseline_candidate))
    ]
    return _gains(runs, sorted(rows, key=lambda row: -row.finalist.lead.gain.value), template)


_VERDICTS = {"better": (GREEN, "circle"), "worse": (RED, "x"), "same": (BLUE, "diamond")}
_OPEN = (ORANGE, "circle-open")


def _gains(runs: Sequence[Result], rows: Sequence[GainRow], template: str) -> go.Figure:
    """Draw gains as points with intervals; the color and the symbol say the verdict."""
    rows = [row for row in rows if math.isfinite(row.finalist.lead.gain.value)]
    if not rows:
        raise NothingToDrawError(_uncompared(runs), "Run the same command again.")
    objective = runs[0].objective
    figure = blank(template, 120 + _GAIN_ROW_PX * len(rows))
    ends = [1.0, *(end for row in rows for end in _ends(row.finalist.lead.gain))]
    log = max(ends) > _LINEAR * min(ends)
    for verdict in dict.fromkeys(row.finalist.lead.verdict for row in rows):
        found = [(at, row) for at, row in enumerate(rows) if row.finalist.lead.verdict == verdict]
        color, symbol = _VERDICTS.get(verdict, _OPEN)
        gains = [row.finalist.lead.gain for _, row in found]
        figure.add_scatter(
            x=put([gain.value for gain in gains], COUNTS),
            y=[at for at, _ in found],
            error_x={
                "type": "data",
                "symmetric": False,
                "array": put([_ends(gain)[1] - gain.value for gain in gains], COUNTS),
                "arrayminus": put([gain.value - _ends(gain)[0] for gain in gains], COUNTS),
                "thickness": 1.5,
                "width": 5,
            },
            mode="markers",
            name=verdict_word(verdict, objective),
            marker={"color": color, "symbol": symbol, "size": 10},
            text=[_gain_text(row, objective) for _, row in found],
            hovertemplate="%{text}<extra></extra>",
        )
    figure.add_vline(1.0, line={"color": ORANGE, "dash": "dash", "width": 2})
    at = 0 if log else 1  # a note on a logarithmic axis stands at the logarithm
    figure.add_annotation(
        text="baseline", x=at, y=0, yref="paper", yanchor="bottom", xanchor="left", showarrow=False
    )
    low, high = map(math.log10, (min(ends), max(ends))) if log else (min(ends), max(ends))
    margin = (high - low) / 20 or 0.05
    title = {"title": {"text": f"times better than the baseline, by {label(objective)}", "standoff": 12}}
    figure.update_layout(
        xaxis={
            **title,
            "type": "log" if log else "linear",
            "range": [low - margin, high + margin],
            "ticksuffix": "\N{MULTIPLICATION SIGN}",
        },
        yaxis=_named_rows([row.name for row in rows]),
    )
    return figure


_LINEAR = 10.0
"""Gains that are farther apart have a logarithmic axis: a wide interval would press the others flat."""
_FARTHEST = 1000.0


def _ends(gain: Ratio) -> tuple[float, float]:
    """Return the ends of an interval as they are drawn: 0 and infinity have no position."""
    low = gain.low if gain.low > 0 else gain.value / _FARTHEST
    return low, gain.high if gain.high < math.inf else gain.value * _FARTHEST


def _gain_text(row: GainRow, objective: Objective) -> str:
    lead = row.finalist.lead
    both = f"{amount(lead.median, objective.unit)} against {amount(row.baseline, objective.unit)}"
    known = "" if objective.exact else f", 95 % interval {interval(lead.gain)}"
    return f"<b>{row.name}</b>: {multiple(lead.gain.value)}{known}<br>{both}"


def _uncompared(runs: Sequence[Result]) -> str:
    ids = ", ".join(each.run.id for each in runs)
    return f"{'run' if len(runs) == 1 else 'runs'} {ids}: nothing was compared with the baseline"
