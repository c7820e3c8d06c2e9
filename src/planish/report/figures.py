"""Plotly figures of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from planish.core import HypervolumeTracker, Objective
from planish.core.wording import HOUR_S, MINUTE_S, amount, duration, label, scale
from planish.report.chart_data import (
    UNSEEN,
    ChartRow,
    Curve,
    Dot,
    Remeasured,
    Strip,
    Tradeoff,
    dots_of,
    limit_of,
)
from planish.tuning.predictions import ModelSection
from planish.tuning.trial_statistics import StageTime

_WIDE = 5.0  # of linear axes, values further apart would leave most in one corner
_FINE_DECADES = 2.5


@dataclass(frozen=True)
class PlotAxis:
    """Scale of an axis.

    Args:
        factor: what values are multiplied by.
        unit: of the products; empty for a count or a ratio.
        log: whether the axis is logarithmic.
        ticks: where a logarithmic axis is marked, in its unit; empty for a linear one.
    """

    factor: float
    unit: str
    log: bool
    ticks: tuple[float, ...] = ()


def axis_of(values: Iterable[float], unit: str) -> PlotAxis:
    """Choose the axis for finite values: its unit is that of the least, of a logarithmic one the middle."""
    known = sorted(values)
    if not known:
        return PlotAxis(1.0, unit, log=False)
    low, high = known[0], known[-1]
    # There is no logarithm of zero.
    if low <= 0 or high / low < _WIDE:
        return PlotAxis(*scale(high, unit), log=False)
    factor, name = scale(math.sqrt(low * high), unit)
    return PlotAxis(factor, name, True, _ticks(low * factor, high * factor))


def _ticks(low: float, high: float) -> tuple[float, ...]:
    """Mark 1, 2 and 5 in each decade, of many decades 1 alone; one mark beyond each end."""
    marks = (1, 2, 5) if math.log10(high / low) < _FINE_DECADES else (1,)
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    all_marks = [float(f"{mark}e{decade}") for decade in decades for mark in marks]
    first = max(i for i, mark in enumerate(all_marks) if mark <= low)
    last = min(i for i, mark in enumerate(all_marks) if mark >= high)
    return tuple(all_marks[first : last + 1])


def span_axis(end_s: float) -> PlotAxis:
    """Choose the axis for time that starts at zero: longer spans in minutes and hours."""
    if end_s < 2 * MINUTE_S:
        return PlotAxis(*scale(end_s, "s"), log=False)
    return (
        PlotAxis(1 / MINUTE_S, "min", log=False)
        if end_s < 2 * HOUR_S
        else PlotAxis(1 / HOUR_S, "h", log=False)
    )


# Readable on white and on black.
BLUE, ORANGE, RED, GREEN, PURPLE = "#3b82f6", "#e08a00", "#dc4444", "#1f9d55", "#a855f7"

Figure = dict[str, Any]
"""A plotly figure as JSON: `data` and `layout`."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Axes:
    """Draws points given in the objectives' own units.

    Args:
        figure: what is drawn on.
        across: the x axis.
        up: the y axis.
    """

    figure: go.Figure
    across: PlotAxis
    up: PlotAxis

    def marks(self, points: Sequence[Point], name: str, hover: Sequence[str] = (), **marker: Any) -> None:
        """Draw points, if there are any.

        Args:
            points: where.
            name: in the legend.
            hover: text of each point's hover label, after its coordinates.
            marker: plotly's.
        """
        if points:
            coordinates = self._coordinates(points)
            if hover:
                coordinates |= {
                    "text": list(hover),
                    "hovertemplate": f"{coordinates['hovertemplate']}<br>%{{text}}",
                }
            self.figure.add_scatter(**coordinates, mode="markers", name=name, marker=marker)

    def line(self, points: Sequence[Point], name: str, **line: Any) -> None:
        """Draw a line, if it has points; `line` is plotly's. One without a name is not in the legend."""
        if points:
            style = {"width": 2, **line}
            self.figure.add_scatter(
                **self._coordinates(points), mode="lines", name=name, line=style, showlegend=bool(name)
            )

    def name_axes(self, x: str, y: str) -> None:
        """Name and scale both axes."""
        self.figure.update_layout(xaxis=scaled(self.across, x), yaxis=scaled(self.up, y))

    def _coordinates(self, points: Sequence[Point]) -> dict[str, Any]:
        units = (f" {axis.unit}".rstrip() for axis in (self.across, self.up))
        return {
            "x": put([x for x, _ in points], self.across),
            "y": put([y for _, y in points], self.up),
            "hovertemplate": "%{{x:.6~g}}{}, %{{y:.5~g}}{}".format(*units),
        }


