"""`planish corpus costs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planish.cli import options as given
from planish.cli.corpus_label import Corpus, Functions, Jobs, Splits

Table = Annotated[Path, typer.Argument(metavar="FILE", help="The table, an .npz file; made or added to.")]

Without = Annotated[
    given.Names,
    typer.Option(
        "--without", metavar="PATTERN", help="Files to leave out, by PACKAGE/PATH; may be repeated."
    ),
]


def costs(
    corpus: Corpus,
    file: Table,
    split: Splits = None,
    functions: Functions = 0,
    without: Without = None,
    jobs: Jobs = 0,
    form: given.Format = "text",
) -> None:
    """Run every list of the coresets on functions, and keep what each costs by each objective.

    Functions that the table has are not run again, so the same command goes on where the last one ended, and
    a table may be added to from another corpus.
    """
    from planish.cli.label_watching import watching
    from planish.cli.output import document, table
    from planish.core import StoppedError, stoppable
    from planish.corpus.labelling import LabelPlan, bench, coreset_lists, describe_table, table_corpus
    from planish.corpus.row import SPLITS

    splits = tuple(dict.fromkeys(split or SPLITS))
    made = bench(LabelPlan(splits=splits, functions=functions, jobs=jobs))
    try:
        with watching(form) as listener, stoppable():
            held = table_corpus(corpus, file, made, coreset_lists(), listener, without or ())
    except KeyboardInterrupt as stop:
        raise StoppedError(f"stopped; {file} keeps what is done", "The same command goes on.") from stop
    rows = describe_table(held)
    if form == "json":
        document({"splits": rows})
    else:
        heads = list(rows[0]) if rows else []
        table(heads, [[str(row[head]) for head in heads] for row in rows])
