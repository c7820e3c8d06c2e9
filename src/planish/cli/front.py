"""Pareto front of a run with several objectives, for people and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planish.cli.output import GAP, say, table, width
from planish.core import (
    Costs,
    HypervolumeTracker,
    Measured,
    Objective,
    growth_of,
    pareto_front,
    reference_point,
)
from planish.core.wording import label, number, scale
from planish.report.front_table import FrontTable, Grid, effect_grids, front_table
from planish.tuning.comparison import Compared, Finalist
from planish.tuning.comparison_codec import finalist_to_json, medians, secondary_baseline_to_json
from planish.tuning.result import Result

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


def show_front(result: Result) -> None:
    """Write the plot, how the hypervolume grew, and the table of the front."""
    objectives = result.stored.objectives
    growth = growth_of(result.trials, objectives, result.baseline_candidate)
    encoding = sys.stdout.encoding or "ascii"
    for line in scatter(growth, FULL if "utf" in encoding.lower() else ASCII):
        say(line)
    if growth.volume is not None:
        after = growth.volumes[-1][0]
        say(f"\nhypervolume {number(growth.volume)} (baseline 1), reached after {after:,} evaluations")
    if front := result.front:
        made = front_table(front)
        say()
        for shown in _parts(made, width()):
            columns = [made.columns[index] for index in shown]
            table(columns, [[row[index] for index in shown] for row in made.rows], made.right)
            say()
        if made.note:
            say(made.note)
        for member in front.finalists:
            if member.cross_check.agrees is False:
                say(f"{member.name}: {member.cross_check.why}")
        say()


def _parts(made: FrontTable, most: int) -> list[list[int]]:
    """List the indices of the table's columns, some of which may have one name.

    Where the table is too wide, they are those of two: the scores stand apart.
    """
    cells = zip(made.columns, *made.rows, strict=True)
    wide = sum(max(map(len, column)) + GAP for column in cells) - GAP
    if wide <= most or not made.scores:
        return [[*range(len(made.columns))]]
    name, *others = range(len(made.columns))
    return [
        [name, *(index for index in others if (made.columns[index] in made.scores) is apart)]
        for apart in (False, True)
    ]


def show_members(result: Result, *, effects: bool) -> None:
    """Write what each of the front does.

    Args:
        result: of a run with several objectives.
        effects: whether to write what its steps do alone and together.
    """
    for member, texts in zip(result.finalists, result.descriptions, strict=False):
        heading, text = next(iter(texts.items()), ("", ""))
        title = f"{member.name}: {heading}"
        say(f"\n{title}\n{'-' * len(title)}\n{text.rstrip()}")
        for note in member.notes:
            say(f"Note: {note}.")
        for grid in effect_grids(member, result.stored.objectives) if effects else ():
            _show_grid(grid)


def _show_grid(grid: Grid) -> None:
    heads = [str(number) for number in range(1, len(grid.rows) + 1)]
    rows = [
        [head, *[""] * index, *(f"{cell.text}{'*' * cell.together}" for cell in row)]
        for index, (head, row) in enumerate(zip(heads, grid.rows, strict=True))
    ]
    say(f"\neffect of edits alone, and of pairs: {grid.name}")
    table(["", *heads], rows, heads)
    for numbers, cell in grid.triples:
        say(f"{numbers} together: {cell.text}{'*' * cell.together}")
    if any(cell.together for row in grid.rows for cell in row):
        say("* other than both by themselves make together")


def front_document(result: Result) -> Mapping[str, Any]:
    """Return the search's front and the hypervolume; nothing with one objective."""
    objectives = result.stored.objectives
    if len(objectives) < 2:
        return {}
    growth = growth_of(result.trials, objectives, result.baseline_candidate)
    front = [
        {
            "trial": trial.index,
            "hash": trial.candidate.hash,
            "steps": json.loads(trial.candidate.text),
            "values": dict(trial.outcome.values),
        }
        for trial in pareto_front(result.trials, objectives)
        if isinstance(trial.outcome, Measured)
    ]
    worst = None if growth.baseline is None else reference_point(growth.baseline)
    return {
        "front": front,
        "hypervolume": {
            "value": growth.volume,
            "reference": worst and {o.name: o.cost(cost) for o, cost in zip(objectives, worst, strict=True)},
            "evaluations": growth.evaluations,
            "grew": [{"evaluations": at, "value": value} for at, value in growth.volumes],
        },
    }


END = ("objectives", "scores", "cross_check", "edits", "main_effects", "interactions", "trial", "notes")
"""Return the JSON of a finalist's end, as the store keeps it."""


def ending_document(finalist: Finalist, baseline: Compared) -> Mapping[str, Any]:
    """Return what is known of a finalist besides the leading objective."""
    document = finalist_to_json(finalist, baseline)
    return {name: document[name] for name in END}


def baseline_document(result: Result) -> Mapping[str, Any]:
    """Return what is known of the baseline of a front besides the leading objective."""
    base = result.front and result.front.baseline
    return {"objectives": medians(base), "scores": dict(base.scores)} if base else {}


def secondary_baseline_document(result: Result) -> Mapping[str, Any]:
    """Return the other baseline of a front; nothing where there is none."""
    other = result.front and result.front.secondary_baseline
    return {"secondary_baseline": secondary_baseline_to_json(other)} if other else {}