def blank(height: int, *, legend: bool = True) -> go.Figure:
    """Make an empty figure.

    Args:
        height: in pixels; its width is the page's.
        legend: whether there is one, above.
    """
    clear = "rgba(0,0,0,0)"
    return go.Figure(
        layout={
            "template": "none",
            "height": height,
            "margin": {"l": 10, "r": 16, "t": 40 if legend else 10, "b": 10},
            "paper_bgcolor": clear,
            "plot_bgcolor": clear,
            "showlegend": legend,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
            "xaxis": {"automargin": True, "zeroline": False},
            "yaxis": {"automargin": True, "zeroline": False},
        }
    )


def put(values: Sequence[float], axis: PlotAxis) -> list[float]:
    """Scale values for an axis; six digits are more than can be seen."""
    return [float(f"{value * axis.factor:.6g}") for value in values]


def scaled(axis: PlotAxis, name: str) -> dict[str, Any]:
    """Return plotly's settings of an axis."""
    title = {"title": {"text": f"{name} ({axis.unit})" if axis.unit else name, "standoff": 12}}
    if not axis.log:
        return {**title, "type": "linear", "exponentformat": "none", "separatethousands": True}
    ticks = {"tickvals": list(axis.ticks), "ticktext": [f"{tick:,g}" for tick in axis.ticks]}
    return {**title, **ticks, "type": "log"}


_ROW_PX = 46
_BAR_PX = 30


def search_figure(curve: Curve, objective: Objective, baseline: float | None, *, timed: bool) -> Figure:
    """Draw the best so far, with every trial and the baseline.

    Args:
        curve: over trials or seconds.
        objective: on the y axis.
        baseline: a horizontal line; None for none.
        timed: whether the x axis is in seconds.
    """
    limit = limit_of(curve, baseline, objective)
    good = [(x, v) for x, v in curve.measured if objective.cost(v) <= objective.cost(limit)]
    bad = [(x, limit) for x, v in curve.measured if objective.cost(v) > objective.cost(limit)]
    level = [] if baseline is None else [(0.0, baseline), (curve.end, baseline)]
    across = span_axis(curve.end) if timed else axis_of([curve.end], "")
    up = axis_of((v for _, v in (*good, *bad, *curve.best, *level)), objective.unit)
    axes = Axes(blank(360), across, up)
    axes.marks(good, "trials", color=BLUE, opacity=0.6, size=5)
    symbol, than = ("triangle-up", "over") if objective.direction == "down" else ("triangle-down", "under")
    off: dict[str, Any] = {"color": BLUE, "opacity": 0.6, "size": 7, "symbol": f"{symbol}-open"}
    axes.marks(bad, f"{than} {amount(limit, objective.unit)}", **off)
    _crosses(axes, curve.failed)
    name = "" if baseline is None else f"baseline {amount(baseline, objective.unit)}"
    axes.line(level, name, color=ORANGE, dash="dash")
    axes.line(curve.best, "best so far", color=GREEN, shape="hv")
    axes.name_axes("time" if timed else "trials", label(objective))
    axes.figure.update_layout(
        xaxis={"range": [0, curve.end * across.factor * 1.02 or 1], "anchor": "y2"},
        yaxis={"domain": [0.09, 1]},
        yaxis2={"domain": [0, 0.05], "range": [-1, 1], "visible": False, "fixedrange": True},
    )
    return axes.figure.to_plotly_json()


def _crosses(axes: Axes, failed: Sequence[float]) -> None:
    if failed:
        axes.figure.add_scatter(
            x=put(failed, axes.across),
            y=[0.0] * len(failed),
            yaxis="y2",
            mode="markers",
            name="failed",
            marker={"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": RED}},
            hovertemplate="%{x:.6~g} failed<extra></extra>",
        )


def samples_figure(strip: Strip, objective: Objective) -> Figure:
    """Draw the samples of the finalists and the baseline."""
    across = axis_of(strip.window, objective.unit)
    low, high = put(strip.window, across)
    figure = blank(110 + _ROW_PX * len(strip.rows), legend=False)
    for row_index, row in enumerate(strip.rows):
        _box(figure, row, row_index, across)
    ends = [math.log10(low), math.log10(high)] if across.log else [low, high]
    figure.update_layout(
        xaxis={**scaled(across, label(objective)), "range": ends},
        yaxis={
            "tickvals": list(range(len(strip.rows))),
            "ticktext": [row.name for row in strip.rows],
            "range": [len(strip.rows) - 0.4, -0.6],
            "showgrid": False,
        },
    )
    return figure.to_plotly_json()


