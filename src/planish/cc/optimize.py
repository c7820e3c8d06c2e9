"""Objects that are smaller than clang's: by a search or a lock file, compared with clang's, and reported."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, cast, get_args

from planish.cc.arguments import code_options
from planish.cc.clang import Compiler, Unit, run
from planish.cc.code_options import CLANGS, REPEATED, SWITCHES, CodeGenerator, CodeOptions, options_of
from planish.cc.job import CompileJob
from planish.cc.lock import LockEntry
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest
from planish.cc.reporting import sizes
from planish.cc.settings import CompileSettings, SearchError
from planish.cc.size_search import FLASH, SIZE, MakeSmaller, SmallerModule, make_smaller, search
from planish.core import PlanishError
from planish.levels.llvm.bindings.elf import code_bytes, function_bytes, loaded_bytes
from planish.levels.llvm.function_steps import Attribute, FunctionPlan, check_pipeline
from planish.levels.llvm.modules.evaluator import make_planned
from planish.levels.llvm.modules.function_costs import Attributes, best_attributes
from planish.levels.llvm.modules.transform import LAST, Level, initial_pipeline, survived, whole_bindings
from planish.levels.llvm.passes.pipeline import parse_pipeline
from planish.sandbox.scratch import Scratch

if TYPE_CHECKING:
    from planish.cc.lock import Result

_VERSIONS = "versions"
_CLANG_TIMES, _PATIENCE_S = 20.0, 30.0
"""Multiple of clang's time, and seconds, beyond its own time after which the search is killed."""
_SLOWEST = 6.0
"""How many seconds by the clock one of the search may take, in all."""


def patience_s(seconds: float, clang_s: float) -> float:
    """Return how long to wait for a search, from its seconds and those that clang takes."""
    return seconds * _SLOWEST + clang_s * _CLANG_TIMES + _PATIENCE_S


def check_version(compiler: Compiler, cache: ObjectCache) -> None:
    """Check that clang is of the LLVM that searches.

    Args:
        compiler: whose installation is known.
        cache: keeps its version, since to ask takes a start of clang.

    Raises:
        SearchError: it is not.
    """
    key = digest(compiler.identity.encode())
    if (reported := cache.read(_VERSIONS, key)) is None:
        reported = run([*compiler.command, "--version"]).written
        cache.put(_VERSIONS, key, reported)
    found = re.search(rb"clang version (\d+)\.", reported)
    theirs, ours = found[1].decode() if found else "an unknown version", whole_bindings().version
    if theirs != ours.partition(".")[0]:
        raise SearchError(f"{compiler.path} is of LLVM {theirs}, and the search uses LLVM {ours}")


def improve(job: CompileJob, make: MakeSmaller | None = None) -> CachedObject | None:
    """Search for a smaller object, and leave it where clang's is.

    Args:
        job: clang has made its object, and the bitcode.
        make: the search; None: `make_smaller`.

    Returns:
        What is to be kept; None where the search failed, and clang's object stays.

    Raises:
        ReadsFilesError: the object may depend on files that are not known.
        UsageError: the search failed, and must not (--planish-strict).
    """
    began, evaluations = monotonic(), job.settings.evaluations
    try:
        check_version(job.unit.compiler, job.cache)
        own = Path(job.unit.output).read_bytes()
        if job.locked:
            choice, n_evaluations, seconds, evaluations = _locked_choice(job, own, job.locked), 0, inf, 0
        else:
            wait_s = patience_s(job.settings.seconds, job.clang_s)
            make = make or partial(make_smaller, cost=cost_of(job.settings))
            found = search(job.bitcode, job.settings.seconds, evaluations or None, job.cache, wait_s, make)
            choice, n_evaluations, seconds = _best(job, own, found), found.evaluations, found.seconds
        times = {"clang_s": round(job.clang_s, 3), "search_s": round(monotonic() - began, 3)}
        report = sizes(own, choice.code, choice.passes)
        about = json.dumps({**report, **choice.to_json(), "evaluations": n_evaluations, **times}).encode()
        if job.lock and not job.locked:
            job.enter_in_lock(about)
        if choice.code != own:
            atomic_write(job.unit.output, choice.code)
    except (SearchError, PlanishError, OSError) as error:
        job.settings.fall_back(f"{job.unit.source}: {error}", job.unit.output)
        return None
    return CachedObject(seconds, evaluations, about, choice.code, has_diagnostics=job.has_diagnostics)


