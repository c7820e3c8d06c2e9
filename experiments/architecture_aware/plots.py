"""Figures 2 and 3 of the paper as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from claims import Measured, relative


def plot(models: Sequence[Measured], names: Sequence[str], path: Path) -> None:
    """Draw throughput, latency and compile time of each configuration, a group of bars for each model."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    titles = (
        "throughput over BL's (figure 2a)",
        "latency over BL's (2b)",
        "time to make a session over BL's (3)",
    )
    drawn = make_subplots(rows=3, cols=1, subplot_titles=titles, shared_xaxes=True)
    for name in names:
        known = [model for model in models if "failed" not in model["configurations"][name]]
        latency, creation = ([_ratio(model, name, key) for model in known] for key in ("latency", "creation"))
        axis = [model["model"] for model in known]
        for row, values in enumerate(([1 / value for value in latency], latency, creation), 1):
            bars = go.Bar(x=axis, y=values, name=name, legendgroup=name, showlegend=row == 1)
            drawn.add_trace(bars, row=row, col=1)
    drawn.update_layout(template="simple_white", height=1000)
    drawn.write_html(path, include_plotlyjs=True)


def _ratio(model: Measured, name: str, key: str) -> float:
    """Give a configuration's time over the baseline's: the median of ratios of interleaved rounds, as in the
    tables."""
    found = relative(model, name, key, key)
    assert found is not None
    return found.value