def _box(figure: go.Figure, row: ChartRow, row_index: int, across: PlotAxis) -> None:
    color = ORANGE if row.name == "baseline" else BLUE
    low, lower, middle, upper, high = put(
        (row.box.whiskers[0], *row.box.quartiles, row.box.whiskers[1]), across
    )
    figure.add_box(
        orientation="h",
        y=[row_index],
        lowerfence=[low],
        q1=[lower],
        median=[middle],
        q3=[upper],
        upperfence=[high],
        line={"color": color, "width": 1.5},
        width=0.62,
        name=row.name,
    )
    figure.add_scatter(
        x=put(row.points, across),
        y=[row_index + (jitter - 0.5) * 0.44 for jitter in row.jitter],
        mode="markers",
        name=row.name,
        marker={"color": color, "size": 4, "opacity": 0.35},
        hovertemplate=f"%{{x:.5~g}} {across.unit}",
    )
    if row.beyond:
        text = f"{row.beyond:,} of {row.count:,} beyond"
        where = {"xref": "paper", "x": 1, "xanchor": "right", "y": row_index - 0.45, "yanchor": "middle"}
        figure.add_annotation(text=text, showarrow=False, font={"size": 11}, **where)


def totals_figure(stages: Sequence[StageTime]) -> Figure | None:
    """Draw the seconds of the run by stage; None for none."""
    return _bars([(s.stage, s.total_s) for s in stages], "time of the run", BLUE)


def medians_figure(stages: Sequence[StageTime]) -> Figure | None:
    """Draw the median seconds of a trial by stage; None for none."""
    rows = [(s.stage, s.median_s) for s in stages if s.median_s is not None]
    return _bars(rows, "median time of a trial", GREEN)