@dataclass(frozen=True)
class Choice:
    """An object, and how it is made.

    Args:
        code: the object.
        result: "passes", "-Os", "-Oz" or "clang", as in a lock file.
        plan: what is run on the module, for "passes".
        options: of code generation.
        end: passes on the whole module after those of the plan.
    """

    code: bytes
    result: Result
    plan: FunctionPlan | None = None
    options: CodeOptions = CLANGS
    end: str = LAST

    @property
    def passes(self) -> Mapping[str, tuple[str, ...]]:
        """The lists that functions have of their own, and changes of their attributes."""
        if self.result in ("-Os", "-Oz"):
            return {name: (self.result, *self.options.of(name)) for name in function_bytes(self.code)}
        lists = self.plan.lists if self.plan else ()
        found = {name: parse_pipeline(pipeline) for pipeline, names in lists for name in names}
        changed = {name for _, names in self.options.attributes for name in names}
        return {name: (*found.get(name, ()), *self.options.of(name)) for name in {*found, *changed}}

    def to_json(self) -> dict[str, object]:
        """Return how it is made, as `CompileJob.enter_in_lock` reads it."""
        options = {"attributes": self.options.attributes, "llvm": self.options.llvm}
        if self.plan is None:
            return {"result": self.result, **options}
        begin = initial_pipeline(whole_bindings())
        described = {"result": self.result, "begin": begin, "end": self.end}
        return {**described, "inlining": self.plan.inlining, "lists": self.plan.lists, **options}


def _best(job: CompileJob, own: bytes, found: SmallerModule) -> Choice:
    """Return the smallest object."""
    unit, for_flash = job.unit, job.settings.for_flash

    def key(choice: Choice) -> Rank:
        return rank(choice.code, own, for_flash=for_flash)

    with Scratch() as scratch:
        generate = CodeGenerator(unit.compiler, code_options(unit.options), scratch.path)

        def made(result: Result, options: CodeOptions) -> Choice:
            if result == "passes":
                return Choice(generate(found.bitcode, options), result, found.plan, options)
            return _by_level(unit, scratch, result, options)

        if not _is_smallest(unit):
            return min([Choice(own, "clang"), *([made("passes", CLANGS)] if found.bitcode else [])], key=key)
        attributes = find_attributes(found.bitcode, job.settings) if found.bitcode else ()
        outliners = generate.outliners(own)
        outliners = (*outliners, REPEATED) if len(outliners) > 1 else outliners
        changed = (CodeOptions(attributes, outliner) for outliner in outliners)
        options = dict.fromkeys((CLANGS, *changed)) if found.bitcode else ()
        choices = [Choice(own, "-Oz"), *(made("passes", each) for each in options)]
        for level in get_args(Level):
            others = generate.outliners(own, level)[level == "-Oz" :]  # the first is clang's own object
            choices += [made(level, CodeOptions(llvm=outliner)) for outliner in others]
        best = min((choice for choice in choices if choice.code), key=key)
        until = monotonic() + job.settings.seconds
        for switch in SWITCHES:
            if monotonic() > until:
                break
            with suppress(SearchError):  # an older LLVM may not have it
                other = made(best.result, replace(best.options, llvm=(*best.options.llvm, switch)))
                best = min((choice for choice in (best, other) if choice.code), key=key)
    return replace(best, result="clang") if best.code == own else best


