"""Verdict of a run, one line and its figures, and results as text and as HTML.

The chart of a result is a drawing in SVG and needs no script: it is shown offline, on pages that render
notebooks, and in notebooks that are not trusted. `planish.plot.history` draws the interactive one. A search
with two objectives is drawn with characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Literal

from planish.core import HELDOUT, Objective, PlanishError, Ratio, Trial, is_within, within
from planish.core.front import Costs, HypervolumeTracker, reference_point
from planish.core.wording import (
    amount,
    improvement,
    interval,
    label,
    multiple,
    number,
    one_line,
    saving,
    scale,
    title,
    verdict_word,
    words,
)
from planish.store.schema import RunStatus
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.stored_run import failure_groups, flops_of

if TYPE_CHECKING:
    from planish.tuning.stored_run import StoredRun

RunVerdictKind = Literal["better", "same", "worse", "undecided", "failed", "open", "nothing"]


@dataclass(frozen=True)
class RunVerdict:
    """Verdict of a run: the line, and the figures that justify it.

    Args:
        kind: "undecided" where the comparison is too uncertain to decide, or did not happen; "open" while the
            search goes on; "nothing" where nothing was measured.
        headline: one line.
        grounds: sentences with the figures.
    """

    kind: RunVerdictKind
    headline: str
    grounds: tuple[str, ...]


def continuation(status: RunStatus) -> str:
    """Describe what the command that made a run does when it is given again."""
    return "completes the comparison first" if status == "finished" else "resumes the search, then compares"


_NO_BARGAIN = "No candidate is better than the baseline without being worse in another objective"


def verdict_of_front(front: Comparison) -> RunVerdict:
    """Judge a front, as measured again, by its members that are worse than the baseline in nothing."""
    objectives = front.objectives
    found = [(o, member) for o in objectives if (member := _best(front, o)) is not None]
    if not found:
        if unsettled := front.undecided(None):
            text = f"Undecided: {unsettled.name} may be better than the baseline"
            return RunVerdict("undecided", text, (*_ends(front), *_how_of_front(front)))
        return RunVerdict("same", _NO_BARGAIN, (*_ends(front), *_how_of_front(front)))
    text = "; ".join(_bargain(front, o, member) for o, member in found)
    members = {member.name: member for _, member in found}
    unseen = [line for member in members.values() for line in _unseen(front, member)]
    return RunVerdict("better", text[0].upper() + text[1:], (*unseen, *_ends(front), *_how_of_front(front)))


def _best(front: Comparison, objective: Objective) -> Finalist | None:
    """Find the member that is best by an objective, of those better by it and worse in nothing."""
    fit = [m for m in front.finalists if m.unharmed and m.measured[objective.name].verdict == "better"]
    return min(fit, key=lambda m: objective.cost(_decisive_value(m, objective)), default=None)


def _decisive_value(member: Compared, objective: Objective) -> float:
    """Return the value on held-out examples; without such, that of the comparison."""
    held = member.heldout_value(objective.name)
    return member.measured[objective.name].median if held is None else held


def _bargain(front: Comparison, objective: Objective, member: Finalist) -> str:
    rest = [o for o in front.objectives if o != objective]
    worse = "no more" if all(o.direction == "down" for o in rest) else "no worse"
    noise = any(member.noise_decides(o.name, front.baseline) for o in rest)
    at = f"{worse} {' and '.join(map(label, rest))}{' beyond the noise' if noise else ''}"
    return f"{_change(front, objective, member)} at {at} ({member.name})"


def _change(front: Comparison, objective: Objective, member: Finalist) -> str:
    if not objective.exact:
        return f"{multiple(member.measured[objective.name].gain.value)} {words(objective)['better']}"
    now, before = (amount(_decisive_value(m, objective), objective.unit) for m in (member, front.baseline))
    part = "" if member.heldout_value(objective.name) is None else f"{HELDOUT} "
    return f"{part}{label(objective)} {now} instead of {before}"


def _unseen(front: Comparison, member: Finalist) -> Iterator[str]:
    """Describe how a member did on data that the search did not see."""
    base = front.baseline.scores
    pairs = [
        f"{name.replace('_', ' ')} {number(v)} against {number(base[name])}{_known(member, name)}"
        for name, v in member.scores.items()
        if name in base and not is_within(name)
    ]
    if pairs:
        yield f"{member.name} at the end, against the baseline: {', '.join(pairs)}"


def _known(member: Finalist, score: str) -> str:
    known = member.scores.get(within(score))
    return "" if known is None else f" (± {known:.2g})"


def _ends(front: Comparison) -> Iterator[str]:
    """Name the best by each objective, whatever it costs."""
    for objective in front.objectives:
        best = min(front.finalists, key=lambda m: objective.cost(m.measured[objective.name].median))
        values = ", ".join(
            f"{label(m.objective)} {amount(m.median, m.objective.unit)}" for m in best.measured.values()
        )
        yield f"best {label(objective)} of the front: {best.name}, {values}"


def _how_of_front(front: Comparison) -> Iterator[str]:
    yield f"{len(front.finalists)} on the front, measured again at the end, interleaved, in fresh processes"
    asked = {m.name: m.cross_check.agrees for m in front.finalists}
    differing = [name for name, agrees in asked.items() if agrees is False]
    silent = [name for name, agrees in asked.items() if agrees is None]
    if differing:
        yield f"the cross-check differs on {', '.join(differing)}: no win is claimed for these"
    if 0 < len(silent) < len(asked):
        yield f"the cross-check has no answer for {', '.join(silent)}: their gains are not cross-checked"


_UNSURE = "single measurement; the best of many is usually optimistic"
_KEEP = "the result is the baseline"
_NAMED = 10
"""How many times the low end the high end of an interval is, at most, whose estimate a headline names."""


def verdict_of(result: StoredRun) -> RunVerdict:
    """Judge a run by the comparison at its end, and by nothing else.

    The last ground of an undecided one is how to go on.
    """
    found = _verdict(result)
    if found.kind != "undecided":
        return found
    # The store has no command lines: they may hold passwords.
    repeated = "repeat the command, or the call of planish.tune, that made this run"
    return replace(found, grounds=(*found.grounds, f"{repeated}: it {continuation(result.run.status)}"))


def _verdict(result: StoredRun) -> RunVerdict:
    if result.best_trial is None:
        return _nothing(result)
    if result.front:
        found = verdict_of_front(result.front)
        return replace(found, grounds=(_KEEP, *found.grounds)) if result.keeps_baseline else found
    if result.comparison is None or not result.finalists:
        return _open(result)
    build = _kept if result.keeps_baseline else _compared
    return build(result, result.comparison)


def _kept(result: StoredRun, comparison: Comparison) -> RunVerdict:
    """Judge a run whose result is the baseline by the best of the others: it is the same, or undecided."""
    if unknown := comparison.undecided(result.baseline_candidate):
        if unknown.unmeasured is None:
            return _undecided(result, unknown)
        headline = "Undecided: no candidate was compared with the baseline"
        return RunVerdict("undecided", headline, (f"{unknown.name}: {unknown.why}",))
    best = comparison.contender(result.baseline_candidate)
    text = [f"the best other candidate is {best.name}: {_beside(result, best)}"] if best else []
    return RunVerdict("same", "No candidate is better than the baseline", (_KEEP, *text, _how(result)))


def _undecided(result: StoredRun, finalist: Finalist) -> RunVerdict:
    """Report what was seen of a finalist whose interval is too wide to decide, and how to settle it."""
    gain = finalist.lead.gain
    quality = "fast" if result.objective.unit == "s" else "good"
    about = f"about {multiple(gain.value)} as {quality} as the baseline"
    # Where the ends are farther apart than that, the estimate would be taken for more than it is.
    headline = f"Undecided: {about if gain.high <= _NAMED * gain.low else 'the measurements are too noisy'}"
    grounds = [f"{finalist.name}: {_interval(gain)}, which is too wide to decide"]
    if result.keeps_baseline:
        grounds.append("until it is decided, the result is the baseline")
    return RunVerdict("undecided", headline, (*grounds, _how(result)))


def _beside(result: StoredRun, finalist: Finalist) -> str:
    gain, verdict = finalist.lead.gain, verdict_word(finalist.lead.verdict, result.objective)
    if result.objective.exact:
        return f"{improvement(gain.value, result.objective)} {saving(result.objective)}, {verdict}"
    return f"{multiple(gain.value)}, {_interval(gain)}, {verdict}"


def _interval(gain: Ratio) -> str:
    return f"95 % confidence interval {interval(gain)}"


def _compared(result: StoredRun, comparison: Comparison) -> RunVerdict:
    kind, gain = comparison.finalists[0].lead.verdict, comparison.finalists[0].lead.gain.value
    if kind == "undecided":
        return _undecided(result, comparison.finalists[0])
    good, bad = words(result.objective).values()
    headlines: dict[RunVerdictKind, str] = {
        "better": f"{improvement(gain, result.objective)} {good} than the baseline",
        "same": "No difference from the baseline",
        "worse": f"{bad.capitalize()} than the baseline: {multiple(gain)}",
    }
    return RunVerdict(kind, headlines.get(kind, "Failed"), tuple(_grounds(result, kind, comparison)))


def _grounds(result: StoredRun, kind: RunVerdictKind, comparison: Comparison) -> Iterator[str]:
    winner = comparison.finalists[0]
    gain = winner.lead.gain
    if not result.objective.exact:
        noise = f"{multiple(gain.value)}, which is within the noise: " if kind == "same" else ""
        yield f"{noise}{_interval(gain)}"
    both = _both(result, winner.lead.median, comparison.baseline.lead.median)
    yield f"median {label(result.objective)} {both}"
    yield _how(result)


def _how(result: StoredRun) -> str:
    return f"measured again at the end{'' if result.objective.exact else ', interleaved, in fresh processes'}"


def _both(result: StoredRun, winner: float, base: float) -> str:
    text = f"{amount(winner, result.objective.unit)} against {amount(base, result.objective.unit)}"
    flops = flops_of(result.best_trial, result.objective)
    return f"{text} ({number(flops / winner)} against {number(flops / base)} GFLOPS)" if flops else text


def _open(result: StoredRun) -> RunVerdict:
    assert result.best_trial is not None
    value = result.objective.cost(result.best_trial.cost(result.objective) or 0.0)
    found = f"best {label(result.objective)} of the search: {amount(value, result.objective.unit)}"
    grounds = (
        f"{found}, in trial {result.best_trial.index + 1}",
        *(() if result.objective.exact else (_UNSURE,)),
    )
    if result.run.status == "running":
        return RunVerdict("open", "Not compared with the baseline", (*grounds, "the search is still running"))
    undecided = "Undecided: not compared with the baseline"
    return RunVerdict("undecided", undecided, (*grounds, f"the run is {result.run.status}"))


def _nothing(result: StoredRun) -> RunVerdict:
    if not result.stored_trials:
        return RunVerdict("nothing", "Nothing was tried", (f"the run is {result.run.status}",))
    groups = failure_groups(result.stored_trials)[:3]
    reasons = ", ".join(f"{group.stage}: {group.reason} ({group.count})" for group in groups)
    tried = f"{len(result.stored_trials):,} tried"
    return RunVerdict("nothing", "Nothing could be measured", (f"{tried}; {reasons}" if reasons else tried,))


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
