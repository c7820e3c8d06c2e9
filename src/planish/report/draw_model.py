"""The figures of what a model predicted."""

from __future__ import annotations

from planish.core import Objective
from planish.report.axis import PlotAxis, axis_of
from planish.report.guidance import Guidance
from planish.report.plane import BLUE, GREEN, ORANGE, Figure, Plane, blank, scaled
from planish.report.wording import label

_BAR_PX = 26
_SHARES = PlotAxis(100.0, "%", log=False)
_PLAIN = PlotAxis(1.0, "", log=False)


def model_figures(guidance: Guidance, objective: Objective) -> list[Figure]:
    """Draw predicted against measured, the rank correlation as it grows, and what makes the winner good."""
    figures = []
    if any(batch.values for batch in guidance.batches):
        figures = [_predicted(guidance, objective), _correlation(guidance)]
    return [*figures, _importance(guidance)] if guidance.importance else figures


def _predicted(guidance: Guidance, objective: Objective) -> Figure:
    *earlier, last = [batch for batch in guidance.batches if batch.values]
    values = [value for batch in guidance.batches for value in batch.values]
    plane = Plane(blank(320), _SHARES, axis_of(values, objective.unit))
    before = [pair for batch in earlier for pair in zip(batch.places, batch.values, strict=True)]
    plane.marks(before, "earlier batches", color=BLUE, opacity=0.5, size=5)
    plane.marks([*zip(last.places, last.values, strict=True)], "the last batch", color=GREEN, size=6)
    plane.axes("place in its batch as predicted, 0 % is the best", f"measured {label(objective)}")
    return plane.figure.to_plotly_json()


def _correlation(guidance: Guidance) -> Figure:
    points = [(float(batch.before), batch.correlation) for batch in guidance.batches]
    plane = Plane(blank(260), axis_of([x for x, _ in points], ""), _PLAIN)
    plane.line([(0.0, 0.0), (points[-1][0], 0.0)], "chance", color=ORANGE, dash="dash")
    plane.line(points, "rank correlation with the next batch", color=GREEN)
    plane.marks(points, "", color=GREEN, size=7, showscale=False)
    plane.axes("trials learnt from", "rank correlation")
    plane.figure.update_layout(yaxis={"range": [-1.05, 1.05]})
    return plane.figure.to_plotly_json()


def _importance(guidance: Guidance) -> Figure:
    names, worse = zip(*guidance.importance, strict=True)
    figure = blank(90 + _BAR_PX * len(names), legend=False)
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
