"""Description and export of programs whose hot functions have lists of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from planish.core import Candidate
from planish.levels.llvm.backend import open_backend
from planish.levels.llvm.function_steps import is_of_functions
from planish.levels.llvm.hot.lists import USUAL, passes_within
from planish.levels.llvm.hot.programs import ProgramBuild, ProgramBuilder, function_lists
from planish.levels.llvm.modules.export import BegunNames, begun_names, write_module, write_script
from planish.levels.llvm.modules.transform import ModuleRecipe, survived

SHOWN = 0.01
"""Functions with a smaller share of the time are not listed, unless they have a list of their own."""
_DIFFERENCES = 6


def function_rows(
    before: Mapping[str, float], after: Mapping[str, float], candidate: Candidate
) -> Iterator[Sequence[str]]:
    """Yield a table of where the time goes, its head first: function, share, seconds and passes.

    Args:
        before: seconds by function with -O3.
        after: the same with the candidate.
        candidate: may be -O3.
    """
    yield "function", "share", "-O3", "now", "passes, where not as -O3"
    steps = function_lists(candidate) if is_of_functions(candidate) else ()
    lists = {name: step.pipeline for step in steps for name in step.functions}
    total = sum(before.values()) or 1.0
    for name in sorted({*before, *lists}, key=lambda name: -before.get(name, 0.0)):
        seconds = before.get(name, 0.0)
        if seconds >= SHOWN * total or name in lists:
            share = f"{seconds / total:.0%}" if name in before else ""
            times = (f"{each[name] * 1e3:,.3f} ms" if name in each else "" for each in (before, after))
            yield name, share, *times, _differs(lists.get(name, ""))


def _differs(pipeline: str) -> str:
    """Return the passes that a list has beyond those of -O3, and those that it lacks."""
    if not pipeline:
        return ""
    own, usual = Counter(passes_within(pipeline)), Counter(USUAL)
    said = [f"+{each}" for each in (own - usual).elements()]
    said += [f"-{each}" for each in (usual - own).elements()]
    more = len(said) - _DIFFERENCES
    return " ".join(said[:_DIFFERENCES]) + (f" and {more} more" if more > 0 else "") or "in another order"


@dataclass(frozen=True)
class _Exported:
    build: ProgramBuild
    text: str
    recipe: ModuleRecipe
    names: BegunNames


def export_program(ir: str, backend: str, candidate: Candidate, folder: Path) -> Sequence[Path]:
    """Write a module before and after, its bitcode and object, a manifest, and a script that repeats it.

    Returns:
        The files.

    Raises:
        PlanishError: LLVM refuses a list, or does not survive it.
        OSError: a file cannot be written.
    """
    made = survived(partial(_exported, ir, backend, candidate), _Exported)
    folder.mkdir(parents=True, exist_ok=True)
    write_script(made.recipe, made.names, folder)
    lists = {name: step.pipeline for step in function_lists(candidate) for name in step.functions}
    manifest = {"llvm": open_backend(backend).version, "functions": lists, "recipe": asdict(made.recipe)}
    return write_module(folder, ir, made.text, made.build.bitcode, made.build.code, manifest)


def _exported(ir: str, backend: str, candidate: Candidate) -> _Exported:
    builder = ProgramBuilder(ir, open_backend(backend))
    build, recipe = builder.build(candidate), builder.recipe(candidate)
    with closing(open_backend(backend).parse(build.bitcode)) as module:
        return _Exported(build, module.text(), recipe, begun_names(ir, recipe))
