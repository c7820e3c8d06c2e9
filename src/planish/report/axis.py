"""Axes: the unit, and whether they are logarithmic."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from planish.report.wording import HOUR_S, MINUTE_S, scale

_WIDE = 5.0  # of linear axes, values further apart would leave most in one corner
_FINE_DECADES = 2.5


@dataclass(frozen=True)
class PlotAxis:
    """How values are put on an axis.

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
