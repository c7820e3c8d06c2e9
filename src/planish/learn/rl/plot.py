"""The plot of a training (thesis, figure 3.7)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core.replacing import replace_text

if TYPE_CHECKING:
    from planish.learn.rl.training import Look


def draw_looks(looks: Sequence[Look], path: Path) -> None:
    """Draw the reward, and how fast held-back programs become, by the steps of the environment.

    Raises:
        OSError: it cannot be written.
    """
    import plotly.graph_objects as go

    steps = [look.steps for look in looks]
    figure = go.Figure()
    figure.add_scatter(x=steps, y=[look.reward for look in looks], name="reward of an episode")
    figure.add_scatter(x=steps, y=[look.held for look in looks], name="held-back programs")
    figure.update_layout(xaxis_title="steps of the environment", yaxis_title="share of the peak")
    replace_text(path, figure.to_html(include_plotlyjs=True))
