"""Export of a module that was made smaller, with the script by which `opt` alone makes it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from planish.core import PlanishError
from planish.levels.llvm.function_steps import FunctionPlan
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
    whole_backend,
)
from planish.levels.llvm.passes import parse_pipeline
from planish.levels.llvm.passes.pipeline import OBJECT, OPTIMISED, PREPARED

REPEAT, STEPS = "repeat.sh", "steps"
_STEP = f"{STEPS}/module.bc"
_MACHINE = "-relocation-model=pic"
"""As the library has it: passes ask whether tables may hold distances."""
_HEAD = """\
#!/bin/sh
# Makes {optimised} and {object} of {prepared} again, by LLVM {version}'s opt and llc.
# No pass runs on a function that is optnone: before each list all functions but its own become so,
# and after it they are so no longer. Only the last module is valid as LLVM's verifier sees it.
set -e
cd "$(dirname "$0")"
opt=${{OPT:-opt}} llc=${{LLC:-llc}}
"$opt" --version | grep -q 'LLVM version {major}\\.' ||
    echo "$opt is none of LLVM {major}; where it fails, name one: OPT=opt-{major} LLC=llc-{major} $0" >&2
cp {prepared} {step}
"""

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
    with closing(single(whole_backend().parse(code))) as module:
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
    left = frozenset(begun.names)
    gone = [each for each in recipe.inlining if each[0] not in left]
    script.add(recipe.passes, recipe.inlining, tuple(each for each in recipe.inlining if each not in gone))
    for pipeline, names in recipe.lists:
        marks = begun.kept_out(names)
        script.add(pipeline, marks, marks)
    names, version = {"prepared": PREPARED, "optimised": OPTIMISED, "object": OBJECT}, whole_backend().version
    major = version.partition(".")[0]
    lines = [_HEAD.format(version=version, major=major, step=_STEP, **names), *script.lines, *_ends(recipe)]
    (folder / REPEAT).write_text("\n".join(lines) + "\n")
    (folder / REPEAT).chmod(0o755)


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


def _ends(recipe: ModuleRecipe) -> Iterator[str]:
    yield f'"$opt" {shlex.join((_MACHINE, f"-passes={recipe.last}", _STEP, "-S", "-o", OPTIMISED))}'
    yield f'"$llc" -O2 {_MACHINE} -filetype=obj {OPTIMISED} -o {OBJECT}'
    yield f"rm {_STEP}"


def _passable(name: str) -> str:
    if not name or set(name) & set(",:=\n\r\"' \\") or not name.isprintable():
        raise PlanishError(
            f"the name of a function cannot be passed to opt: '{name}'",
            "Rename it, or tune without --export.",
        )
    return name


MANIFEST, BITCODE = "manifest.json", "optimised.bc"


def export_functions(code: str, plan: FunctionPlan, objective: str, folder: Path) -> Sequence[Path]:
    """Write a module before and after, its bitcode and object, a manifest, and a script that repeats it.

    Args:
        code: the module, prepared.
        plan: what was found for it.
        objective: what was made less.
        folder: made where it is missing.

    Returns:
        The files.

    Raises:
        PlanishError: LLVM does not survive it.
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    start = initial_pipeline(whole_backend())
    begun = survived(partial(begun_names, code, ModuleRecipe(start, (), LAST, plan.inlining)), BegunNames)
    recipe = recipe_of(plan, begun.names, start)
    base, made = (
        survived(partial(make, code, each, objective), MadeModule)
        for each in (ModuleRecipe(OZ, (), LAST), recipe)
    )
    text, machine_code = survived(partial(_printed, made.bitcode), tuple[str, bytes])
    write_script(recipe, begun, folder)
    names = sorted(base.sizes.keys() | made.sizes.keys())
    changed = [(name, base.sizes.get(name, 0), made.sizes.get(name, 0)) for name in names]
    manifest = {
        "llvm": whole_backend().version,
        "baseline": base.total,
        "total": made.total,
        "functions": [
            {"name": name, "passes": parse_pipeline(plan.list_of(name)), "before": before, "after": after}
            for name, before, after in sorted(changed, key=lambda row: row[2] - row[1])
            if before != after
        ],
        "recipe": asdict(recipe),
    }
    return write_module(folder, code, text, made.bitcode, machine_code, manifest)


def write_module(
    folder: Path, before: str, after: str, bitcode: bytes, code: bytes, manifest: Mapping[str, object]
) -> Sequence[Path]:
    """Write what is made of a module into a folder that has the script.

    Returns:
        The files, those of the script too.

    Raises:
        OSError: one cannot be written.
    """
    (folder / PREPARED).write_text(before, encoding="utf-8", errors="surrogateescape")
    (folder / OPTIMISED).write_text(after, encoding="utf-8", errors="surrogateescape")
    (folder / BITCODE).write_bytes(bitcode)
    (folder / OBJECT).write_bytes(code)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return [folder / name for name in (PREPARED, OPTIMISED, BITCODE, OBJECT, MANIFEST, REPEAT, STEPS)]


def _printed(bitcode: bytes) -> tuple[str, bytes]:
    with closing(whole_backend().parse(bitcode)) as module:
        return module.text(), module.object_code()
