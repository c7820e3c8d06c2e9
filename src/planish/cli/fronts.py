"""Pareto fronts as text: the plot, the table, and what each member does."""

from __future__ import annotations

import sys

from planish.cli.output import GAP, say, table, width
from planish.core.front import growth_of
from planish.core.wording import number
from planish.report.front_table import FrontTable, Grid, effect_grids, front_table
from planish.tuning.result import Result
from planish.tuning.scatter import ASCII, FULL, scatter


def show_front(result: Result, columns: int | None = None) -> None:
    """Write the plot, how the hypervolume grew, and the table of the front.

    Args:
        result: of a run with several objectives.
        columns: the width of the table; None for that of standard output.
    """
    objectives = result.stored.objectives
    growth = growth_of(result.stored_trials, objectives, result.baseline_candidate)
    encoding = sys.stdout.encoding or "ascii"
    for line in scatter(growth, FULL if "utf" in encoding.lower() else ASCII):
        say(line)
    if growth.volume is not None:
        after = growth.volumes[-1][0]
        say(f"\nhypervolume {number(growth.volume)} (baseline 1), reached after {after:,} evaluations")
    if front := result.front:
        say()
        show_front_table(front_table(front), width() if columns is None else columns)
        for member in front.finalists:
            if member.cross_check.agrees is False:
                say(f"{member.name}: {member.cross_check.why}")
        say()


def show_front_table(made: FrontTable, most: int) -> None:
    """Write the table of a front, in two parts where it is wider than `most` columns."""
    for shown in _column_parts(made, most):
        heads = [made.columns[index] for index in shown]
        table(heads, [[row[index] for index in shown] for row in made.rows], made.right)
        say()
    if made.note:
        say(made.note)


def _column_parts(made: FrontTable, most: int) -> list[list[int]]:
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
    say(f"\neffects of single edits and of pairs: {grid.name}")
    table(["", *heads], rows, heads)
    for numbers, cell in grid.triples:
        say(f"{numbers} together: {cell.text}{'*' * cell.together}")
    if any(cell.together for row in grid.rows for cell in row):
        say("* differs from the effects of both alone")
