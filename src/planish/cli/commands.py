"""Commands, put together."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from planish.cli.bench_passes import bench_passes
from planish.cli.cc import AS_CLANG, cc, cxx
from planish.cli.compare import compare
from planish.cli.corpus import corpus
from planish.cli.inspect import inspect
from planish.cli.listings import levels, searchers, targets
from planish.cli.models import models
from planish.cli.options import COMPLETING
from planish.cli.output import guarded
from planish.cli.passes import passes
from planish.cli.policies import evaluate, policy
from planish.cli.policy_training import train
from planish.cli.runs import runs
from planish.cli.stored_runs import export, report, show, validate
from planish.cli.tune import tune
from planish.core.version import __version__


def open_closed_streams() -> None:
    """Open those that are closed, on nothing.

    Python has no stream where `planish show >&-` closed one, and the next file to be opened would take its
    number: what a library prints would go into the store then.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        _open_on_nothing(number)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _open_on_nothing(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)  # our own processes have these streams too


_COMMANDS = frozenset(("tune", "compare"))
_RUN = "--run"


def how_run(words: Sequence[str]) -> list[str]:
    """Write `--run COMMAND` and `--run=COMMAND` as `--option run=COMMAND`; `--run` alone stays.

    What follows `--run` is a command where it has spaces or begins with `./`, and is no file of a program.
    """
    if not _COMMANDS.intersection(words[:2]):
        return list(words)
    return list(_rewritten(words))


def _rewritten(words: Sequence[str]) -> Iterator[str]:
    left = iter(words)
    for word in left:
        if word.startswith(f"{_RUN}="):
            yield from ("--option", word.removeprefix("--"))
        elif word != _RUN:
            yield word
        elif (following := next(left, None)) is None or not _is_command(following):
            yield word
            yield from () if following is None else (following,)
        else:
            yield from ("--option", f"run={following}")


def _is_command(word: str) -> bool:
    if word.startswith("-") or (word.endswith((".c", ".ll", ".bc")) and Path(word).is_file()):
        return False
    return word.startswith("./") or " " in word


DEBUG = "--debug"


class Front(TyperGroup):
    """Turns errors into one line and an exit code, and takes --debug wherever it stands."""

    def main(self, args: Sequence[str] | None = None, **_: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Run a command and leave the process."""
        open_closed_streams()
        if COMPLETING in os.environ:
            return super().main(args, prog_name="planish")
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # what failed programs print may be no text at all
                stream.reconfigure(errors="backslashreplace")
        words = list(sys.argv[1:] if args is None else args)
        end = words.index("--") if "--" in words else len(words)
        debug = DEBUG in words[:end]
        rest = [word for i, word in enumerate(words) if word != DEBUG or i >= end]
        given, words = words, how_run([DEBUG, *rest] if debug and rest else rest)
        sys.exit(guarded(lambda: self._run(words, given), debug=debug))

    def _run(self, words: list[str], given: Sequence[str]) -> None:
        with self.make_context("planish", words, obj=given) as context:
            self.invoke(context)
        sys.stdout.flush()


app = typer.Typer(
    cls=Front,
    rich_markup_mode=None,  # rich's help looks better, and takes twice as long
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"planish {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def front(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show the traceback of an error.")] = False,
) -> None:
    """Make programs faster: try many ways to run them, verify and measure each, keep the best."""
    del version, debug
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for command in (
    *(tune, inspect, show, report, validate, export, compare, passes, bench_passes),
    *(levels, searchers, targets),
):
    app.command()(command)
app.command("cc", context_settings=AS_CLANG)(cc)
app.command("c++", context_settings=AS_CLANG)(cxx)
app.add_typer(runs, name="runs")
app.add_typer(corpus, name="corpus")
app.add_typer(models, name="models")
policy.command()(train)
policy.command()(evaluate)
app.add_typer(policy, name="policy")
