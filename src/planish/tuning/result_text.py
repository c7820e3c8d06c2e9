"""Results as text, as a table, as HTML, and as charts of characters or in SVG.

The chart of a result is a drawing in SVG and needs no script: it is shown offline, on pages that render
notebooks, and in notebooks that are not trusted. `planish.plot.history` draws the interactive one. A search
with two objectives is drawn with characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from planish.core import Objective, PlanishError, Trial
from planish.core.front import Costs, HypervolumeTracker, reference_point
from planish.core.wording import (
    amount,
    improvement,
    interval,
    label,
    number,
    one_line,
    saving,
    scale,
    title,
    verdict_word,
)
from planish.tuning.comparison import Compared, Finalist
from planish.tuning.verdict import verdict_of

if TYPE_CHECKING:
    from planish.tuning.stored_run import StoredRun

_WIDE = 90
"""Characters of a program's first line."""
_CHART = (320, 90)

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Heads of columns, and rows of cells."""


def heading(result: StoredRun) -> tuple[str, str, str]:
    """Return three lines: the run, its program, and the verdict."""
    run, level = result.run, result.stored.level
    trials = "1 trial" if run.trials == 1 else f"{run.trials:,} trials"
    return (
        f"Run {run.id} (level {level}, searcher {run.searcher}): {run.status}, {trials}",
        f"Program: {one_line(title(result.stored.program), _WIDE)}",
        f"Verdict: {_verdict_line(result)}",
    )


def _verdict_line(result: StoredRun) -> str:
    try:
        found = verdict_of(result)
    except PlanishError as error:  # as where the store is gone: a repr must not raise
        return f"not known: {one_line(str(error))}"
    return "; ".join([found.headline, *found.grounds[:1]])


def summary(result: StoredRun) -> str:
    """Return the verdict with its grounds, the comparison as a table, the failures, and the notes."""
    found = verdict_of(result)
    run, program, _ = heading(result)
    grounds = [f"  {ground}" for ground in found.grounds]
    parts = [f"{run}\n{program}", "\n".join([f"{found.headline}.", *grounds])]
    if table := comparison_table(result):
        parts.append(_aligned(table))
    if result.failures:
        failed = [f"{result.failed:,} of {result.run.trials:,} trials failed:"]
        failed += [f"  {count:>6,}  {reason}" for reason, count in _most_common(result)]
        parts.append("\n".join(failed))
    if result.notes:
        parts.append("\n".join(f"Note: {note}." for note in result.notes))
    return "\n\n".join(parts)


def _most_common(result: StoredRun) -> Sequence[tuple[str, int]]:
    return sorted(result.failures.items(), key=lambda each: -each[1])


def comparison_table(result: StoredRun) -> Table | None:
    """Return the comparison as a table, the baseline first; None where nothing was compared."""
    compared = result.comparison
    if compared is None:
        return None
    objectives = result.stored.objectives
    lead = objectives[0]
    ends = [] if lead.exact else ["95 % interval"]
    columns = ["", *map(label, objectives), saving(lead), *ends, "verdict"]
    empty = [""] * (len(columns) - 1 - len(objectives))
    same = [each for each in compared.finalists if each.candidate == result.baseline_candidate]
    rank = "".join(f"{each.name} = " for each in same)
    rows = [[f"{rank}baseline", *_values(compared.baseline, objectives), *empty]]
    others = (each for each in compared.finalists if each not in same)
    rows += [[each.title, *_values(each, objectives), *_gain(each, lead)] for each in others]
    unknown = [""] * (len(columns) - 2)
    rows += [
        [names, *unknown, one_line(members[0].status_text)] for names, members in compared.unmeasured_groups
    ]
    return columns, rows


def _values(compared: Compared, objectives: Sequence[Objective]) -> list[str]:
    return [amount(compared.measured[each.name].median, each.unit) for each in objectives]


def _gain(finalist: Finalist, lead: Objective) -> list[str]:
    gain = finalist.lead.gain
    ends = [] if lead.exact else [interval(gain)]
    return [improvement(gain.value, lead), *ends, verdict_word(finalist.lead.verdict, lead)]


def _aligned(table: Table) -> str:
    columns, rows = table
    whole = [columns, *rows]
    widths = [max(len(row[index]) for row in whole) for index in range(len(columns))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in whole)
    return "\n".join(line.rstrip() for line in lines)


def html(result: StoredRun) -> str:
    """Return the verdict, the comparison and a chart of the search, for a notebook; every text is escaped."""
    run, program, verdict = map(escape, heading(result))
    parts = [f"<div><strong>{verdict.removeprefix('Verdict: ')}</strong></div>", f"<div>{run}</div>"]
    parts.append(f"<div><code>{program.removeprefix('Program: ')}</code></div>")
    if table := comparison_table(result):
        parts.append(_html_table(table))
    parts.append(chart(result))
    parts += [f"<div>Note: {escape(note)}.</div>" for note in result.notes]
    return f"<div>{''.join(parts)}</div>"


def _html_table(table: Table) -> str:
    columns, rows = table
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def chart(result: StoredRun) -> str:
    """Draw the best value so far over the trials, in SVG; empty where the trials are not at hand."""
    objective = result.objective
    try:
        best = _best_so_far(result.stored_trials, objective)
    except PlanishError:
        return ""
    if not best:
        return ""
    values = [cost for _, cost in best]
    low, high, last = min(values), max(values), max(len(result.stored_trials) - 1, 1)
    width, height = _CHART
    points = [
        f"{index / last * width:.1f},{height - (cost - low) / ((high - low) or 1) * (height - 8) - 4:.1f}"
        for index, cost in best
    ]
    first, final = (amount(objective.cost(cost), objective.unit) for cost in (values[0], values[-1]))
    text = escape(f"best {label(objective)} over {result.run.trials:,} trials: {first} to {final}")
    return (
        f'<svg role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<title>{text}</title>"
        f'<polyline fill="none" stroke="currentColor" stroke-width="1.5" points="{" ".join(points)}"/></svg>'
        f"<div>{text}</div>"
    )


def _best_so_far(trials: Sequence[Trial], objective: Objective) -> list[tuple[int, float]]:
    """Return the corners of the curve of the least cost so far: (position, cost)."""
    corners, least = list[tuple[int, float]](), float("inf")
    for position, trial in enumerate(trials):
        cost = trial.cost(objective)
        if cost is not None and cost < least:
            if corners:
                corners.append((position, least))
            least = cost
            corners.append((position, cost))
    if corners:
        corners.append((len(trials) - 1, least))
    return corners


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
    points = _scattered(growth, growth.points)
    baseline = [] if growth.baseline is None else _scattered(growth, [growth.baseline])
    if not points:
        return []
    axes = _Axis.over(across, [x for x, _ in points]), _Axis.over(up, [y for _, y in points])
    ends = axes[1].ends
    left = max(map(len, ends))
    grid = _Grid(width - left - 2, height - 3, axes)
    grid.dots(points, glyphs.point)
    grid.marks(_scattered(growth, growth.front), glyphs.front)
    grid.marks(baseline, glyphs.baseline)
    corner, wall, floor = glyphs.corner
    names = [ends[1], *[""] * (len(grid.rows) - 2), ends[0]]
    rows = [f"{name:>{left}} {wall}{''.join(row)}" for name, row in zip(names, grid.rows, strict=True)]
    low, high = axes[0].ends
    below = f"{low}{label(across):^{max(0, grid.width - len(low) - len(high))}}{high}"
    key = f"{label(up)}   {glyphs.front} front   {glyphs.baseline} baseline"
    lines = [key, *rows, f"{'':>{left}} {corner}{floor * grid.width}", f"{'':>{left}}  {below}"]
    return [line.rstrip().replace("µ", glyphs.micro) for line in lines]


def _scattered(growth: HypervolumeTracker, costs: Iterable[Costs]) -> list[tuple[float, float]]:
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
