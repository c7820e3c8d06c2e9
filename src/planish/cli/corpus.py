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
from planish.cli.corpus_tokens import tokens
from planish.cli.options import refuse

if TYPE_CHECKING:
    from planish.levels.llvm.clang import Compiler
    from planish.tuning.progress import ProgressDisplay

_LINE_S = 10.0
"""Seconds between two lines of progress."""

Corpus = Annotated[Path, typer.Argument(metavar="CORPUS", help="Corpus: its folder, or a .jsonl.gz file.")]
Labels = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of the labels; created if it does not exist.")
]
Evaluations = Annotated[
    int,
    typer.Option(
        "--evaluations", metavar="N", min=2, help="Pass lists to run on each function in its search."
    ),
]
GiveUp = Annotated[
    int,
    typer.Option(
        "--give-up",
        metavar="N",
        min=0,
        help="End a search that starts with the coreset after this many lists if none is better than "
        "-Oz; 0: never.",
    ),
]
Lists = Annotated[
    int,
    typer.Option(
        "--lists", metavar="N", min=0, help="Number of the best lists to run on every function; 0: none."
    ),
]
Candidates = Annotated[
    int,
    typer.Option("--candidates", metavar="N", min=1, help="Number of lists from which the best are chosen."),
]
Sample = Annotated[
    int,
    typer.Option(
        "--sample", metavar="N", min=1, help="Number of training functions on which lists are chosen."
    ),
]
LabelObjective = Annotated[
    str, typer.Option("--objective", metavar="NAME", help="instructions or text_bytes.")
]
LabelSearcher = Annotated[
    str,
    typer.Option("--searcher", metavar="NAME", help="portfolio, or random-minimize, the one of the thesis."),
]
WithCoreset = Annotated[
    bool,
    typer.Option(
        "--coreset/--no-coreset", help="Start each search with the coreset that comes with planish."
    ),
]
Splits = Annotated[
    given.Names,
    typer.Option(
        "--split", metavar="NAME", help="train, validation, test or csmith; may be repeated. Default: all."
    ),
]
Functions = Annotated[
    int,
    typer.Option(
        "--functions", metavar="N", min=0, help="Use about this many functions, drawn evenly; 0: all."
    ),
]
Jobs = Annotated[
    int, typer.Option("--jobs", metavar="N", min=0, help="Number of processes; 0: one for each core.")
]
Size = Annotated[int, typer.Option("--size", metavar="N", min=1, help="Maximum number of lists.")]
Joining = Annotated[
    int,
    typer.Option(
        "--join",
        min=0,
        metavar="N",
        help="Join pairs of the first N chosen lists (up to 20 passes), and choose again among all; 0: none.",
    ),
]
CoresetFile = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")]


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
    executor: given.ExecutorName = "local",
    ray: given.RayAddress = "",
    form: given.Format = "text",
) -> None:
    """Find the best pass list of each function of a corpus.

    Each function is searched by itself, and its best list is shortened; then the best lists of all are run on
    every function. A label is never worse than -Oz. The same command resumes after an interruption, which
    loses at most the last 256 functions.

        planish corpus label corpus/ labels/ --split train --functions 3000
    """
    from planish.cli.output import document, say
    from planish.cli.request import spreads
    from planish.train.corpus.shards import SPLITS
    from planish.train.labeling.label_plan import LabelPlan
    from planish.train.labeling.run import label_corpus, label_page

    if not lists:
        refuse(command, "labeling with --lists 0", {"candidates", "sample"})
    if searcher != "portfolio":
        refuse(command, f"labeling by {searcher}", {"with_coreset"})
    splits = tuple(dict.fromkeys(split or SPLITS))
    how = (objective, evaluations, give_up, lists, candidates, sample, searcher, with_coreset)
    plan = LabelPlan(*how, splits, functions, seed, jobs)
    with _resumable(out, form) as display, spreads(executor, ray) as spread:
        card = label_corpus(corpus, out, plan, display, _command(), spread=spread)
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
    """Choose a few pass lists that together save most on the training functions of a labeled corpus.

    Each choice is the list that saves most in addition to those before it, relative to the square root of
    its cost. With --join, two lists that are good for different functions may become one that is good for
    both.

        planish corpus coreset corpus/ labels/ --size 40 --join 20 -o coreset.json
    """
    import json

    from planish.cli.output import say, writing
    from planish.core.files import replace_text
    from planish.train.labeling.choice import build_coreset
    from planish.train.labeling.label_plan import LabelPlan
    from planish.train.labeling.run import read_label_card

    card = read_label_card(labels)
    plan = LabelPlan(card["plan"]["objective"], candidates=candidates, sample=sample, seed=seed, jobs=jobs)
    made = build_coreset(corpus, labels, plan, size, join)
    with writing(output):
        replace_text(output, json.dumps(made, indent=1) + "\n")
    say(f"wrote {output}: {len(made['lists'])} lists")


