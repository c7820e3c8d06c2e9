"""`planish corpus label` and `planish corpus coreset`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from planish.cli import options as given
from planish.cli.unread import refuse

Corpus = Annotated[Path, typer.Argument(metavar="CORPUS", help="A corpus: its folder, or a .jsonl.gz file.")]
Labels = Annotated[Path, typer.Argument(metavar="DIR", help="Where labels go, or are.")]
Evaluations = Annotated[
    int,
    typer.Option("--evaluations", min=2, help="Pass lists that are run on each function by its own search."),
]
GiveUp = Annotated[
    int,
    typer.Option(
        "--give-up", min=0, help="A search ends after so many if none is better than -Oz; 0: never."
    ),
]
Lists = Annotated[
    int, typer.Option("--lists", min=0, help="Best lists of all that are run on every function.")
]
Candidates = Annotated[
    int, typer.Option("--candidates", min=1, help="Of how many lists the best are chosen.")
]
Sample = Annotated[
    int, typer.Option("--sample", min=1, help="On how many training functions they are chosen.")
]
LabelObjective = Annotated[
    str, typer.Option("--objective", metavar="NAME", help="instructions (default) or text_bytes.")
]
LabelSearcher = Annotated[
    str,
    typer.Option("--searcher", metavar="NAME", help="portfolio (default), or random-minimise: the thesis's."),
]
WithCoreset = Annotated[
    bool,
    typer.Option(
        "--coreset/--no-coreset", help="Begin each search with the coreset that comes with planish."
    ),
]
Splits = Annotated[
    given.Names,
    typer.Option(
        "--split", metavar="NAME", help="train, validation, test or csmith; may be repeated. All by default."
    ),
]
Functions = Annotated[
    int, typer.Option("--functions", min=0, help="About so many functions, drawn evenly; 0: all.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=0, help="Processes; 0: as many as there are cores.")]
Size = Annotated[int, typer.Option("--size", min=1, help="At most so many lists.")]
Joining = Annotated[
    int,
    typer.Option(
        "--join",
        min=0,
        metavar="N",
        help="Join the N lists chosen first two by two, and choose again among both; 0: none.",
    ),
]
CoresetFile = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the coreset goes.")]


def label(
    command: typer.Context,
    corpus: Corpus,
    out: Labels,
    evaluations: Evaluations = 150,
    give_up: GiveUp = 24,
    lists: Lists = 40,
    candidates: Candidates = 200,
    sample: Sample = 1000,
    objective: LabelObjective = "instructions",
    searcher: LabelSearcher = "portfolio",
    with_coreset: WithCoreset = True,
    split: Splits = None,
    functions: Functions = 0,
    seed: given.Seed = 0,
    jobs: Jobs = 0,
    form: given.Format = "text",
) -> None:
    """Find the best pass list of each function of a corpus.

    First a search on each function by itself, then the best lists of all on every one. Ctrl-C loses no
    more than the last 256 functions: the same command goes on where the last one ended.
    """
    from planish.cli.label_watching import watching
    from planish.cli.output import document, say
    from planish.core import StoppedError, stoppable
    from planish.train.corpus.shards import SPLITS
    from planish.train.labelling.label_plan import LabelPlan
    from planish.train.labelling.run import label_corpus, label_page

    if not lists:
        refuse(command, "labelling with --lists 0", {"candidates", "sample"})
    if searcher != "portfolio":
        refuse(command, f"labelling by {searcher}", {"with_coreset"})
    splits = tuple(dict.fromkeys(split or SPLITS))
    how = (objective, evaluations, give_up, lists, candidates, sample, searcher, with_coreset)
    plan = LabelPlan(*how, splits, functions, seed, jobs)
    try:
        with watching(form) as listener, stoppable():
            card = label_corpus(corpus, out, plan, listener, shlex.join(["planish", *sys.argv[1:]]))
    except KeyboardInterrupt as stop:
        raise StoppedError(f"stopped; {out} keeps what is done", "The same command goes on.") from stop
    if form == "json":
        document(card)
    else:
        say(label_page(card))


def coreset(
    corpus: Corpus,
    labels: Labels,
    output: CoresetFile,
    size: Size = 20,
    join: Joining = 0,
    candidates: Candidates = 200,
    sample: Sample = 1000,
    seed: given.Seed = 0,
    jobs: Jobs = 0,
) -> None:
    """Choose the few pass lists that together save most on the training functions of a labelled corpus.

    Each choice is the list that saves most beside those before it and -Oz. With --join, two lists that are
    good for different functions may become one that is good for both; it takes as long as both.
    """
    import json

    from planish.cli.errors import writing
    from planish.cli.output import say
    from planish.core.files import replace_text
    from planish.train.labelling.choice import build_coreset
    from planish.train.labelling.label_plan import LabelPlan
    from planish.train.labelling.run import read_label_card

    card = read_label_card(labels)
    plan = LabelPlan(card["plan"]["objective"], candidates=candidates, sample=sample, seed=seed, jobs=jobs)
    made = build_coreset(corpus, labels, plan, size, join)
    with writing(output):
        replace_text(output, json.dumps(made, indent=1) + "\n")
    say(f"wrote {output}: {len(made['lists'])} lists")
