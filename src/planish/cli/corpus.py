"""`planish corpus`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planish.cli import options as given
from planish.cli.corpus_costs import costs
from planish.cli.corpus_label import coreset, label
from planish.cli.unread import refuse

if TYPE_CHECKING:
    from planish.llvm.clang import Compiler

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
    int, typer.Option("--csmith", min=0, help="So many random programs, of about six functions each.")
]
FirstSeed = Annotated[int, typer.Option("--seed", min=1, help="The first random program's seed.")]
Jobs = Annotated[int, typer.Option("--jobs", min=0, help="Processes; 0: as many as there are cores.")]
MaxChars = Annotated[int, typer.Option("--max-chars", min=1, help="Leave longer functions out.")]
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

    The same command goes on where the last one ended; other sources may be added later.
    """
    from planish.cli.corpus_watching import watching
    from planish.cli.output import document, say
    from planish.core import AllFailedError, StoppedError, stoppable
    from planish.train.corpus.build import BuildPlan, build_corpus
    from planish.train.corpus.pipeline import CorpusRequest, packages_of
    from planish.train.corpus.unit import CorpusRecipe

    if not csmith:
        refuse(command, "a corpus without --csmith", {"seed"})
    if not (debian or debian_list):
        refuse(command, "a corpus without Debian packages", {"keep_sources"})
    request = CorpusRequest(debian or (), debian_list or (), folder or (), ir or (), csmith, seed)
    try:
        with watching(form) as listener, stoppable():
            packages = packages_of(request, listener.note)
            compiler, llvm = _toolchain(any(package.kind != "ir" for package in packages))
            recipe = CorpusRecipe(compiler, max_chars, alignment, noundef)
            plan = BuildPlan(packages, recipe, llvm, jobs, keep_sources, _command())
            card = build_corpus(out, plan, listener)
    except KeyboardInterrupt as stop:
        raise StoppedError(f"stopped; {out} keeps what is done", "The same command goes on.") from stop
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


def _toolchain(compiles: bool) -> tuple[Compiler | None, str]:
    """Find the compiler, where one is needed, and LLVM's version."""
    from planish.llvm.backend import open_backend
    from planish.llvm.clang import find_compiler

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


def _command() -> str:
    return shlex.join(["planish", *sys.argv[1:]])
