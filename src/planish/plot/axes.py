"""Axes, colors and templates that all figures share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio

from planish.core import ArgumentError
from planish.core.arguments import check_type
from planish.core.errors import did_you_mean
from planish.core.wording import HOUR_S, MINUTE_S, scale

_WIDE = 5.0  # of linear axes, values further apart would leave most in one corner
_FINE_DECADES = 2.5
_LISTED = 100

# Each has a contrast of 3 to 1 with the backgrounds of both templates, as WCAG 2.1 asks of graphics, and
# differs from the others also for readers who cannot distinguish red from green, or blue from yellow.
BLUE, ORANGE, RED, GREEN, PURPLE = "#1460f6", "#d17c03", "#c3252d", "#11a46f", "#b24eb7"
GREY = "#838a94"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, RED)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
"""Lines of several runs differ in both, so that no reader needs the colors."""

LIGHT, DARK, PLAIN = "planish", "planish_dark", "none"
"""Names of templates; a page that has colors of its own takes figures without any."""

BACKGROUNDS: Mapping[str, str] = {LIGHT: "#ffffff", DARK: "#15171b"}
_INK = {LIGHT: ("#1c1f24", "#dde0e5"), DARK: ("#e7e9ed", "#363b44")}

Point = tuple[float, float]


def _template(name: str) -> go.layout.Template:
    text, grid = _INK[name]
    axis = {"gridcolor": grid, "linecolor": grid, "zerolinecolor": grid, "tickcolor": grid}
    return go.layout.Template(
        layout={
            "font": {"color": text, "size": 13},
            "paper_bgcolor": BACKGROUNDS[name],
            "plot_bgcolor": BACKGROUNDS[name],
            "colorway": COLORS,
            "xaxis": axis,
            "yaxis": axis,
            "hoverlabel": {"bgcolor": BACKGROUNDS[name], "bordercolor": grid, "font": {"color": text}},
        }
    )


for _name in BACKGROUNDS:
    pio.templates[_name] = _template(_name)


@dataclass(frozen=True)
class PlotAxis:
    """Scale of an axis.

    Args:
        factor: what values are multiplied by.
        unit: of the products; empty for a count or a ratio.
        log: the axis is logarithmic.
        ticks: where a logarithmic axis is marked, in its unit; empty for a linear one.
    """

    factor: float
    unit: str
    log: bool
    ticks: tuple[float, ...] = ()


COUNTS = PlotAxis(1.0, "", log=False)
SHARES = PlotAxis(100.0, "%", log=False)


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
    if end_s < 2 * HOUR_S:
        return PlotAxis(1 / MINUTE_S, "min", log=False)
    return PlotAxis(1 / HOUR_S, "h", log=False)


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


def blank(template: str, height: int, *, legend: bool = True) -> go.Figure:
    """Make an empty figure.

    Args:
        template: of plotly; without one its background is that of the page.
        height: in pixels; its width is the page's.
        legend: draw one, above.

    Raises:
        ArgumentError: plotly has no such template.
    """
    check_type("template", template, str, "the name of a template of plotly")
    if template not in pio.templates:
        raise ArgumentError(f"plotly has no template {template!r}", did_you_mean(template, pio.templates))
    clear = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)"}
    return go.Figure(
        layout={
            "template": template,
            "height": height,
            "margin": {"l": 10, "r": 16, "t": 40 if legend else 10, "b": 10},
            **(clear if template == PLAIN else {}),
            "showlegend": legend,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 12}},
            "xaxis": {"automargin": True, "zeroline": False},
            "yaxis": {"automargin": True, "zeroline": False},
        }
    )


def put(values: Sequence[float], axis: PlotAxis) -> Any:
    """Scale values for an axis; six digits are more than can be seen.

    Many values become an array of four bytes each: plotly checks, copies and writes each item of a list.
    """
    if len(values) > _LISTED:
        return (np.asarray(values) * axis.factor).astype(np.float32)
    return [float(f"{value * axis.factor:.6g}") for value in values]


def scaled(axis: PlotAxis, name: str) -> dict[str, Any]:
    """Return plotly's settings of an axis."""
    title = {"title": {"text": f"{name} ({axis.unit})" if axis.unit else name, "standoff": 12}}
    if not axis.log:
        return {**title, "type": "linear", "exponentformat": "none", "separatethousands": True}
    ticks = {"tickvals": list(axis.ticks), "ticktext": [f"{tick:,g}" for tick in axis.ticks]}
    return {**title, **ticks, "type": "log"}


def bars(
    template: str,
    rows: Sequence[tuple[str, float]],
    title: str,
    axis: PlotAxis,
    texts: Sequence[str],
    **bar: Any,
) -> go.Figure:
    """Draw named values as horizontal bars, the first at the top.

    Args:
        template: of plotly.
        rows: names and values, which may be negative.
        title: of the x axis.
        axis: the x axis.
        texts: beside each bar.
        bar: plotly's.
    """
    figure = blank(template, 90 + 30 * len(rows), legend=False)
    values = [value for _, value in rows]
    low, high = min(0.0, *values) * axis.factor, max(0.0, *values) * axis.factor
    room = (high - low) / 4 or 1.0  # for the texts
    figure.add_bar(
        orientation="h",
        x=put(values, axis),
        y=[name for name, _ in rows],
        text=texts,
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{text}<extra></extra>",
        **bar,
    )
    figure.update_layout(
        bargap=0.35,
        xaxis={**scaled(axis, title), "range": [low - room if low < 0 else 0.0, high + room]},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category", "ticksuffix": " "},
    )
    return figure
