"""`planish corpus gate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planish.cli import options as given
from planish.cli.corpus_label import LabelObjective, Size

Tables = Annotated[
    list[Path], typer.Argument(metavar="TABLE...", help="What `planish corpus costs` made; one or more.")
]
GateFile = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the gate goes.")]


def gate(
    tables: Tables,
    output: GateFile,
    objective: LabelObjective = "instructions",
    size: Size = 40,
    seed: given.Seed = 0,
) -> None:
    """Train what tells how much each list would save on a function, before any is run.

    It learns from the tables' functions for training alone, by the lists that all tables have.
    """
    from planish.cli.errors import writing
    from planish.cli.output import say
    from planish.corpus.labelling import lists_of_table
    from planish.learn.cost import train_gate, write_gate
    from planish.learn.joined_costs import read_joined

    train = read_joined(tables, objective, described=True).split("train")
    made = train_gate(train, objective, lists_of_table(train, objective, size), seed)
    with writing(output):
        write_gate(made, output)
    say(f"wrote {output}: {len(made.lists)} lists, learnt from {len(train):,} functions")