def _bars(rows: Sequence[tuple[str, float]], title: str, color: str) -> Figure | None:
    if not rows:
        return None
    seconds = [value for _, value in rows]
    across = span_axis(max(seconds))
    figure = blank(90 + _BAR_PX * len(rows), legend=False)
    figure.add_bar(
        orientation="h",
        x=put(seconds, across),
        y=[stage for stage, _ in rows],
        text=[duration(value) for value in seconds],
        textposition="outside",
        cliponaxis=False,
        marker={"color": color},
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    figure.update_layout(
        bargap=0.35,
        xaxis={**scaled(across, title), "range": [0, max(seconds) * across.factor * 1.25 or 1]},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category"},
    )
    return figure.to_plotly_json()


def tradeoff_figure(tradeoff: Tradeoff, *, joined: bool) -> Figure:
    """Draw one objective over another.

    What is worse than everything of interest, by more than half, lies beyond the chart.

    Args:
        tradeoff: what to draw.
        joined: draw the front as a line; with more than two objectives it is none.
    """
    start = [] if tradeoff.baseline is None else [tradeoff.baseline]
    again = tradeoff.again
    shown = [*tradeoff.front, *start, *(dots_of(again) if again else [])]
    limits = [_limit([point[side] for point in shown]) for side in (0, 1)]
    points = [p for p in tradeoff.points if p[0] <= limits[0] and p[1] <= limits[1]]
    across, up = zip(*points, *shown, strict=True)
    axes = Axes(blank(520), axis_of(across, tradeoff.x.unit), axis_of(up, tradeoff.y.unit))
    axes.marks(points, "trials", color=BLUE, opacity=0.35, size=5)
    if joined:
        axes.line(tradeoff.front, "", color=BLUE, shape="hv" if tradeoff.x.direction == "down" else "vh")
    axes.marks(tradeoff.front, "front of the search", tradeoff.hover, color=BLUE, size=8)
    if again is None:
        circle: dict[str, Any] = {"symbol": "circle-open", "size": 15, "color": GREEN, "line": {"width": 2}}
        axes.marks(tradeoff.finalists, "finalists", **circle)
        axes.marks(start, "baseline", symbol="diamond", size=13, color=ORANGE)
    else:
        axes.marks(start, "baseline in the search", symbol="diamond", size=8, color=ORANGE)
        _draw_again(axes, again, label(tradeoff.y))
    axes.name_axes(label(tradeoff.x), label(tradeoff.y))
    return axes.figure.to_plotly_json()


def _limit(values: Sequence[float]) -> float:
    """Return where the chart ends."""
    high = max(values)
    return high + abs(high) / 2


def _draw_again(axes: Axes, again: Remeasured, name: str) -> None:
    """Draw what was measured again: by the search's data filled, by the final data open."""
    members, others = again.members, [("baseline", again.baseline, "diamond", ORANGE)]
    if again.secondary_baseline is not None:
        others.append((again.secondary_baseline.name, again.secondary_baseline, "star", PURPLE))
    for dot in (*members, again.baseline):
        if dot.unseen is not None:
            axes.line([dot.at, dot.unseen], "", color=ORANGE if dot is again.baseline else GREEN, width=1)
    won, lost = ([d for d in members if d.differs is differs] for differs in (False, True))
    axes.marks(
        [d.at for d in won], f"measured again: {name} in the search", _hover_texts(won), color=GREEN, size=9
    )
    axes.marks(
        [d.at for d in lost], "the cross-check differs", _hover_texts(lost), color=RED, size=9, symbol="x"
    )
    seen = [d for d in members if d.unseen is not None]
    opened: dict[str, Any] = {"symbol": "circle-open", "size": 10, "color": GREEN, "line": {"width": 2}}
    axes.marks(
        [d.unseen for d in seen if d.unseen], f"{name} on the {UNSEEN} data", _hover_texts(seen), **opened
    )
    for title, dot, symbol, color in others:
        axes.marks([dot.at], title, symbol=symbol, size=14, color=color)
        if dot.unseen is not None:
            style: dict[str, Any] = {
                "symbol": f"{symbol}-open",
                "size": 14,
                "color": color,
                "line": {"width": 2},
            }
            axes.marks([dot.unseen], f"{title}, {UNSEEN} data", **style)


def _hover_texts(dots: Sequence[Dot]) -> list[str]:
    return [f"<b>{dot.name}</b><br>{dot.hover}" for dot in dots]


def volume_figure(growth: HypervolumeTracker) -> Figure | None:
    """Draw the hypervolume over evaluations; None where it is not known."""
    if growth.volume is None:
        return None
    points = [
        *((float(at), value) for at, value in growth.volumes),
        (float(growth.evaluations), growth.volume),
    ]
    axes = Axes(blank(300), axis_of([growth.evaluations], ""), PlotAxis(1.0, "", log=False))
    axes.line([(0.0, 1.0), (points[-1][0], 1.0)], "baseline", color=ORANGE, dash="dash")
    axes.line(points, "hypervolume of the front", color=GREEN, shape="hv")
    axes.name_axes("evaluations", "hypervolume (baseline 1)")
    return axes.figure.to_plotly_json()


_FEATURE_PX = 26
_SHARES = PlotAxis(100.0, "%", log=False)
_PLAIN = PlotAxis(1.0, "", log=False)


def model_figures(section: ModelSection, objective: Objective) -> list[Figure]:
    """Draw predicted against measured, the rank correlation as it grows, and what makes the winner good."""
    figures = []
    if any(batch.values for batch in section.batches):
        figures = [_predicted(section, objective), _correlation(section)]
    return [*figures, _importance(section)] if section.importance else figures


def _predicted(section: ModelSection, objective: Objective) -> Figure:
    *earlier, last = [batch for batch in section.batches if batch.values]
    values = [value for batch in section.batches for value in batch.values]
    axes = Axes(blank(320), _SHARES, axis_of(values, objective.unit))
    before = [pair for batch in earlier for pair in zip(batch.predicted_ranks, batch.values, strict=True)]
    axes.marks(before, "earlier batches", color=BLUE, opacity=0.5, size=5)
    axes.marks([*zip(last.predicted_ranks, last.values, strict=True)], "the last batch", color=GREEN, size=6)
    axes.name_axes("predicted rank in its batch, 0 % is the best", f"measured {label(objective)}")
    return axes.figure.to_plotly_json()


def _correlation(section: ModelSection) -> Figure:
    points = [(float(batch.before), batch.correlation) for batch in section.batches]
    axes = Axes(blank(260), axis_of([x for x, _ in points], ""), _PLAIN)
    axes.line([(0.0, 0.0), (points[-1][0], 0.0)], "chance", color=ORANGE, dash="dash")
    axes.line(points, "rank correlation with the next batch", color=GREEN)
    axes.marks(points, "", color=GREEN, size=7, showscale=False)
    axes.name_axes("trials learnt from", "rank correlation")
    axes.figure.update_layout(yaxis={"range": [-1.05, 1.05]})
    return axes.figure.to_plotly_json()


def _importance(section: ModelSection) -> Figure:
    names, worse = zip(*section.importance, strict=True)
    figure = blank(90 + _FEATURE_PX * len(names), legend=False)
    figure.add_bar(
        orientation="h",
        x=[float(f"{value:.4g}") for value in worse],
        y=list(names),
        marker={"color": [GREEN if value > 0 else ORANGE for value in worse]},
        hovertemplate="%{y}: %{x:.2f}<extra></extra>",
    )
    figure.update_layout(
        bargap=0.35,
        xaxis=scaled(_PLAIN, "worse with other trials' values, in deviations of predictions"),
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category", "automargin": True},
    )
    return figure.to_plotly_json()
