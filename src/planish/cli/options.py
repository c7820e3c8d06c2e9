"""Arguments and options of the commands, completion in the shell, and refusal of options without effect."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

NEWEST = 50
"""Runs that are offered."""


def level_names(incomplete: str) -> list[str]:
    """Offer the levels that are installed."""
    from planish.levels.registry import GROUP

    return _installed(GROUP, incomplete)


def searcher_names(incomplete: str) -> list[str]:
    """Offer the searchers that are installed."""
    from planish.search.factory import GROUP

    return _installed(GROUP, incomplete)


def run_ids(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Offer the newest runs of the store, each with what it searched; none where the store cannot be read."""
    from planish.core import PlanishError
    from planish.store import open_store

    try:
        with open_store(context.params.get("store"), read_only=True) as store:
            found = store.runs(limit=NEWEST)
            return [
                (run.id, f"{run.searcher}, {run.trials:,} trials, {run.status}")
                for run in found
                if run.id.startswith(incomplete)
            ]
    except PlanishError:
        return []


def _installed(group: str, incomplete: str) -> list[str]:
    from planish.core import registry

    return [name for name in registry.names(group) if name.startswith(incomplete)]


Form = Literal["text", "json"]
Names = list[str] | None

RunId = Annotated[
    str, typer.Argument(metavar="ID", help="A run, by its id or the beginning of it.", autocompletion=run_ids)
]
SomeRunId = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="A run, by its id or the beginning of it.", autocompletion=run_ids),
]
RunsOrBuild = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID...|FOLDER]",
        help="A run, or several to be compared, by their ids or the beginnings of them; or the folder of a "
        "build that `planish cc` compiled.",
        autocompletion=run_ids,
    ),
]
Source = Annotated[str, typer.Argument(metavar="PROGRAM", help="A program's text, or a file.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Where to write; made where it is missing.")]

StorePlace = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="LOCATION",
        help="The store: a file, or postgresql://...; else PLANISH_STORE, else a file in your data folder.",
    ),
]
Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        metavar="PATH",
        help="hlo, graph: a model, weights or data of the run, known by content; may be repeated.",
    ),
]
Processes = Annotated[
    int,
    typer.Option(
        "--processes", min=5, help="The most fresh processes that measure while the verdict is undecided."
    ),
]
RunStored = Annotated[
    bool,
    typer.Option("--run", help="llvm: run the stored program; use it only if you trust its author."),
]
Format = Annotated[Form, typer.Option("--format", help="json writes one document to standard output.")]

Size = Annotated[Names, typer.Option("--size", metavar="m=192,...", help="loops: extents of axes.")]
Shape = Annotated[
    Names, typer.Option("--shape", metavar="I=1x64x56x56", help="loops, graph: a tensor's shape.")
]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="TYPE",
        help="loops: float32 (default), float64, float16, bfloat16, int8, int32; A=int8 for one tensor.",
    ),
]
Args = Annotated[
    str, typer.Option("--args", metavar="TEXT", help="llvm: what the program is run with, as in a shell.")
]
Stdin = Annotated[
    str, typer.Option("--stdin", metavar="FILE", help="llvm: what the program reads from standard input.")
]
Run = Annotated[
    bool,
    typer.Option(
        "--run",
        help="llvm: run every candidate and compare its answer, also where nothing is timed. "
        "--run './prog 5 < input' says how.",
    ),
]
Link = Annotated[
    str, typer.Option("--link", metavar="TEXT", help="llvm: libraries of the program: '-lz -pthread'.")
]
Workload = Annotated[
    str,
    typer.Option(
        "--workload",
        metavar="FILE",
        help="hlo: how the module is run and scored; .toml, or .py, which is run; or 'outputs': by its own.",
    ),
]
Data = Annotated[
    str,
    typer.Option("--data", metavar="DIR", help="hlo: the examples; else by the workload or PLANISH_DATA."),
]
Backend = Annotated[
    str, typer.Option("--backend", metavar="NAME", help="The code generator, one of the level's.")
]
PerFunction = Annotated[
    bool,
    typer.Option(
        "--per-function", help="llvm: tune each function by itself; for the time those in which it goes."
    ),
]
LevelOption = Annotated[
    Names, typer.Option("--option", metavar="NAME=VALUE", help="Another option of the level.")
]
LevelName = Annotated[
    str,
    typer.Option(
        "--level", metavar="NAME", help="The level; else found by the program.", autocompletion=level_names
    ),
]
Objective = Annotated[
    str, typer.Option("--objective", metavar="NAME,...", help="What to improve; the first leads.")
]
Searcher = Annotated[
    str,
    typer.Option(
        "--searcher", metavar="NAME", help="See 'planish searchers'.", autocompletion=searcher_names
    ),
]
Searchers = Annotated[
    Names,
    typer.Option(
        "--searcher",
        metavar="NAME",
        help="See 'planish searchers'; may be repeated.",
        autocompletion=searcher_names,
    ),
]
Setting = Annotated[
    Names, typer.Option("--set", metavar="NAME=VALUE", help="An option of the searcher; may be repeated.")
]
Space = Annotated[str, typer.Option("--space", metavar="NAME", help="See 'planish levels'.")]
Spaces = Annotated[
    Names, typer.Option("--space", metavar="NAME", help="See 'planish levels'; may be repeated.")
]
Trials = Annotated[int | None, typer.Option("--trials", help="End after this many candidates.")]
Seconds = Annotated[
    float | None, typer.Option("--seconds", help="End after so many seconds; 10 where --trials is not given.")
]
TargetValue = Annotated[
    float | None, typer.Option("--target-value", help="End when the objective is as good.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="All randomness of the search comes from it.")]
Cores = Annotated[int, typer.Option("--cores", help="Cores that the program may use.")]
Workers = Annotated[
    int, typer.Option("--workers", help="Processes that build and verify side by side; 0 chooses.")
]
Finalists = Annotated[
    int | None,
    typer.Option(
        "--finalists",
        min=1,
        help="How many of the best are measured again at the end. Default: 3; of a front 8.",
    ),
]
Pick = Annotated[
    int, typer.Option("--pick", metavar="N", min=1, help="Which of the finalists: 1 for #1, the first shown.")
]
PickOrBest = Annotated[
    int | None,
    typer.Option(
        "--pick",
        metavar="N",
        min=1,
        help="Which of the finalists: 1 for #1, the first shown. Default: the best but the baseline.",
    ),
]
Remeasure = Annotated[bool, typer.Option("--remeasure", help="Start again, and measure what is known again.")]
ReportFile = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write a report (HTML).")]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Default: planish-ID.html; of several runs planish-comparison.html.",
    ),
]
ExportFolder = Annotated[
    Path | None,
    typer.Option("--export", metavar="DIR", help="Write the winner for use without planish (of ONNX: to .)."),
]


