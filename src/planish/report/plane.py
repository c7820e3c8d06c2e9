"""A plotly figure with two scaled axes; the page gives it the colours of text and grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from planish.report.axis import PlotAxis

# Readable on white and on black.
BLUE, ORANGE, RED, GREEN, PURPLE = "#3b82f6", "#e08a00", "#dc4444", "#1f9d55", "#a855f7"

Figure = dict[str, Any]
"""A plotly figure as JSON: `data` and `layout`."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Plane:
    """Draws points given in the objectives' own units.

    Args:
        figure: what is drawn on.
        across: the x axis.
        up: the y axis.
    """

    figure: go.Figure
    across: PlotAxis
    up: PlotAxis

    def marks(self, points: Sequence[Point], name: str, told: Sequence[str] = (), **marker: Any) -> None:
        """Draw points, if there are any.

        Args:
            points: where.
            name: in the legend.
            told: what a hover label says of each, besides its place.
            marker: plotly's.
        """
        if points:
            places = self._places(points)
            if told:
                places |= {"text": list(told), "hovertemplate": f"{places['hovertemplate']}<br>%{{text}}"}
            self.figure.add_scatter(**places, mode="markers", name=name, marker=marker)

    def line(self, points: Sequence[Point], name: str, **line: Any) -> None:
        """Draw a line, if it has points; `line` is plotly's. One without a name is not in the legend."""
        if points:
            style = {"width": 2, **line}
            self.figure.add_scatter(
                **self._places(points), mode="lines", name=name, line=style, showlegend=bool(name)
            )

    def axes(self, x: str, y: str) -> None:
        """Name and scale both axes."""
        self.figure.update_layout(xaxis=scaled(self.across, x), yaxis=scaled(self.up, y))

    def _places(self, points: Sequence[Point]) -> dict[str, Any]:
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
    """Give plotly's settings of an axis."""
    title = {"title": {"text": f"{name} ({axis.unit})" if axis.unit else name, "standoff": 12}}
    if not axis.log:
        return {**title, "type": "linear", "exponentformat": "none", "separatethousands": True}
    ticks = {"tickvals": list(axis.ticks), "ticktext": [f"{tick:,g}" for tick in axis.ticks]}
    return {**title, **ticks, "type": "log"}
