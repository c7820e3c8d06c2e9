"""Objects that are smaller than clang's: the search for one, its comparison with clang's, and its report."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from planish.cc.arguments import code_options
from planish.cc.clang import Compiler, Unit, run
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write
from planish.cc.settings import CompileSettings, SearchError, UsageError
from planish.core import PlanishError
from planish.levels.llvm.backend.elf import code_bytes, function_bytes, loaded_bytes
from planish.sandbox.scratch import Scratch

_PATIENCE, _PATIENCE_S = 20.0, 30.0
"""The search is killed after so many times what clang takes, and so many seconds, beyond its own time."""
_SLOWEST = 6.0
"""How many seconds by the clock one of the search may take, in all."""
_VERSION = re.compile(rb"clang version (\d+)\.")
CODE_ONLY = ("-Xclang", "-disable-llvm-passes", "-Qunused-arguments", "-w", "-c", "-x", "ir", "-")


def improve(
    unit: Unit,
    bitcode: bytes,
    settings: CompileSettings,
    cache: ObjectCache,
    clang_s: float,
    *,
    has_diagnostics: bool,
) -> CachedObject | None:
    """Search for a smaller object, and leave it where clang's is.

    Args:
        unit: the source, whose object clang has made.
        bitcode: unoptimised.
        settings: the time of the search.
        cache: has what is known of functions.
        clang_s: seconds that clang took.
        has_diagnostics: whether clang says more than its front end does.

    Returns:
        What is to be kept; None where the search failed, and clang's object stays.

    Raises:
        ReadsFilesError: the object may depend on files that are not known.
        UsageError: the search failed, and must not (--planish-strict).
    """
    began = monotonic()
    try:
        code, about, seconds = _searched(unit, bitcode, settings, cache, clang_s)
    except (SearchError, PlanishError, OSError) as error:
        _fall_back(unit, settings, " ".join(str(error).split()).rstrip("."))
        return None
    about["clang_s"], about["search_s"] = round(clang_s, 3), round(monotonic() - began, 3)
    return CachedObject(
        seconds, settings.evaluations, json.dumps(about).encode(), code, has_diagnostics=has_diagnostics
    )


def _fall_back(unit: Unit, settings: CompileSettings, why: str) -> None:
    try:
        settings.fall_back(f"{unit.source}: {why}")
    except UsageError:
        Path(unit.output).unlink(missing_ok=True)  # or the next make would take it for made
        raise


def _searched(
    unit: Unit, bitcode: bytes, settings: CompileSettings, cache: ObjectCache, clang_s: float
) -> tuple[bytes, dict[str, object], float]:
    """Put the smaller object in its place; return its content, the report, and the seconds that it had."""
    from planish.cc.size_search import search  # here: programs whose time counts need none of the engine yet

    check_version(unit.compiler)
    own = Path(unit.output).read_bytes()
    with Scratch() as scratch:
        patience_s = settings.seconds * _SLOWEST + clang_s * _PATIENCE + _PATIENCE_S
        found = search(
            bitcode, settings.seconds, settings.evaluations or None, cache, scratch.path, patience_s
        )
        if found.cache_error:
            cache.error = cache.error or found.cache_error
        options = code_options(unit.options)
        made = code_of(unit.compiler, options, found.bitcode, scratch) if found.bitcode else own
        best, passes = (made, found.passes) if _is_smaller(made, own) else (own, {})
        other = _of_less_effort(unit, scratch)
        if other and _is_smaller(other, best):
            best, passes = other, dict.fromkeys(function_bytes(other), ("-Os",))
    if best != own:
        atomic_write(unit.output, best)
    return best, _about(passes, found.evaluations, own, best), found.seconds


def _is_smaller(made: bytes, other: bytes) -> bool:
    """Return whether an object has less code or data than another, and more of neither."""
    after, before = ((code_bytes(each), loaded_bytes(each)) for each in (made, other))
    # Smaller code with more data beside it is no gain.
    return after[0] <= before[0] and after[1] <= before[1] and after != before


def _of_less_effort(unit: Unit, scratch: Scratch) -> bytes:
    """Make the object by -Os: -Oz leaves loops as they are written, which may take more code; empty: none."""
    if [word for word in unit.options if word.startswith("-O")][-1:] != ["-Oz"]:
        return b""
    path = scratch.path / "other.o"
    elsewhere = ["-MF", os.devnull] if unit.dependency_file else []
    words = [*unit.options, "-Os", *elsewhere, "-w", "-Qunused-arguments", "-c", "-o", str(path)]
    return b"" if run([*unit.compiler.command, *words]).code else path.read_bytes()


def check_version(compiler: Compiler) -> None:
    """See that clang is of the LLVM that searches.

    Raises:
        SearchError: it is not.
    """
    from planish.levels.llvm.backend import open_backend

    said = _VERSION.search(run([*compiler.command, "--version"]).written)
    theirs = said[1].decode() if said else "an unknown version"
    ours = open_backend().version
    if theirs != ours.partition(".")[0]:
        raise SearchError(f"{compiler.path} is of LLVM {theirs}, and what searches of {ours}")


def code_of(compiler: Compiler, options: list[str], bitcode: bytes, scratch: Scratch) -> bytes:
    """Have clang make code of a module, as it would of its own.

    Raises:
        SearchError: it makes none.
    """
    path = scratch.path / "improved.o"
    ended = run([*compiler.command, *options, *CODE_ONLY, "-o", str(path)], bitcode)
    if ended.code:
        last = (ended.messages.decode(errors="replace").strip().splitlines() or [f"exit code {ended.code}"])[
            0
        ]
        raise SearchError(f"clang makes no code of what was found: {last}")
    return path.read_bytes()


def _about(
    passes: Mapping[str, tuple[str, ...]], evaluations: int, own: bytes, made: bytes
) -> dict[str, object]:
    """Report what clang's object has, and what is left there: bytes of all code and of each function."""
    before, after = function_bytes(own), function_bytes(made)
    both = ((name, before.get(name, 0), after.get(name, 0)) for name in {**before, **after})
    changed = sorted((row for row in both if row[1] != row[2]), key=lambda row: row[2] - row[1])
    return {
        "text": [code_bytes(own), code_bytes(made)],
        "functions": [(*row, passes.get(row[0], ())) for row in changed],
        "evaluations": evaluations,
    }
