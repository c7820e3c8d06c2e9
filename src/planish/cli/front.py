"""Pareto front of a run with several objectives, for people and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from planish.cli.output import GAP, say, table, width
from planish.core import Measured
from planish.core.front import growth_of, pareto_front, reference_point
from planish.core.wording import number
from planish.report.front_table import FrontTable, Grid, effect_grids, front_table
from planish.tuning.comparison import Compared, Finalist
from planish.tuning.comparison_codec import finalist_to_json, medians, secondary_baseline_to_json
from planish.tuning.result import Result
from planish.tuning.scatter import ASCII, FULL, scatter


def show_front(result: Result) -> None:
    """Write the plot, how the hypervolume grew, and the table of the front."""
    objectives = result.stored.objectives
    growth = growth_of(result.stored_trials, objectives, result.baseline_candidate)
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
    growth = growth_of(result.stored_trials, objectives, result.baseline_candidate)
    front = [
        {
            "trial": trial.index,
            "hash": trial.candidate.hash,
            "steps": json.loads(trial.candidate.text),
            "values": dict(trial.outcome.values),
        }
        for trial in pareto_front(result.stored_trials, objectives)
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
