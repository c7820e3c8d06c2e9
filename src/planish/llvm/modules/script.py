"""The script by which `opt` alone makes an improved module again."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from planish.core import PlanishError
from planish.llvm.modules.forked_work import begin, single, whole_backend
from planish.llvm.modules.module_result import ModuleRecipe
from planish.llvm.repeat_commands import OBJECT, OPTIMISED, PREPARED

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
        """Give the marks that keep passes from all but some functions; no name means all."""
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
        PlanishError: a function's name is none that `opt` can be told.
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
    place, version = {"prepared": PREPARED, "optimised": OPTIMISED, "object": OBJECT}, whole_backend().version
    major = version.partition(".")[0]
    lines = [_HEAD.format(version=version, major=major, step=_STEP, **place), *script.lines, *_ends(recipe)]
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
        (self.folder / mark).write_text("".join(f"{_told(name)},{attribute}\n" for name, attribute in before))
        options = (f"-force-remove-attribute={_told(name)}:{attribute}\n" for name, attribute in after)
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


def _told(name: str) -> str:
    if not name or set(name) & set(",:=\n\r\"' \\") or not name.isprintable():
        raise PlanishError(
            f"opt cannot be told of a function '{name}'", "Rename it, or tune without --export."
        )
    return name
