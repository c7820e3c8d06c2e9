"""Export of a result, with what is needed to make it again without planish: commands of `opt` and `llc`.

A pass list is a pipeline that `opt` takes. What treats functions apart is a script, which marks the functions
that a pipeline shall leave as they are.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from planish.core import Candidate, PlanishError, Task
from planish.core.hashing import versioned
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.c_source import SourceBuild, SourceBuilder, is_source, source_of
from planish.levels.llvm.function_steps import is_of_functions, plan_of
from planish.levels.llvm.hot.programs import ProgramBuilder, function_lists
from planish.levels.llvm.modules.evaluator import recipe_of
from planish.levels.llvm.modules.transform import (
    LAST,
    OZ,
    MadeModule,
    ModuleRecipe,
    begin,
    initial_pipeline,
    make,
    single,
    survived,
    whole_bindings,
)
from planish.levels.llvm.passes.pipeline import parse_pipeline, passes_of, print_pipeline
from planish.levels.llvm.program import IRProgram
from planish.levels.llvm.task_setup import baseline_passes, prepared

PREPARED, OPTIMIZED, OBJECT = "prepared.ll", "optimized.ll", "optimized.o"
PIPELINE, READ_ME = "pipeline.txt", "README.txt"
SOURCE, REST = "source.c", "rest.o"
MANIFEST, BITCODE = "manifest.json", "optimized.bc"


def export_module(task: Task[IRProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write the module before and after, its object, the passes, and how to repeat them.

    Args:
        task: the module and the objectives.
        candidate: a pass list, or lists of single functions.
        path: the folder; it is made where it is missing.

    Returns:
        The files.

    Raises:
        PlanishError: LLVM refuses the candidate or crashes, or a function's name cannot be passed to `opt`.
        OSError: a file cannot be written.
    """
    ir, leads, backend = prepared(task), task.objectives[0].name, task.target.toolchain["backend"]
    path.mkdir(parents=True, exist_ok=True)
    if is_source(candidate):
        return _export_source(task, candidate, path)
    if not is_of_functions(candidate):
        return _export_list(task, ir, passes_of(candidate), path)
    if leads == "time_s":
        return _export_program(ir, backend, candidate, path)
    return _export_functions(ir, candidate, leads, path)


def commands(task: Task[IRProgram], passes: tuple[str, ...]) -> str:
    """Return the commands that run a pass list by `opt`, and compile what it makes.

    clang's own `-passes` does not exist, and `clang -Oz` adds passes of its own, so clang takes part at the
    end only: with `-disable-llvm-passes` it makes an object of what `opt` wrote.
    """
    pipeline = shlex.quote(print_pipeline(passes))
    optimize = f"opt -passes={pipeline} {PREPARED} -S -o" if passes else f"cp {PREPARED}"
    return f"""\
# LLVM {task.target.toolchain.get("llvm", "")}; 'planish export' writes {PREPARED}
{optimize} {OPTIMIZED}
llc -O2 -relocation-model=pic -filetype=obj {OPTIMIZED} -o {OBJECT}
# or: clang -O2 -fPIC -Xclang -disable-llvm-passes -c {OPTIMIZED} -o {OBJECT}"""


def _export_list(task: Task[IRProgram], ir: str, passes: tuple[str, ...], path: Path) -> Sequence[Path]:
    _write_text(path / PREPARED, ir)
    (path / PIPELINE).write_text(print_pipeline(passes) + "\n")
    (path / READ_ME).write_text(
        f"""{PREPARED}   the module that the passes start from
{OPTIMIZED}  the module that they make
{OBJECT}    the same, compiled
{PIPELINE}   the passes, as opt takes them

To repeat it:

{commands(task, passes)}
"""
    )

    def optimized() -> tuple[str, bytes]:
        with closing(open_bindings(task.target.toolchain["backend"]).parse(ir, PREPARED)) as module:
            module.run(print_pipeline(passes))
            return module.text(), module.object_code()

    try:
        text, code = survived(optimized, tuple[str, bytes], "this pass list")
    except PlanishError as error:
        raise PlanishError(f"cannot make {path / OPTIMIZED}: {error.message}") from error
    _write_text(path / OPTIMIZED, text)
    (path / OBJECT).write_bytes(code)
    return [path / name for name in (PREPARED, OPTIMIZED, OBJECT, PIPELINE, READ_ME)]


