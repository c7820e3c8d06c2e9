"""The report's figures, from numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from planish.core import Objective
from planish.report.axis import PlotAxis, axis_of, span_axis
from planish.report.curve import Curve, limit_of
from planish.report.plane import BLUE, GREEN, ORANGE, RED, Figure, Plane, blank, put, scaled
from planish.report.sample_plots import ChartRow, Strip
from planish.report.stages import StageTime
from planish.report.wording import amount, duration, label

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
    plane = Plane(blank(360), across, up)
    plane.marks(good, "trials", color=BLUE, opacity=0.6, size=5)
    symbol, than = ("triangle-up", "over") if objective.direction == "down" else ("triangle-down", "under")
    off: dict[str, Any] = {"color": BLUE, "opacity": 0.6, "size": 7, "symbol": f"{symbol}-open"}
    plane.marks(bad, f"{than} {amount(limit, objective.unit)}", **off)
    _crosses(plane, curve.failed)
    name = "" if baseline is None else f"baseline {amount(baseline, objective.unit)}"
    plane.line(level, name, color=ORANGE, dash="dash")
    plane.line(curve.best, "best so far", color=GREEN, shape="hv")
    plane.axes("time" if timed else "trials", label(objective))
    plane.figure.update_layout(
        xaxis={"range": [0, curve.end * across.factor * 1.02 or 1], "anchor": "y2"},
        yaxis={"domain": [0.09, 1]},
        yaxis2={"domain": [0, 0.05], "range": [-1, 1], "visible": False, "fixedrange": True},
    )
    return plane.figure.to_plotly_json()


def _crosses(plane: Plane, failed: Sequence[float]) -> None:
    if failed:
        plane.figure.add_scatter(
            x=put(failed, plane.across),
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
    for place, row in enumerate(strip.rows):
        _box(figure, row, place, across)
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


def _box(figure: go.Figure, row: ChartRow, place: int, across: PlotAxis) -> None:
    color = ORANGE if row.name == "baseline" else BLUE
    low, lower, middle, upper, high = put(
        (row.box.whiskers[0], *row.box.quartiles, row.box.whiskers[1]), across
    )
    figure.add_box(
        orientation="h",
        y=[place],
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
        y=[place + (jitter - 0.5) * 0.44 for jitter in row.jitter],
        mode="markers",
        name=row.name,
        marker={"color": color, "size": 4, "opacity": 0.35},
        hovertemplate=f"%{{x:.5~g}} {across.unit}",
    )
    if row.beyond:
        text = f"{row.beyond:,} of {row.count:,} beyond"
        where = {"xref": "paper", "x": 1, "xanchor": "right", "y": place - 0.45, "yanchor": "middle"}
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