def cost_of(settings: CompileSettings) -> str:
    """Return the objective that a search minimizes."""
    return FLASH if settings.for_flash else SIZE


def find_attributes(bitcode: bytes, settings: CompileSettings, *, with_runtime: bool = False) -> Attributes:
    """Return the changes of attributes by which functions become smaller; none where LLVM crashes.

    Args:
        bitcode: the module.
        settings: what is made less.
        with_runtime: whether functions may call the run-time library.
    """
    find = partial(best_attributes, bitcode, cost_of(settings), with_runtime=with_runtime)
    try:
        return survived(find, Attributes)
    except PlanishError:
        return ()


def _locked_choice(job: CompileJob, own: bytes, entry: LockEntry) -> Choice:
    """Make the object that a lock file names.

    Raises:
        SearchError: it cannot be made, or is no smaller than clang's.
    """
    if entry.result == "clang":
        return Choice(own, "clang")
    with Scratch() as scratch:
        if entry.result != "passes":
            choice = _by_level(job.unit, scratch, entry.result, locked_options(entry))
        else:
            plan = locked_plan(entry)
            make = partial(make_planned, job.bitcode, plan, entry.begin, entry.end)
            module, options = survived(make, bytes, "the lists of the lock file"), locked_options(entry)
            generate = CodeGenerator(job.unit.compiler, code_options(job.unit.options), scratch.path)
            choice = Choice(generate(module, options), "passes", plan, options, entry.end)
    if not choice.code or not is_smaller(choice.code, own, for_flash=job.settings.for_flash):
        raise SearchError("the choice of the lock file is not smaller with this clang")
    return choice


def locked_plan(entry: LockEntry) -> FunctionPlan:
    """Return the plan of an entry.

    Raises:
        ProgramError: it has a pass that a list may not have.
    """
    plan = FunctionPlan(cast("tuple[tuple[str, Attribute], ...]", entry.inlining), entry.lists)
    for pipeline, _ in plan.lists:
        check_pipeline(pipeline)
    return plan


def locked_options(entry: LockEntry) -> CodeOptions:
    """Return the options of code generation of an entry; raises SearchError where they are not known."""
    return options_of(entry.attributes, entry.llvm)


Rank = tuple[bool, int, int]
"""Order of objects or programs, the best first."""


def rank(made: bytes, own: bytes, *, for_flash: bool) -> Rank:
    """Return the rank of an object or program.

    Args:
        made: it.
        own: clang's.
        for_flash: whether all that is loaded decides: code, constants, initialized data and unwind tables.
            Else code does, but what has more of either than clang's comes after that.
    """
    (text, loaded), before = ((code_bytes(each), loaded_bytes(each)) for each in (made, own))
    if for_flash:
        return False, loaded, text
    # Smaller code with more data is not a gain.
    return text > before[0] or loaded > before[1], text, loaded


def is_smaller(made: bytes, own: bytes, *, for_flash: bool) -> bool:
    """Return whether an object or program is smaller than clang's; see `rank`."""
    return rank(made, own, for_flash=for_flash) < rank(own, own, for_flash=for_flash)


def _is_smallest(unit: Unit) -> bool:
    """Return whether a source is compiled with -Oz."""
    return [word for word in unit.options if word.startswith("-O")][-1:] == ["-Oz"]


def _by_level(unit: Unit, scratch: Scratch, level: Result, options: CodeOptions = CLANGS) -> Choice:
    """Make the object by clang's passes; it is empty where clang makes none.

    -Oz leaves loops as they are written, which may take more code than -Os does; and the outliner, which
    clang runs for some processors, may make code larger.
    """
    path = scratch.path / "other.o"
    elsewhere = ["-MF", os.devnull] if unit.dependency_file else []
    words = [*unit.options, level, *options.words, *elsewhere, "-w", "-Qunused-arguments", "-c"]
    failed = run([*unit.compiler.command, *words, "-o", str(path)]).code
    return Choice(b"" if failed else path.read_bytes(), level, options=options)