CostedFunctions = Annotated[
    int,
    typer.Option(
        "--functions", metavar="N", min=0, help="Number of functions, including those in the table; 0: all."
    ),
]
Table = Annotated[Path, typer.Argument(metavar="FILE", help="Table, an .npz file; created or extended.")]

Without = Annotated[
    given.Names,
    typer.Option(
        "--without", metavar="PATTERN", help="Files to skip, as a pattern of PACKAGE/PATH; may be repeated."
    ),
]

Objectives = Annotated[
    given.Names,
    typer.Option(
        "--objective", metavar="NAME", help="instructions or text_bytes; may be repeated. Default: both."
    ),
]
Besides = Annotated[
    list[Path] | None,
    typer.Option(
        "--besides",
        metavar="FILE",
        help="Table whose functions are skipped, and count as drawn; may be repeated.",
    ),
]
Widen = Annotated[
    list[Path] | None,
    typer.Option(
        "--widen",
        metavar="FILE",
        help="Table to widen: run only its functions, with the lists that it lacks, and keep its costs; "
        "needs one --objective; may be repeated.",
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
    """Run all lists of the coresets that come with planish on functions, and keep the cost of each.

    The table is what `planish policy train --level llvm` learns from. Functions that it has are not run
    again: the same command resumes after an interruption, and another corpus extends the table.

        planish corpus costs corpus/ costs.npz --split train --functions 20000
    """
    from planish.cli.output import document, table
    from planish.core import PlanishError, unknown
    from planish.train.corpus.shards import SPLITS
    from planish.train.cost_tables import read_costs, read_joined
    from planish.train.labeling.label_plan import OBJECTIVES, LabelPlan, bench
    from planish.train.labeling.tabling import coreset_lists, describe_table, table_corpus

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
corpus.command()(tokens)

Debian = Annotated[
    given.Names,
    typer.Option(
        "--debian", metavar="NAME", help="Debian source package, downloaded by apt; may be repeated."
    ),
]
DebianList = Annotated[
    given.Names,
    typer.Option("--debian-list", metavar="FILE", help="File of names of packages; 'standard' is built in."),
]
Paths = list[Path] | None
CFolders = Annotated[
    Paths, typer.Option("--folder", metavar="DIR", help="Folder of C files; may be repeated.")
]
IRFiles = Annotated[
    Paths,
    typer.Option("--ir", metavar="FILE", help="A .ll or .bc file, or a folder of them; may be repeated."),
]
Csmith = Annotated[
    int,
    typer.Option(
        "--csmith", metavar="N", min=0, help="Number of random programs, of about six functions each."
    ),
]
FirstSeed = Annotated[
    int, typer.Option("--seed", metavar="N", min=1, help="Seed of the first random program.")
]
MaxChars = Annotated[int, typer.Option("--max-chars", metavar="N", min=1, help="Skip longer functions.")]
Alignment = Annotated[bool, typer.Option(help="Keep the alignment of loads and stores.")]
Noundef = Annotated[bool, typer.Option(help="Keep 'noundef' attributes.")]
KeepSources = Annotated[
    bool, typer.Option("--keep-sources", help="Keep the unpacked sources in DIR/sources.")
]


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
    """Compile C code to a corpus of functions without duplicates, with a data card.

    The same command resumes after an interruption, and other sources can be added later. It needs the
    extra `corpus`: `pip install '.[corpus]'`.

        planish corpus build corpus/ --debian-list standard --csmith 2400
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
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Corpus.")], form: given.Format = "text"
) -> None:
    """Show what a corpus contains: functions by split, sizes, duplicates, licenses and packages.

    The same is in DIR/card.md and DIR/card.json.

        planish corpus card corpus/
    """
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
        raise StoppedError(f"stopped; {path} has what is done", "Run the same command to resume.") from stop


def _command() -> str:
    return shlex.join(["planish", *sys.argv[1:]])


def _toolchain(compiles: bool) -> tuple[Compiler | None, str]:
    """Find the compiler, where one is needed, and LLVM's version."""
    from planish.levels.llvm.bindings.libraries import open_bindings
    from planish.levels.llvm.clang import find_compiler

    llvm = open_bindings().version
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
