"""Reference page of the commands, written from their definitions.

    .venv/bin/python docs/commands.py

It writes docs/reference/cli.md; a test compares that file with what this program writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from typing import Any

from planish.cli.commands import COMMANDS, load_command

PAGE = Path(__file__).parent / "reference" / "cli.md"

HEAD = """\
# Command line

<!-- Written by docs/commands.py from the definitions of the commands: change these, and run it again. -->

`planish COMMAND --help` prints the same text as this page. Results go to standard output, progress and errors to
standard error. With `--format json`, a command prints one [JSON document](json.md) and no progress. An error is one line,
and each kind of error has an [exit code](exit-codes.md); `--debug` adds the traceback. `planish --version` prints the
version. `planish --install-completion` installs completion of commands, options, levels, searchers and ids of runs for
bash, zsh and fish.

`RUN` is the id of a run, or the beginning of it. `--option` passes options to the level; the pages of [`loops`](loops.md),
[`llvm`](llvm.md), [`hlo`](hlo.md) and [`graph`](graph.md) list them.
"""  # noqa: E501

TAIL = """\
## Environment variables

| variable | meaning |
|---|---|
| `PLANISH_STORE` | location of the store, if `--store` is not given |
| `PLANISH_DATA` | folder of the data sets of [`hlo`](hlo.md#data) |
| `PLANISH_CLANG` | clang to use, for C files, corpora and [`planish cc`](../how-to/cc.md). Default: the newest one whose IR the installed LLVM reads, or the one of the package `ziglang` |
| `PLANISH_LIBLLVM`, `PLANISH_LLVM_BACKEND` | library of LLVM, and the way to call it ([`llvm`](llvm.md#llvm-versions)) |
| `PLANISH_LOCK` | lock of timed runs that several users share ([security](../security.md#locks-and-caches)) |
| `PLANISH_SECONDS`, `PLANISH_EVALUATIONS`, `PLANISH_RUN`, `PLANISH_CACHE` | settings of [`planish cc`](../how-to/cc.md#how-much-time-it-takes) |

## The same from Python

| command | Python |
|---|---|
| `tune` | `planish.tune`; with `--per-function` `planish.tuning.batch.tune_parts` |
| `show`, `export` | `planish.load_run`, `Result.export` |
| `runs` | `planish.runs`, `Store.delete_run`, `Store.take_run` |
| `report` | `planish.report.write_report`, `planish.plot`; of a build `planish.cc.reporting.builds` |
| `validate` | `planish.validate` |
| `compare` | `planish.tuning.compare.compare_searches`, `compare_results` |
| `inspect` | `planish.levels.graph.architecture.recognize`, `planish.levels.graph.starting_lists` |
| `passes` | `planish.levels.llvm.passes.pipeline.parse_pipeline` |
| `bench-passes` | `planish.tuning.batch` |
| `levels`, `searchers`, `targets` | `planish.core.registry.level_named`, `planish.search.describe_searcher`, `Level.machine` |
| `corpus` | `planish.train.corpus`, `planish.train.labeling`, `planish.train.cost_tables` |
| `models`, `policy` | `planish.models`, `planish.train` |
| `learn` | `planish.train.background.improve` |
"""  # noqa: E501


def page() -> str:
    """Return the page, as Markdown."""
    sections = (_section(f"planish {name}", load_command(name)) for name in COMMANDS)
    return "\n".join([HEAD, *sections, TAIL])


def _section(path: str, command: Any) -> str:
    """Write a command, and after it those of a group."""
    lines = [f"## {path}", "", f"    {_usage(path, command)}", "", *_help(command.help), *_table(command)]
    groups: Mapping[str, Any] = getattr(command, "commands", {})
    return "\n".join([*lines, *(_section(f"{path} {name}", each) for name, each in groups.items())])


def _usage(path: str, command: Any) -> str:
    words = [_metavar(each) for each in command.params if each.param_type_name == "argument"]
    options = "[OPTIONS]" if any(each.param_type_name == "option" for each in command.params) else ""
    return " ".join(filter(None, [path, options, *words]))


def _code(text: str) -> str:
    """Mark options and variables as code, outside of code."""
    parts = re.split(r"(`[^`]*`|(?<!\w)'[^']*'(?!\w))", text)
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(
            r"(?<![\w-])(--?[A-Za-z][\w-]*=?(?: [a-z]+=[A-Z]+)?|PLANISH_[A-Z_]+)", r"`\1`", parts[index]
        )
    for index in range(1, len(parts), 2):
        parts[index] = re.sub(r"^'(.*)'$", r"`\1`", parts[index])
    return "".join(parts)


def _help(text: str) -> Iterator[str]:
    """Write the help, whose indented paragraphs are examples."""
    for paragraph in cleandoc(text).split("\n\n"):
        yield paragraph if paragraph.startswith("    ") else _code(" ".join(paragraph.split("\n")))
        yield ""


def _table(command: Any) -> Iterator[str]:
    rows = [row for each in command.params if (row := _row(each))]
    if rows:
        yield from ("| argument, option | meaning |", "|---|---|", *rows, "")


def _row(parameter: Any) -> str:
    """Write a parameter: its names and value, its help, and its default."""
    if parameter.param_type_name == "argument":
        names = _metavar(parameter)
    else:
        words = [*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts]
        names = ", ".join(words)
        names += "" if parameter.is_flag else f" {_metavar(parameter)}"
    default = parameter.default
    # Not by equality: 0 is a default, and no flag that is off.
    hidden = default is None or default is False or default in ("", ())
    shown = "" if hidden else f" Default: {_default(parameter)}."
    text = f"{parameter.help}{shown}".replace("|", "\\|")
    names = names.replace("|", "\\|")
    return f"| `{names}` | {_code(text)} |"


def _metavar(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    return "|".join(getattr(parameter.type, "choices", ())) or "TEXT"


def _default(parameter: Any) -> str:
    default = parameter.default
    if default is True:
        return "yes"
    return str(default)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
