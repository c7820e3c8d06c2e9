"""The figures of runs with several objectives: the front (GEVO-ML, figure 4), and how it grew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planish.core import Growth
from planish.report.axis import PlotAxis, axis_of
from planish.report.pareto import Tradeoff
from planish.report.plane import BLUE, GREEN, ORANGE, PURPLE, RED, Figure, Plane, Point, blank
from planish.report.remeasured import UNSEEN, Dot, Remeasured, dots_of
from planish.report.wording import label


def tradeoff_figure(tradeoff: Tradeoff, *, joined: bool) -> Figure:
    """Draw one objective over another.

    What is worse than everything of interest, by more than half, lies beyond the chart.

    Args:
        tradeoff: what to draw.
        joined: draw the front as a line; with more than two objectives it is none.
    """
    start = [] if tradeoff.baseline is None else [tradeoff.baseline]
    again = tradeoff.again
    told = [*tradeoff.front, *start, *(dots_of(again) if again else [])]
    limits = [_limit([point[side] for point in told]) for side in (0, 1)]
    points = [p for p in tradeoff.points if p[0] <= limits[0] and p[1] <= limits[1]]
    plane = Plane(blank(520), *_axes(tradeoff, [*points, *told]))
    plane.marks(points, "trials", color=BLUE, opacity=0.35, size=5)
    if joined:
        plane.line(tradeoff.front, "", color=BLUE, shape="hv" if tradeoff.x.direction == "down" else "vh")
    plane.marks(tradeoff.front, "front of the search", tradeoff.told, color=BLUE, size=8)
    if again is None:
        circle: dict[str, Any] = {"symbol": "circle-open", "size": 15, "color": GREEN, "line": {"width": 2}}
        plane.marks(tradeoff.finalists, "finalists", **circle)
        plane.marks(start, "baseline", symbol="diamond", size=13, color=ORANGE)
    else:
        plane.marks(start, "baseline in the search", symbol="diamond", size=8, color=ORANGE)
        _draw_again(plane, again, label(tradeoff.y))
    plane.axes(label(tradeoff.x), label(tradeoff.y))
    return plane.figure.to_plotly_json()


def _limit(values: Sequence[float]) -> float:
    """Tell where the chart ends."""
    high = max(values)
    return high + abs(high) / 2


def _axes(tradeoff: Tradeoff, points: Sequence[Point]) -> tuple[PlotAxis, PlotAxis]:
    across, up = ([point[side] for point in points] for side in (0, 1))
    return axis_of(across, tradeoff.x.unit), axis_of(up, tradeoff.y.unit)


def _draw_again(plane: Plane, again: Remeasured, name: str) -> None:
    """Draw what was measured again: by the search's data filled, by the final data open."""
    members, others = again.members, [("baseline", again.baseline, "diamond", ORANGE)]
    if again.reference is not None:
        others.append((again.reference.name, again.reference, "star", PURPLE))
    for dot in (*members, again.baseline):
        if dot.unseen is not None:
            plane.line([dot.at, dot.unseen], "", color=ORANGE if dot is again.baseline else GREEN, width=1)
    won, lost = ([d for d in members if d.disputed is disputed] for disputed in (False, True))
    plane.marks([d.at for d in won], f"measured again: {name} in the search", _told(won), color=GREEN, size=9)
    plane.marks(
        [d.at for d in lost], "the second opinion differs", _told(lost), color=RED, size=9, symbol="x"
    )
    seen = [d for d in members if d.unseen is not None]
    opened: dict[str, Any] = {"symbol": "circle-open", "size": 10, "color": GREEN, "line": {"width": 2}}
    plane.marks([d.unseen for d in seen if d.unseen], f"{name} on the {UNSEEN} data", _told(seen), **opened)
    for title, dot, symbol, color in others:
        plane.marks([dot.at], title, symbol=symbol, size=14, color=color)
        if dot.unseen is not None:
            style: dict[str, Any] = {
                "symbol": f"{symbol}-open",
                "size": 14,
                "color": color,
                "line": {"width": 2},
            }
            plane.marks([dot.unseen], f"{title}, {UNSEEN} data", **style)


def _told(dots: Sequence[Dot]) -> list[str]:
    return [f"<b>{dot.name}</b><br>{dot.hover}" for dot in dots]


def volume_figure(growth: Growth) -> Figure | None:
    """Draw the hypervolume over evaluations; None where it is not known."""
    if growth.volume is None:
        return None
    points = [
        *((float(at), value) for at, value in growth.volumes),
        (float(growth.evaluations), growth.volume),
    ]
    plane = Plane(blank(300), axis_of([growth.evaluations], ""), PlotAxis(1.0, "", log=False))
    plane.line([(0.0, 1.0), (points[-1][0], 1.0)], "baseline", color=ORANGE, dash="dash")
    plane.line(points, "hypervolume of the front", color=GREEN, shape="hv")
    plane.axes("evaluations", "hypervolume (baseline 1)")
    return plane.figure.to_plotly_json()
