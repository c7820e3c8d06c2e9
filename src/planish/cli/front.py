"""The front of a run with several objectives, for people and for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from planish.cli.output import GAP, say, table, width
from planish.cli.scatter import ASCII, FULL, scatter
from planish.core import Measured, growth_of, pareto_front, reference_point
from planish.report.data import ReportData
from planish.report.front_table import FrontTable, Grid, effect_grids, front_table
from planish.report.wording import number
from planish.tuning.comparison import Compared, Finalist
from planish.tuning.comparison_codec import finalist_to_json, medians, reference_to_json


def show_front(story: ReportData) -> None:
    """Write the plot, how the hypervolume grew, and the table of the front."""
    objectives = story.task.objectives
    growth = growth_of(story.trials, objectives, story.baseline)
    encoding = sys.stdout.encoding or "ascii"
    for line in scatter(growth, FULL if "utf" in encoding.lower() else ASCII):
        say(line)
    if growth.volume is not None:
        after = growth.volumes[-1][0]
        say(f"\nhypervolume {number(growth.volume)} (baseline 1), reached after {after:,} evaluations")
    if front := story.front:
        made = front_table(front)
        say()
        for places in _parts(made, width()):
            columns = [made.columns[place] for place in places]
            table(columns, [[row[place] for place in places] for row in made.rows], made.right)
            say()
        if made.note:
            say(made.note)
        for member in front.finalists:
            if member.opinion.agrees is False:
                say(f"{member.name}: {member.opinion.why}")
        say()


def _parts(made: FrontTable, most: int) -> list[list[int]]:
    """List the places of the table's columns, some of which may have one name.

    Where the table is too wide, they are those of two: the scores stand apart.
    """
    cells = zip(made.columns, *made.rows, strict=True)
    wide = sum(max(map(len, column)) + GAP for column in cells) - GAP
    if wide <= most or not made.scores:
        return [[*range(len(made.columns))]]
    name, *others = range(len(made.columns))
    return [
        [name, *(place for place in others if (made.columns[place] in made.scores) is apart)]
        for apart in (False, True)
    ]


def show_members(story: ReportData, *, effects: bool) -> None:
    """Write what each of the front does.

    Args:
        story: of a run with several objectives.
        effects: whether to write what its steps do alone and together.
    """
    for member, told in zip(story.finalists, story.told, strict=False):
        heading, text = next(iter(told.items()), ("", ""))
        title = f"{member.name}: {heading}"
        say(f"\n{title}\n{'-' * len(title)}\n{text.rstrip()}")
        for note in member.notes:
            say(f"Note: {note}.")
        for grid in effect_grids(member, story.task.objectives) if effects else ():
            _show_grid(grid)


def _show_grid(grid: Grid) -> None:
    heads = [str(place) for place in range(1, len(grid.rows) + 1)]
    rows = [
        [head, *[""] * place, *(f"{cell.text}{'*' * cell.together}" for cell in row)]
        for place, (head, row) in enumerate(zip(heads, grid.rows, strict=True))
    ]
    say(f"\neffect of edits alone, and of pairs: {grid.name}")
    table(["", *heads], rows, heads)
    for places, cell in grid.triples:
        say(f"{places} together: {cell.text}{'*' * cell.together}")
    if any(cell.together for row in grid.rows for cell in row):
        say("* other than both by themselves make together")


def front_document(story: ReportData) -> Mapping[str, Any]:
    """Give the search's front and the hypervolume; nothing with one objective."""
    objectives = story.task.objectives
    if len(objectives) < 2:
        return {}
    growth = growth_of(story.trials, objectives, story.baseline)
    front = [
        {
            "trial": trial.index,
            "hash": trial.candidate.hash,
            "steps": json.loads(trial.candidate.text),
            "values": dict(trial.outcome.values),
        }
        for trial in pareto_front(story.trials, objectives)
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


END = ("objectives", "scores", "second_opinion", "edits", "effects", "trial", "notes")
"""What is told of a finalist as the store keeps it."""


def ending_document(finalist: Finalist, baseline: Compared) -> Mapping[str, Any]:
    """Give what is known of a finalist besides the leading objective."""
    told = finalist_to_json(finalist, baseline)
    return {name: told[name] for name in END}


def baseline_document(story: ReportData) -> Mapping[str, Any]:
    """Give what is known of the baseline of a front besides the leading objective."""
    base = story.front and story.front.baseline
    return {"objectives": medians(base), "scores": dict(base.scores)} if base else {}


def reference_document(story: ReportData) -> Mapping[str, Any]:
    """Give the other baseline of a front; nothing where there is none."""
    reference = story.front and story.front.reference
    return {"reference": reference_to_json(reference)} if reference else {}
