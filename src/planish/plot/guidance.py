"""Figures of the cost model that guided a search: what it predicted, and how well."""

from __future__ import annotations

import plotly.graph_objects as go

from planish.core.wording import label
from planish.plot.axes import BLUE, COUNTS, GREEN, LIGHT, ORANGE, SHARES, Axes, axis_of, blank
from planish.plot.runs import NothingToDrawError, one_result
from planish.plot.search import thinned
from planish.tuning.predictions import ModelSection, model_section
from planish.tuning.result import Result


def predictions(result: Result, *, template: str = LIGHT) -> go.Figure:
    """Draw what was measured over the rank that the model predicted in each batch.

    Args:
        result: of a run that a cost model guided.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: it is no result, or no model guided it.
    """
    section = _section(result, "predictions")
    *earlier, last = [batch for batch in section.batches if batch.values]
    values = [value for batch in section.batches for value in batch.values]
    axes = Axes(blank(template, 320), SHARES, axis_of(values, result.objective.unit))
    before = [pair for batch in earlier for pair in zip(batch.predicted_ranks, batch.values, strict=True)]
    axes.marks(thinned(before), "earlier batches", color=BLUE, opacity=0.5, size=5)
    axes.marks(
        thinned([*zip(last.predicted_ranks, last.values, strict=True)]),
        "the last batch",
        color=GREEN,
        size=7,
        symbol="diamond",
    )
    axes.name_axes("predicted rank in its batch, 0 % is the best", f"measured {label(result.objective)}")
    return axes.figure


def rank_correlation(result: Result, *, template: str = LIGHT) -> go.Figure:
    """Draw the rank correlation of each batch's predictions with what was measured, as the model learns.

    Args:
        result: of a run that a cost model guided.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: it is no result, or no model guided it.
    """
    section = _section(result, "rank_correlation")
    points = thinned([(float(batch.before), batch.correlation) for batch in section.batches])
    axes = Axes(blank(template, 260), axis_of([x for x, _ in points], ""), COUNTS)
    axes.line([(0.0, 0.0), (points[-1][0], 0.0)], "chance", color=ORANGE, dash="dash")
    axes.line(points, "rank correlation with the next batch", color=GREEN)
    axes.figure.data[-1].update(mode="lines+markers", marker={"size": 7, "color": GREEN})
    axes.name_axes("trials learned from", "rank correlation")
    axes.figure.update_layout(yaxis={"range": [-1.05, 1.05]})
    return axes.figure


def _section(result: Result, function: str) -> ModelSection:
    result = one_result(result, function)
    section = model_section(result)
    if section is None or not any(batch.values for batch in section.batches):
        what = f"no cost model guided run {result.run.id}, which searched by '{result.run.searcher}'"
        raise NothingToDrawError(what, 'Use searcher="model-guided".')
    return section
