"""Objects that are smaller than clang's: by a search or a lock file, compared with clang's, and reported."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import cast

from planish.cc.arguments import code_options
from planish.cc.clang import Compiler, Unit, run
from planish.cc.code_choice import Choice, Chooser, cost_of, is_smaller, searched
from planish.cc.code_options import CLANGS, CodeGenerator, CodeOptions, options_of, search_options
from planish.cc.job import CompileJob
from planish.cc.lock import LockEntry
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest
from planish.cc.reporting import sizes
from planish.cc.settings import SearchError
from planish.cc.size_search import MakeSmaller, SmallerModule, make_smaller, search
from planish.core import PlanishError
from planish.levels.llvm.function_steps import Attribute, FunctionPlan, check_pipeline
from planish.levels.llvm.modules.evaluator import make_planned
from planish.levels.llvm.modules.transform import Level, survived, whole_bindings
from planish.sandbox.scratch import Scratch

_VERSIONS = "versions"
_LEVELS: tuple[Level, ...] = "-Oz", "-Os"
_CLANG_TIMES, _PATIENCE_S = 20.0, 30.0
"""Multiple of clang's time, and seconds, beyond its own time after which the search is killed."""
_SLOWEST = 6.0
"""Seconds by the clock that one of the search may take, in all."""


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
            options = search_options(whole_bindings().version, own) if _is_smallest(job.unit) else ()
            make = make or partial(make_smaller, cost=cost_of(job.settings), options=options)
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


def _best(job: CompileJob, own: bytes, found: SmallerModule) -> Choice:
    """Return the smallest object."""
    unit = job.unit
    with Scratch() as scratch:
        generate = CodeGenerator(unit.compiler, code_options(unit.options), scratch.path)
        chooser = Chooser(own, generate, job.settings, partial(_by_level, unit, own, scratch))
        clangs = chooser.tried(Choice("clang", code=own))
        if not _is_smallest(unit):
            return min([clangs, *map(chooser.tried, searched(found))]).choice
        starts = [min(chooser.with_outliners(each)) for each in searched(found)]
        by_level = min(each for level in _LEVELS for each in chooser.with_outliners(Choice(level)))
        # Attributes can only be changed in what was searched.
        starts = starts if starts and starts[0] < by_level else [by_level, *starts]
        seconds = job.settings.seconds / len(starts)
        return min([clangs, *(chooser.improved(each, seconds) for each in starts)]).choice


def _locked_choice(job: CompileJob, own: bytes, entry: LockEntry) -> Choice:
    """Make the object that a lock file names.

    Raises:
        SearchError: it cannot be made, or is no smaller than clang's.
    """
    if entry.result == "clang":
        return Choice("clang", code=own)
    choice = Choice(entry.result, options=locked_options(entry), end=entry.end)
    with Scratch() as scratch:
        if entry.result == "passes":
            plan = locked_plan(entry)
            make = partial(make_planned, job.bitcode, plan, entry.begin, entry.end)
            module = survived(make, bytes, "the lists of the lock file")
            generate = CodeGenerator(job.unit.compiler, code_options(job.unit.options), scratch.path)
            choice = replace(choice, plan=plan, code=generate(module, choice.options))
        else:
            choice = replace(choice, code=_by_level(job.unit, own, scratch, choice))
    if not is_smaller(choice.code, own, for_flash=job.settings.for_flash):
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


def _is_smallest(unit: Unit) -> bool:
    """Return whether a source is compiled with -Oz."""
    return [word for word in unit.options if word.startswith("-O")][-1:] == ["-Oz"]


def _by_level(unit: Unit, own: bytes, scratch: Scratch, choice: Choice) -> bytes:
    """Make the object by clang's passes.

    -Oz leaves loops as they are written, which may take more code than -Os does; and the outliner, which
    clang runs for some processors, may make code larger.

    Raises:
        SearchError: clang makes none.
    """
    if (choice.result, choice.options) == ("-Oz", CLANGS):
        return own
    path = scratch.path / "other.o"
    elsewhere = ["-MF", os.devnull] if unit.dependency_file else []
    words = [*unit.options, choice.result, *choice.options.words, *elsewhere, "-w", "-Qunused-arguments"]
    if run([*unit.compiler.command, *words, "-c", "-o", str(path)]).code:
        raise SearchError(f"clang makes no object with {' '.join([choice.result, *choice.options.words])}")
    return path.read_bytes()
