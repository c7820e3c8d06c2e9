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
    from planish.core.registry import LEVELS

    return _installed(LEVELS, incomplete)


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
    str, typer.Argument(metavar="RUN", help="Id of a run, or the beginning of it.", autocompletion=run_ids)
]
SomeRunId = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]",
        help="Id of a run, or the beginning of it. Default: list the runs.",
        autocompletion=run_ids,
    ),
]
RunsOrBuild = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN...|FOLDER]",
        help="Ids of runs, or the beginnings of them; or a folder with objects that `planish cc` compiled. "
        "Default: the last run that you started.",
        autocompletion=run_ids,
    ),
]
Source = Annotated[str, typer.Argument(metavar="PROGRAM", help="The text of a program, or a file.")]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder to write to; created if it does not exist.")
]

StorePlace = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="LOCATION",
        help="File or postgresql:// URL of the store. Default: PLANISH_STORE, or a file in your data folder.",
    ),
]
Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--file",
        metavar="PATH",
        help="hlo, graph: a model, weights or data of the run, recognized by content; may be repeated.",
    ),
]
Processes = Annotated[
    int,
    typer.Option(
        "--processes",
        metavar="N",
        min=5,
        help="Maximum number of fresh processes that measure while the verdict is undecided.",
    ),
]
RunStored = Annotated[
    bool,
    typer.Option(
        "--run",
        help="llvm: run the stored program with your rights. Its run time cannot be measured otherwise. "
        "Use it only if you trust its author.",
    ),
]
Format = Annotated[Form, typer.Option("--format", help="json prints one document, and shows no progress.")]

