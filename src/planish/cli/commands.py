"""Command line of planish: its commands, each imported when it is invoked."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from planish.cli.output import guarded

COMMANDS = {
    "tune": ("tune:tune", "Search for the best way to run a program."),
    "compile": ("compile:compile_", "Compile an ONNX model or a StableHLO module to one shared library."),
    "inspect": ("inspect:inspect", "Show the class of a network, and which passes change it."),
    "batch": ("gpu_batches:batch", "Compile schedules for a GPU, to be measured where it is."),
    "measure": ("gpu_batches:measure", "Verify and time a batch on this machine's GPU."),
    "show": ("stored_runs:show", "Show a run with its result, or list the runs."),
    "report": ("stored_runs:report", "Write runs as one HTML file, or show what a build saved."),
    "dashboard": ("dashboard:dashboard", "Show the runs of a store in a browser, live."),
    "serve": ("serve:serve", "Verify and measure what clients, such as agents, submit."),
    "validate": ("stored_runs:validate", "Check that the winner of a run still holds."),
    "export": ("stored_runs:export", "Write the winner of a run for use without planish."),
    "compare": ("compare:compare", "Compare searchers, or the winners of runs."),
    "passes": ("passes:passes", "Show what a pass list does to a module."),
    "bench-passes": ("bench_passes:bench_passes", "Tune many modules, and compare with recorded results."),
    "levels": ("listings:levels", "List the kinds of programs that can be tuned."),
    "searchers": ("listings:searchers", "List the searchers, what they need, and their options."),
    "targets": ("listings:targets", "Show this machine as each level sees it."),
    "cc": ("cc:cc", 'Compile C like clang, but smaller: CC="planish cc".'),
    "c++": ("cc:cxx", 'Compile C++ like clang, but smaller: CXX="planish c++".'),
    "size": ("size:size", "Show what functions and sections cost, and flags to try."),
    "runs": ("stored_runs:runs", "List, delete, export and merge runs."),
    "corpus": ("corpus:corpus", "Make corpora of LLVM IR functions, and label them."),
    "learn": ("learn:learn", "Improve the cost model of loops for this machine, in the background."),
    "models": ("models:models", "List, fit, evaluate, export and remove cost models."),
    "policy": ("policies:policy", "List, train, evaluate, export and remove policies."),
}
"""Name to the module and its function or group of commands, and the line of `planish --help`."""

_OTHER_COMMANDS = {
    "autotune": "tune",
    "benchmark": "compare",
    "build": "compile",
    "check": "validate",
    "delete": "runs delete",
    "help": "--help",
    "list": "runs",
    "ls": "runs",
    "optimize": "tune",
    "plot": "report",
    "run": "tune",
    "search": "tune",
    "studies": "runs",
    "train": "policy train",
    "trials": "show",
    "ui": "dashboard",
    "verify": "validate",
    "version": "--version",
}
"""Commands of other tools, each with what is called so here."""


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


_WITH_RUN = frozenset(("tune", "compare"))
_RUN = "--run"


def how_run(words: Sequence[str]) -> list[str]:
    """Write `--run COMMAND` and `--run=COMMAND` as `--option run=COMMAND`; `--run` alone stays.

    What follows `--run` is a command where it has spaces or begins with `./`, and is not a file of a program.
    """
    if not _WITH_RUN.intersection(words[:2]):
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
_COMPLETING = "_PLANISH_COMPLETE"
"""The variable by which a shell asks for completions."""


class Front(TyperGroup):
    """Turns errors into one line and an exit code, and takes --debug wherever it stands.

    Until a command is invoked, its name and its line of help are all that there is of it.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands.update({name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()})

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Import a command, so that it can be invoked."""
        if args[0] in COMMANDS:
            self.commands[args[0]] = load_command(args[0])
        elif args[0] in _OTHER_COMMANDS:
            ctx.fail(f"No such command '{args[0]}'. Did you mean 'planish {_OTHER_COMMANDS[args[0]]}'?")
        return super().resolve_command(ctx, args)

    def main(self, args: Sequence[str] | None = None, **_: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Run a command and leave the process."""
        open_closed_streams()
        if _COMPLETING in os.environ:
            return super().main(args, prog_name="planish")
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # what failed programs print may not be text at all
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


def load_command(name: str) -> Any:
    """Import a command, or a group of commands, by its name in `planish --help`."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(import_module(f"planish.cli.{module}"), attribute)
    group = typer.Typer(rich_markup_mode=None, add_completion=False)
    if isinstance(found, typer.Typer):
        group.add_typer(found, name=name)
    else:
        group.command(name, context_settings=AS_CLANG if module == "cc" else None)(found)
    return typer.main.get_group(group).commands[name]


AS_CLANG = {"ignore_unknown_options": True, "help_option_names": []}
"""All words of `planish cc` are clang's, --help too."""

app = typer.Typer(
    cls=Front,
    rich_markup_mode=None,  # rich's help looks better, and takes twice as long
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"planish {version('planish')}")
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
