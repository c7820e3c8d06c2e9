"""`planish corpus costs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planish.cli import options as given
from planish.cli.corpus_label import Corpus, Jobs, Splits

Functions = Annotated[
    int,
    typer.Option("--functions", min=0, help="So many in all, those that the table has counted; 0: all."),
]
Table = Annotated[Path, typer.Argument(metavar="FILE", help="The table, an .npz file; made or added to.")]

Without = Annotated[
    given.Names,
    typer.Option(
        "--without", metavar="PATTERN", help="Files to leave out, by PACKAGE/PATH; may be repeated."
    ),
]

Objectives = Annotated[
    given.Names,
    typer.Option("--objective", metavar="NAME", help="instructions or text_bytes; may be repeated. All."),
]
Besides = Annotated[
    list[Path] | None,
    typer.Option("--besides", metavar="FILE", help="A table whose functions are left out; may be repeated."),
]
Widen = Annotated[
    list[Path] | None,
    typer.Option(
        "--widen",
        metavar="FILE",
        help="A table whose functions alone are run, by the lists that it lacks; its costs are kept.",
    ),
]


def costs(
    corpus: Corpus,
    file: Table,
    split: Splits = None,
    functions: Functions = 0,
    without: Without = None,
    objective: Objectives = None,
    besides: Besides = None,
    widen: Widen = None,
    jobs: Jobs = 0,
    form: given.Format = "text",
) -> None:
    """Run every list of the coresets on functions, and keep what each costs by each objective.

    Functions that the table has are not run again, so the same command goes on where the last one ended, and
    a table may be added to from another corpus. Of some objectives, only their own coresets are run. With
    --widen, of one objective, the table has the lists of others too, and these are not run again.
    """
    from planish.cli.label_watching import watching
    from planish.cli.output import document, table
    from planish.core import PlanishError, StoppedError, stoppable, unknown
    from planish.train.corpus.shards import SPLITS
    from planish.train.cost_tables import read_costs, read_joined
    from planish.train.labelling.label_plan import OBJECTIVES, LabelPlan, bench
    from planish.train.labelling.tabling import coreset_lists, describe_table, table_corpus

    splits = tuple(dict.fromkeys(split or SPLITS))
    counted = tuple(dict.fromkeys(objective or OBJECTIVES))
    for name in counted:
        if name not in OBJECTIVES:
            raise unknown("unknown objective", name, OBJECTIVES)
    if widen and len(counted) != 1:
        raise PlanishError("tables are widened for one objective", "Name it: --objective NAME.")
    narrow = read_joined(widen, counted[0]) if widen else None
    others = {one for table in besides or () for one in read_costs(table).identities.tolist()}
    made = bench(LabelPlan(splits=splits, functions=functions, jobs=jobs))
    try:
        with watching(form) as listener, stoppable():
            given_lists = corpus, file, made, coreset_lists(counted), listener, without or ()
            held = table_corpus(*given_lists, objectives=counted, besides=others, widened=narrow)
    except KeyboardInterrupt as stop:
        raise StoppedError(f"stopped; {file} keeps what is done", "The same command goes on.") from stop
    rows = describe_table(held)
    if form == "json":
        document({"splits": rows})
    else:
        heads = list(rows[0]) if rows else []
        table(heads, [[str(row[head]) for head in heads] for row in rows])