Size = Annotated[
    Names, typer.Option("--size", metavar="m=192,...", help="loops: extents of axes; may be repeated.")
]
Shape = Annotated[
    Names,
    typer.Option(
        "--shape",
        metavar="I=1x64x56x56",
        help="Shape of a tensor (loops: if the sizes do not determine it; graph: of an open input); "
        "may be repeated.",
    ),
]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="TYPE",
        help="loops: element type of inputs and outputs: float32 (default), float64, float16, bfloat16, "
        "tf32, qint8, int8 or int32; A=uint8x4,B=int8x4 for single tensors.",
    ),
]
Args = Annotated[
    str, typer.Option("--args", metavar="TEXT", help="llvm: arguments of the program, as in a shell.")
]
Stdin = Annotated[
    str,
    typer.Option("--stdin", metavar="FILE", help="llvm: file that the program reads from standard input."),
]
Run = Annotated[
    bool,
    typer.Option(
        "--run",
        help="llvm: run each candidate and compare its output, even if no time is measured. "
        "`--run './prog 5 < input'` combines --args and --stdin.",
    ),
]
Link = Annotated[
    str, typer.Option("--link", metavar="TEXT", help="llvm: libraries to link with, such as '-lz -pthread'.")
]
Workload = Annotated[
    str,
    typer.Option(
        "--workload",
        metavar="FILE",
        help="hlo: how the module is run and scored: a .toml file, a .py file, which is executed, or "
        "'outputs' to compare outputs. Default: the .toml file next to the module.",
    ),
]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        metavar="DIR",
        help="hlo: folder of the examples. Default: that of the workload, or PLANISH_DATA, or a stand-in.",
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend",
        "--target",
        metavar="NAME",
        help="Code generator, one of the level's; loops: opencl, opencl:NAME or cuda:ARCH for a GPU. "
        "all, with --executor ray: the usual one, with a run for each kind of machine in the cluster.",
    ),
]
PerFunction = Annotated[
    bool,
    typer.Option(
        "--per-function",
        help="llvm: tune each function separately; with `--objective time`, only the hot functions.",
    ),
]
LevelOption = Annotated[
    Names,
    typer.Option("--option", metavar="NAME=VALUE", help="Another option of the level; may be repeated."),
]
LevelName = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="NAME",
        help="Level of the program. Default: the one that accepts it.",
        autocompletion=level_names,
    ),
]
Objective = Annotated[
    str,
    typer.Option(
        "--objective",
        metavar="NAME,...",
        help="Objectives, as listed by 'planish levels'; the first leads. Default: the level's first; "
        "hlo: all.",
    ),
]
Searcher = Annotated[
    str,
    typer.Option(
        "--searcher",
        metavar="NAME",
        help="Searcher, as listed by 'planish searchers'. Default: the level's first.",
        autocompletion=searcher_names,
    ),
]
Searchers = Annotated[
    Names,
    typer.Option(
        "--searcher",
        metavar="NAME",
        help="Searcher with its options, such as beam-dfs:width=8,depth=5; may be repeated.",
        autocompletion=searcher_names,
    ),
]
Setting = Annotated[
    Names, typer.Option("--set", metavar="NAME=VALUE", help="Option of the searcher; may be repeated.")
]
Space = Annotated[
    str,
    typer.Option(
        "--space", metavar="NAME", help="Space, as listed by 'planish levels'. Default: the level's first."
    ),
]
Spaces = Annotated[
    Names,
    typer.Option("--space", metavar="NAME", help="Space, as listed by 'planish levels'; may be repeated."),
]
Trials = Annotated[
    int | None,
    typer.Option("--trials", metavar="N", help="End after this many candidates, stored ones included."),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        metavar="S",
        help="End the search after this many seconds; the comparison takes at most as long, or 5 s. "
        "Default: 10, without --trials.",
    ),
]
TargetValue = Annotated[
    float | None,
    typer.Option(
        "--target-value", metavar="V", help="End when the leading objective reaches this value, in its unit."
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of all random decisions.")]
Cores = Annotated[
    int, typer.Option("--cores", metavar="N", min=1, help="Number of cores that the program may use.")
]
ExecutorName = Annotated[
    Literal["local", "ray"],
    typer.Option(
        "--executor",
        help="Where candidates are measured: on this machine, or on the machines of a Ray cluster.",
    ),
]
RayAddress = Annotated[
    str,
    typer.Option(
        "--ray",
        metavar="HOST:PORT",
        help="Address of the cluster for `--executor ray`. Default: RAY_ADDRESS, or Ray is started on this "
        "machine for the duration of the command.",
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers",
        metavar="N",
        help="Processes that build and verify in parallel, at most one per core. 0: one, and one for each "
        "core that the program leaves free, up to 8.",
    ),
]
Finalists = Annotated[
    int | None,
    typer.Option(
        "--finalists",
        metavar="N",
        min=1,
        help="How many of the best are measured again at the end, besides the default candidate, variants of "
        "the best (loops: by other code generators) and the baseline. Default: 3; 8 with several objectives; "
        "1 with `--per-function --objective time`.",
    ),
]
Pick = Annotated[
    int,
    typer.Option("--pick", metavar="N", min=1, help="Number of the finalist, as 'planish show' prints it."),
]
PickOrBest = Annotated[
    int | None,
    typer.Option(
        "--pick",
        metavar="N",
        min=1,
        help="Number of the finalist, as 'planish show' prints it. Default: the best, except the baseline.",
    ),
]
KernelName = Annotated[
    str,
    typer.Option(
        "--name",
        metavar="NAME",
        help="loops: name of the C function and of the files. Default: made from the program and schedule.",
    ),
]
Remeasure = Annotated[
    bool, typer.Option("--remeasure", help="Start a new run, and measure stored candidates again.")
]
ReportFile = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a report of the run (HTML).")
]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write. Default: planish-ID.html; planish-comparison.html for several runs.",
    ),
]
TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="NAME",
        help="loops: processor to generate code for: aarch64, x86-64, x86-64-v3 (AVX2) or x86-64-v4 "
        "(AVX-512). Default: this one.",
    ),
]
ExportFolder = Annotated[
    Path | None,
    typer.Option(
        "--export",
        metavar="DIR",
        help="Write the winner for use without planish. Without it, an ONNX model is written to the "
        "current folder.",
    ),
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


_MEANT = {
    "trials": "--trials",
    "seconds": "--seconds",
    "target": "--target-value",
    "searcher": "--searcher",
    "searcher_options": "--set",
    "objective": "--objective",
    "cores": "--cores",
    "workers": "--workers",
    "seed": "--seed",
    "store": "--store",
    "remeasure": "--remeasure",
}
"""Arguments in Python, each with its option."""
_ALSO = {"json": "--format json", "out": "--output", "out_dir": "--export"}
"""Options of other tools, each with the option here."""


def option_for(word: str, command: Any) -> str:
    """Return the option of a command that is called by a word in other tools; empty where there is none."""
    from planish.tuning.settings import synonyms_of

    name = word.lstrip("-").replace("-", "_")
    found = _ALSO.get(name) or _MEANT.get(synonyms_of(_MEANT).get(name, ""), "")
    known = {option for parameter in command.params for option in parameter.opts}
    return found if found.partition(" ")[0] in known else ""


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