def _export_source(task: Task[IRProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write a source in C, and the objects of it and of the rest of the program."""
    (text, named), usual = source_of(candidate), baseline_passes(task)
    ir, backend = prepared(task), task.target.toolchain["backend"]
    timed = task.objectives[0].name == "time_s"

    def built() -> SourceBuild:
        return SourceBuilder(ir, open_bindings(backend), timed=timed, passes=usual).build(candidate)

    source, rest = survived(built, SourceBuild, "this source").codes
    (path / SOURCE).write_text(text)
    (path / OBJECT).write_bytes(source)
    (path / REST).write_bytes(rest)
    (path / PIPELINE).write_text(print_pipeline(named or usual) + "\n")
    (path / READ_ME).write_text(
        f"""{SOURCE}     functions of the program, written anew
{OBJECT}  the same, compiled
{REST}       the other functions of the program, compiled
{PIPELINE} the passes that were run on both, as opt takes them

Link the two objects in place of that of the program.
"""
    )
    return [path / name for name in (SOURCE, OBJECT, REST, PIPELINE, READ_ME)]


@dataclass(frozen=True)
class _Exported:
    text: str
    bitcode: bytes
    code: bytes
    recipe: ModuleRecipe
    names: BegunNames


def _export_program(ir: str, backend: str, candidate: Candidate, folder: Path) -> Sequence[Path]:
    def optimized() -> _Exported:
        builder = ProgramBuilder(ir, open_bindings(backend))
        build, recipe = builder.build(candidate), builder.recipe(candidate)
        with closing(open_bindings(backend).parse(build.bitcode)) as module:
            return _Exported(module.text(), build.bitcode, build.code, recipe, begun_names(ir, recipe))

    made = survived(optimized, _Exported)
    lists = {name: step.pipeline for step in function_lists(candidate) for name in step.functions}
    return _write_module(folder, ir, made, {"functions": lists})


def _export_functions(ir: str, candidate: Candidate, objective: str, folder: Path) -> Sequence[Path]:
    plan, start = plan_of(candidate), initial_pipeline(whole_bindings())
    begun = survived(partial(begun_names, ir, ModuleRecipe(start, (), LAST, plan.inlining)), BegunNames)
    recipe = recipe_of(plan, begun.names, start)
    recipes = ModuleRecipe(OZ, (), LAST), recipe
    base, made = (survived(partial(make, ir, each, objective), MadeModule) for each in recipes)

    def printed() -> tuple[str, bytes]:
        with closing(whole_bindings().parse(made.bitcode)) as module:
            return module.text(), module.object_code()

    text, code = survived(printed, tuple[str, bytes])
    names = base.sizes.keys() | made.sizes.keys()
    sizes = sorted((made.sizes.get(n, 0) - base.sizes.get(n, 0), n) for n in names)
    functions = [
        {
            "name": name,
            "passes": parse_pipeline(plan.list_of(name)),
            "before": base.sizes.get(name, 0),
            "after": made.sizes.get(name, 0),
        }
        for more, name in sizes
        if more
    ]
    exported = _Exported(text, made.bitcode, code, recipe, begun)
    totals = {"baseline": base.total, "total": made.total}
    return _write_module(folder, ir, exported, {**totals, "functions": functions})


def _write_module(folder: Path, ir: str, made: _Exported, manifest: Mapping[str, object]) -> Sequence[Path]:
    """Write what is made of a module, a manifest, and the script that makes it again; return the files."""
    write_script(made.recipe, made.names, folder)
    _write_text(folder / PREPARED, ir)
    _write_text(folder / OPTIMIZED, made.text)
    (folder / BITCODE).write_bytes(made.bitcode)
    (folder / OBJECT).write_bytes(made.code)
    described = {"llvm": whole_bindings().version, **manifest, "recipe": asdict(made.recipe)}
    (folder / MANIFEST).write_text(json.dumps(versioned(described), indent=1) + "\n")
    return [folder / name for name in (PREPARED, OPTIMIZED, BITCODE, OBJECT, MANIFEST, REPEAT, STEPS)]


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


REPEAT, STEPS = "repeat.sh", "steps"
_STEP = f"{STEPS}/module.bc"
_MACHINE = "-relocation-model=pic"
"""As the library has it: passes ask whether tables may hold distances."""

Marks = tuple[tuple[str, str], ...]
"""Functions and the attributes that they get."""


@dataclass(frozen=True)
class BegunNames:
    """The definitions of a module that was begun, and those of them that have attributes that matter."""

    names: tuple[str, ...]
    optnone: frozenset[str]
    noinline: frozenset[str]

    def kept_out(self, chosen: Collection[str]) -> Marks:
        """Return the marks that keep passes from all but some functions; no name means all."""
        if not chosen:
            return ()
        others = [name for name in self.names if name not in {*chosen} | self.optnone]
        never = [(name, "noinline") for name in others if name not in self.noinline]
        return (*((name, "optnone") for name in others), *never)


def begun_names(code: str, recipe: ModuleRecipe) -> BegunNames:
    """Begin a module by a recipe, for the names; LLVM may crash."""
    with closing(single(whole_bindings().parse(code))) as module:
        begin(module, recipe.inlining, recipe.passes)
        definitions = module.definitions()
        having = definitions.having
        return BegunNames(tuple(definitions.by_name), having("optnone"), having("noinline"))


def write_script(recipe: ModuleRecipe, begun: BegunNames, folder: Path) -> None:
    """Write the script and the files that it needs.

    Raises:
        PlanishError: a function's name cannot be passed to `opt`.
        OSError: a file cannot be written.
    """
    (folder / STEPS).mkdir(parents=True, exist_ok=True)
    script = _Script(folder)
    names = frozenset(begun.names)
    left = tuple(each for each in recipe.inlining if each[0] in names)
    script.add(recipe.passes, recipe.inlining, left)
    for pipeline, functions in recipe.lists:
        marks = begun.kept_out(functions)
        script.add(pipeline, marks, marks)
    lines = [
        _head(whole_bindings().version),
        *script.lines,
        f'"$opt" {shlex.join((_MACHINE, f"-passes={recipe.last}", _STEP, "-S", "-o", OPTIMIZED))}',
        f'"$llc" -O2 {_MACHINE} -filetype=obj {OPTIMIZED} -o {OBJECT}',
        f"rm {_STEP}",
    ]
    (folder / REPEAT).write_text("\n".join(lines) + "\n")
    (folder / REPEAT).chmod(0o755)


def _head(version: str) -> str:
    major = version.partition(".")[0]
    return f"""\
#!/bin/sh
# Makes {OPTIMIZED} and {OBJECT} of {PREPARED} again, by LLVM {version}'s opt and llc.
# No pass runs on a function that is optnone: before each list all functions but its own become so,
# and after it they are so no longer. Only the last module is valid as LLVM's verifier sees it.
set -e
cd "$(dirname "$0")"
opt=${{OPT:-opt}} llc=${{LLC:-llc}}
"$opt" --version | grep -q 'LLVM version {major}\\.' ||
    echo "$opt is none of LLVM {major}; where it fails, name one: OPT=opt-{major} LLC=llc-{major} $0" >&2
cp {PREPARED} {_STEP}"""


@dataclass
class _Script:
    folder: Path
    lines: list[str] = field(default_factory=list[str])
    number: int = 0

    def add(self, pipeline: str, before: Marks, after: Marks) -> None:
        """Add a pipeline that is run while functions have attributes."""
        if not before:
            self.lines.append(_run(pipeline))
            return
        self.number += 1
        mark, unmark = f"{STEPS}/{self.number}-mark.csv", f"{STEPS}/{self.number}-unmark.txt"
        (self.folder / mark).write_text(
            "".join(f"{_passable(name)},{attribute}\n" for name, attribute in before)
        )
        options = (f"-force-remove-attribute={_passable(name)}:{attribute}\n" for name, attribute in after)
        (self.folder / unmark).write_text("".join(options))
        self.lines += [_run(f"forceattrs,{pipeline}", f"-forceattrs-csv-path={mark}")]
        if after:
            self.lines += [_run("forceattrs", f"@{unmark}")]


def _run(pipeline: str, *options: str) -> str:
    words = _MACHINE, "-disable-verify", f"-passes={pipeline}", *options, _STEP, "-o", _STEP
    return f'"$opt" {shlex.join(words)}'


def _passable(name: str) -> str:
    if not name or set(name) & set(",:=\n\r\"' \\") or not name.isprintable():
        raise PlanishError(
            f"the name of a function cannot be passed to opt: '{name}'",
            "Rename it, or do not export the result.",
        )
    return name
