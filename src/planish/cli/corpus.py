"""`planish corpus` and its commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planish.cli import options as given
from planish.cli.options import refuse

if TYPE_CHECKING:
    from planish.levels.llvm.clang import Compiler
    from planish.tuning.progress import ProgressDisplay

_LINE_S = 10.0
"""Seconds between two lines of progress."""

Corpus = Annotated[Path, typer.Argument(metavar="CORPUS", help="A corpus: its folder, or a .jsonl.gz file.")]
Labels = Annotated[Path, typer.Argument(metavar="DIR", help="Where labels go, or are.")]
Evaluations = Annotated[
    int,
    typer.Option("--evaluations", min=2, help="Pass lists to run on each function in its own search."),
]
GiveUp = Annotated[
    int,
    typer.Option(
        "--give-up", min=0, help="End a search after this many lists if none is better than -Oz; 0: never."
    ),
]
Lists = Annotated[
    int, typer.Option("--lists", min=0, help="How many of the best lists to run on every function.")
]
Candidates = Annotated[
    int, typer.Option("--candidates", min=1, help="How many lists the best are chosen from.")
]
Sample = Annotated[
    int, typer.Option("--sample", min=1, help="How many training functions they are chosen on.")
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
    int, typer.Option("--functions", min=0, help="About this many functions, drawn evenly; 0: all.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=0, help="Processes; 0: as many as there are cores.")]
Size = Annotated[int, typer.Option("--size", min=1, help="The most lists.")]
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
    more than the last 256 functions: the same command resumes where the last one ended.
    """
    from planish.cli.output import document, say
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
    with _resumable(out, form) as display:
        card = label_corpus(corpus, out, plan, display, _command())
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

    Each choice is the list that saves most in addition to those before it and -Oz. With --join, two lists
    that are good for different functions may become one that is good for both; it takes as long as both.
    """
    import json

    from planish.cli.output import say, writing
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


CostedFunctions = Annotated[
    int,
    typer.Option("--functions", min=0, help="How many in all, with those that the table has; 0: all."),
]
Table = Annotated[Path, typer.Argument(metavar="FILE", help="The table, an .npz file; made or added to.")]

Without = Annotated[
    given.Names,
    typer.Option("--without", metavar="PATTERN", help="Files to skip, by PACKAGE/PATH; may be repeated."),
]

Objectives = Annotated[
    given.Names,
    typer.Option("--objective", metavar="NAME", help="instructions or text_bytes; may be repeated. All."),
]
Besides = Annotated[
    list[Path] | None,
    typer.Option("--besides", metavar="FILE", help="A table whose functions are skipped; may be repeated."),
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
    functions: CostedFunctions = 0,
    without: Without = None,
    objective: Objectives = None,
    besides: Besides = None,
    widen: Widen = None,
    jobs: Jobs = 0,
    form: given.Format = "text",
) -> None:
    """Run every list of the coresets on functions, and keep what each costs by each objective.

    Functions that the table has are not run again, so the same command resumes where the last one ended, and
    a table may be added to from another corpus. Of some objectives, only their own coresets are run. With
    --widen, of one objective, the table has the lists of others too, and these are not run again.
    """
    from planish.cli.output import document, table
    from planish.core import PlanishError, unknown
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
    with _resumable(file, form) as display:
        given_lists = corpus, file, made, coreset_lists(counted), display, without or ()
        held = table_corpus(*given_lists, objectives=counted, besides=others, widened=narrow)
    rows = describe_table(held)
    if form == "json":
        document({"splits": rows})
    else:
        heads = list(rows[0]) if rows else []
        table(heads, [[str(row[head]) for head in heads] for row in rows])


corpus = typer.Typer(help="Make corpora of LLVM IR functions, and label them.")
corpus.command()(label)
corpus.command()(coreset)
corpus.command()(costs)

Debian = Annotated[
    given.Names, typer.Option("--debian", metavar="NAME", help="A Debian source package; may be repeated.")
]
DebianList = Annotated[
    given.Names,
    typer.Option("--debian-list", metavar="FILE", help="A file of their names; 'standard' is built in."),
]
Paths = list[Path] | None
CFolders = Annotated[Paths, typer.Option("--folder", metavar="DIR", help="A folder of C files.")]
IRFiles = Annotated[
    Paths, typer.Option("--ir", metavar="FILE", help="A .ll or .bc file, or a folder of them.")
]
Csmith = Annotated[
    int, typer.Option("--csmith", min=0, help="How many random programs, of about six functions each.")
]
FirstSeed = Annotated[int, typer.Option("--seed", min=1, help="The first random program's seed.")]
MaxChars = Annotated[int, typer.Option("--max-chars", min=1, help="Skip longer functions.")]
Alignment = Annotated[bool, typer.Option(help="Keep the alignment of loads and stores.")]
Noundef = Annotated[bool, typer.Option(help="Keep 'noundef'.")]
KeepSources = Annotated[bool, typer.Option("--keep-sources", help="Keep the unpacked sources.")]


@corpus.command()
def build(
    command: typer.Context,
    out: given.Folder,
    debian: Debian = None,
    debian_list: DebianList = None,
    folder: CFolders = None,
    ir: IRFiles = None,
    csmith: Csmith = 0,
    seed: FirstSeed = 1,
    jobs: Jobs = 0,
    max_chars: MaxChars = 20_000,
    alignment: Alignment = True,
    noundef: Noundef = True,
    keep_sources: KeepSources = False,
    form: given.Format = "text",
) -> None:
    """Compile C code to a corpus of different functions, with a data card.

    The same command resumes where the last one ended; other sources may be added later.
    """
    from planish.cli.output import document, say
    from planish.core import AllFailedError
    from planish.train.corpus.build import BuildPlan, CorpusRequest, build_corpus, packages_of
    from planish.train.corpus.unit import CorpusRecipe

    if not csmith:
        refuse(command, "a corpus without --csmith", {"seed"})
    if not (debian or debian_list):
        refuse(command, "a corpus without Debian packages", {"keep_sources"})
    request = CorpusRequest(debian or (), debian_list or (), folder or (), ir or (), csmith, seed)
    with _resumable(out, form) as display:
        packages = packages_of(request, display.log)
        compiler, llvm = _toolchain(any(package.kind != "ir" for package in packages))
        recipe = CorpusRecipe(compiler, max_chars, alignment, noundef)
        card = build_corpus(out, BuildPlan(packages, recipe, llvm, jobs, keep_sources, _command()), display)
    if form == "json":
        document(card)
    else:
        say(f"{_summary(card)}\n\nplanish corpus card {out}")
    if not card["functions"]:
        raise AllFailedError(f"{out} has no functions", f"See why: planish corpus card {out}.")


@corpus.command()
def card(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A corpus.")], form: given.Format = "text"
) -> None:
    """Show what a corpus holds: functions, sizes, duplicates, packages."""
    from planish.cli.output import document, say
    from planish.train.corpus.reader import page, read_card

    held = read_card(folder)
    if form == "json":
        document(held)
    else:
        say(page(held))


@contextmanager
def _resumable(path: Path, form: given.Form) -> Generator[ProgressDisplay]:
    """Show the progress of work that Ctrl-C ends, and that resumes from what a path holds."""
    from planish.core import StoppedError, stoppable
    from planish.tuning.progress import ProgressDisplay

    try:
        with ProgressDisplay(show=form == "text", every=_LINE_S) as display, stoppable():
            yield display
    except KeyboardInterrupt as stop:
        raise StoppedError(f"stopped; {path} keeps what is done", "Run the same command to resume.") from stop


def _command() -> str:
    return shlex.join(["planish", *sys.argv[1:]])


def _toolchain(compiles: bool) -> tuple[Compiler | None, str]:
    """Find the compiler, where one is needed, and LLVM's version."""
    from planish.levels.llvm.backend.libraries import open_backend
    from planish.levels.llvm.clang import find_compiler

    llvm = open_backend().version
    return find_compiler(int(llvm.partition(".")[0])) if compiles else None, llvm


def _summary(card: Mapping[str, Any]) -> str:
    splits = ", ".join(f"{name} {held['functions']:,}" for name, held in card["splits"].items())
    duplicates = card["duplicates"]
    twice = duplicates["within_packages"] + duplicates["across_packages"]
    return (
        f"{card['functions']:,} different functions of {len(card['packages']):,} packages ({splits})\n"
        f"{twice:,} of {duplicates['found']:,} were duplicates; "
        f"{card['files']['compiled']:,} files compiled, {card['files']['failed']:,} did not"
    )
