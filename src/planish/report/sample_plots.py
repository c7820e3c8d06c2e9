"""How the samples of the comparison lie."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

POINTS = 200
"""Points drawn of one sample at most."""

_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Box:
    """A sample in five numbers (Tukey's box plot).

    Args:
        quartiles: the lower one, the median, the upper one.
        whiskers: the farthest samples within 1.5 times the box's length.
    """

    quartiles: tuple[float, float, float]
    whiskers: tuple[float, float]


@dataclass(frozen=True)
class ChartRow:
    """One line of the chart.

    Args:
        name: whose samples.
        box: of all of them.
        points: sorted; of many, evenly many of all parts, and both ends; none outside the window.
        jitter: a place for each point across the line, from 0 to 1.
        beyond: how many lie outside the window.
        count: how many there are.
    """

    name: str
    box: Box
    points: tuple[float, ...]
    jitter: tuple[float, ...]
    beyond: int
    count: int


@dataclass(frozen=True)
class Strip:
    """The chart.

    Args:
        rows: those who have samples.
        window: the range that holds all whiskers and some more. A machine's hiccups lie far beyond, and
            would press the boxes flat.
    """

    rows: tuple[ChartRow, ...]
    window: tuple[float, float]


def strip_of(samples: Mapping[str, Sequence[float]]) -> Strip | None:
    """Work out what is drawn of the finite samples of everybody, by name; None for none."""
    finite = {name: sorted(v for v in known if math.isfinite(v)) for name, known in samples.items()}
    boxes = {name: _box(known) for name, known in finite.items() if known}
    if not boxes:
        return None
    window = _window(list(boxes.values()))
    return Strip(tuple(_row(name, box, finite[name], window) for name, box in boxes.items()), window)


def _box(known: Sequence[float]) -> Box:
    lower, middle, upper = (
        statistics.quantiles(known, n=4, method="inclusive") if len(known) > 1 else (known[0],) * 3
    )
    reach = 1.5 * (upper - lower)
    inside = [s for s in known if lower - reach <= s <= upper + reach]
    return Box((lower, middle, upper), (inside[0], inside[-1]))


def _window(boxes: Sequence[Box]) -> tuple[float, float]:
    low, high = min(box.whiskers[0] for box in boxes), max(box.whiskers[1] for box in boxes)
    margin = (high - low) / 10 or abs(high) / 10 or 1.0
    # What is above zero stays there, for a logarithmic axis.
    return low - (min(margin, low / 2) if low > 0 else margin), high + margin


def _row(name: str, box: Box, known: Sequence[float], window: tuple[float, float]) -> ChartRow:
    inside = [s for s in known if window[0] <= s <= window[1]]
    count = min(POINTS, len(inside))
    points = tuple(inside[round(i * (len(inside) - 1) / max(1, count - 1))] for i in range(count))
    jitter = tuple((i + 1) * _GOLDEN % 1 for i in range(count))
    return ChartRow(name, box, points, jitter, len(known) - len(inside), len(known))