@dataclass(frozen=True)
class ProgramOptions:
    """Options that say how to read a program."""

    size: Size = None
    shape: Shape = None
    dtype: Dtype = ""
    args: Args = ""
    stdin: Stdin = ""
    run: Run = False
    link: Link = ""
    workload: Workload = ""
    data: Data = ""
    backend: Backend = ""
    option: LevelOption = None


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: a parameter of a dataclass stands for its fields, each an option of the command."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    options = list[tuple[str, Any, Any]]()
    for parameter in signature(command).parameters.values():
        if group := groups.get(parameter.name):
            types = get_type_hints(group, include_extras=True)
            found = [(field.name, field.default, types[field.name]) for field in fields(group)]
            options += [(name, Parameter.empty if usual is MISSING else usual, t) for name, usual, t in found]
        else:
            options.append((parameter.name, parameter.default, hints[parameter.name]))
    kind = Parameter.KEYWORD_ONLY
    parameters = [Parameter(name, kind, default=usual, annotation=hint) for name, usual, hint in options]
    vars(run)["__signature__"] = Signature(parameters)  # by which typer finds the options
    return run


def refuse_unread(
    command: typer.Context, what: str, read: Container[str], hint: str = "Leave it out."
) -> None:
    """Refuse options of the command line that are not read.

    Args:
        command: that was called.
        what: is done, such as "a comparison of runs"; begins the message.
        read: names of the parameters that count for that.
        hint: how to fix it.

    Raises:
        PlanishError: others were given.
    """
    names = {parameter.name for parameter in command.command.params if parameter.name}
    refuse(command, what, {name for name in names if name not in read}, hint)


def refuse(command: typer.Context, what: str, unread: Container[str], hint: str = "Leave it out.") -> None:
    """Refuse some options of the command line, which are not read.

    Args:
        command: that was called.
        what: is done; begins the message.
        unread: names of the parameters that do not count for that.
        hint: how to fix it.

    Raises:
        PlanishError: one of them was given.
    """
    from planish.core import PlanishError

    found = [
        max(parameter.opts, key=len)
        for parameter in command.command.params
        if parameter.name and parameter.name in unread and _is_given(command, parameter.name)
    ]
    if found:
        raise PlanishError(f"{what} does not read {', '.join(found)}", hint)


def refuse_before(group: typer.Context) -> None:
    """Refuse options that stand before a group's command, which has options of its own.

    Raises:
        PlanishError: there are some: `planish runs --store a.db delete ID` would delete from another store.
    """
    name = group.invoked_subcommand
    refuse_unread(group, f"'{name}'", (), f"Write it after '{name}'.")


def _is_given(command: typer.Context, name: str) -> bool:
    source = command.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
