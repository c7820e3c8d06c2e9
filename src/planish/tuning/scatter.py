"""Scatter plot of a search with two objectives, drawn with characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planish.core import Objective
from planish.core.front import Costs, HypervolumeTracker, reference_point
from planish.core.wording import label, number, scale

WIDTH, HEIGHT = 78, 14
_BLANK = 0x2800  # of the braille patterns
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of a braille pattern for each dot, by row and column."""
_MARGIN = 0.04


@dataclass(frozen=True)
class Glyphs:
    """Characters to draw with.

    Args:
        front: of the front.
        baseline: of the baseline.
        point: of all else; empty for braille dots, of which eight fit into a character.
        corner: of the axes; with the marks of the vertical and the horizontal one.
        micro: a millionth.
    """

    front: str = "●"
    baseline: str = "◆"
    point: str = ""
    corner: str = "└│─"
    micro: str = "µ"


ASCII = Glyphs("o", "#", ".", "+|-", "u")
FULL = Glyphs()


def scatter(
    growth: HypervolumeTracker, glyphs: Glyphs = FULL, width: int = WIDTH, height: int = HEIGHT
) -> list[str]:
    """Draw all that was measured, the front, and the baseline; the second objective over the first.

    What is more than twice as bad as the baseline is left out.

    Args:
        growth: of at least two objectives.
        glyphs: what is drawn with.
        width: of the lines, at most.
        height: how many there are, with the axes.

    Returns:
        Lines; none before anything of interest was measured.
    """
    across, up = growth.objectives[:2]
    points = _values(growth, growth.points)
    baseline = [] if growth.baseline is None else _values(growth, [growth.baseline])
    if not points:
        return []
    axes = _Axis.over(across, [x for x, _ in points]), _Axis.over(up, [y for _, y in points])
    ends = axes[1].ends
    left = max(map(len, ends))
    grid = _Grid(width - left - 2, height - 3, axes)
    grid.dots(points, glyphs.point)
    grid.marks(_values(growth, growth.front), glyphs.front)
    grid.marks(baseline, glyphs.baseline)
    corner, wall, floor = glyphs.corner
    names = [ends[1], *[""] * (len(grid.rows) - 2), ends[0]]
    rows = [f"{name:>{left}} {wall}{''.join(row)}" for name, row in zip(names, grid.rows, strict=True)]
    low, high = axes[0].ends
    below = f"{low}{label(across):^{max(0, grid.width - len(low) - len(high))}}{high}"
    key = f"{label(up)}   {glyphs.front} front   {glyphs.baseline} baseline"
    lines = [key, *rows, f"{'':>{left}} {corner}{floor * grid.width}", f"{'':>{left}}  {below}"]
    return [line.rstrip().replace("µ", glyphs.micro) for line in lines]


def _values(growth: HypervolumeTracker, costs: Iterable[Costs]) -> list[tuple[float, float]]:
    """Return the first two objectives' values of what is not too bad to be drawn."""
    across, up = growth.objectives[:2]
    worst = None if growth.baseline is None else reference_point(growth.baseline)
    kept = [c for c in costs if worst is None or all(a <= b for a, b in zip(c[:2], worst, strict=False))]
    return [(across.cost(c[0]), up.cost(c[1])) for c in kept]


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    unit: str

    @staticmethod
    def over(objective: Objective, values: Sequence[float]) -> _Axis:
        low, high = min(values), max(values)
        margin = (high - low) * _MARGIN or abs(high) * _MARGIN or 1.0
        return _Axis(max(low - margin, 0.0) if low >= 0 else low - margin, high + margin, objective.unit)

    @property
    def ends(self) -> tuple[str, str]:
        """The least and the greatest value, in one unit."""
        factor, unit = scale(self.high, self.unit)
        low, high = (f"{number(value * factor)} {unit}".rstrip() for value in (self.low, self.high))
        return low, high

    def cell(self, value: float, cells: int) -> int:
        return min(cells - 1, int((value - self.low) / (self.high - self.low) * cells))


class _Grid:
    """Characters; the first row is the highest."""

    def __init__(self, width: int, height: int, axes: tuple[_Axis, _Axis]) -> None:
        self.width, self._axes = width, axes
        self.rows = [[" "] * width for _ in range(height)]

    def marks(self, points: Iterable[tuple[float, float]], glyph: str) -> None:
        for x, y in points:
            row, column = self._cell(x, y, 1, 1)
            self.rows[row][column] = glyph

    def dots(self, points: Iterable[tuple[float, float]], glyph: str) -> None:
        """Draw points with a character, or as dots of braille."""
        if glyph:
            self.marks(points, glyph)
            return
        for x, y in points:
            row, column = self._cell(x, y, 4, 2)
            cell = self.rows[row // 4][column // 2]
            bits = 0 if cell == " " else ord(cell) - _BLANK
            self.rows[row // 4][column // 2] = chr(_BLANK + (bits | _DOTS[row % 4][column % 2]))

    def _cell(self, x: float, y: float, fine_y: int, fine_x: int) -> tuple[int, int]:
        high = len(self.rows) * fine_y
        return high - 1 - self._axes[1].cell(y, high), self._axes[0].cell(x, self.width * fine_x)
