"""Objects that are smaller than clang's: the search for one, its comparison with clang's, and its report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from planish.cc.arguments import code_options
from planish.cc.clang import CODE_ONLY, Compiler, Unit, check_version, run
from planish.cc.job import CompileJob
from planish.cc.object_cache import CachedObject, atomic_write
from planish.cc.settings import SearchError
from planish.cc.size_search import SmallerModule, search
from planish.core import PlanishError
from planish.levels.llvm.backend.elf import code_bytes, function_bytes, loaded_bytes
from planish.sandbox.scratch import Scratch

_PATIENCE, _PATIENCE_S = 20.0, 30.0
"""The search is killed after so many times what clang takes, and so many seconds, beyond its own time."""
_SLOWEST = 6.0
"""How many seconds by the clock one of the search may take, in all."""


def improve(job: CompileJob) -> CachedObject | None:
    """Search for a smaller object, and leave it where clang's is.

    Returns:
        What is to be kept; None where the search failed, and clang's object stays.

    Raises:
        ReadsFilesError: the object may depend on files that are not known.
        UsageError: the search failed, and must not (--planish-strict).
    """
    began, evaluations = monotonic(), job.settings.evaluations
    try:
        check_version(job.unit.compiler)
        own = Path(job.unit.output).read_bytes()
        patience_s = job.settings.seconds * _SLOWEST + job.clang_s * _PATIENCE + _PATIENCE_S
        found = search(job.bitcode, job.settings.seconds, evaluations or None, job.cache, patience_s)
        best, passes = _best(job.unit, own, found)
        if best != own:
            atomic_write(job.unit.output, best)
    except (SearchError, PlanishError, OSError) as error:
        job.settings.fall_back(f"{job.unit.source}: {error}", job.unit.output)
        return None
    about = _report(passes, found.evaluations, own, best)
    about |= {"clang_s": round(job.clang_s, 3), "search_s": round(monotonic() - began, 3)}
    text = json.dumps(about).encode()
    return CachedObject(found.seconds, evaluations, text, best, has_diagnostics=job.has_diagnostics)


def _best(unit: Unit, own: bytes, found: SmallerModule) -> tuple[bytes, Mapping[str, tuple[str, ...]]]:
    """Return the smallest object, and the lists that its functions have of their own."""
    best, passes = own, dict[str, tuple[str, ...]]()
    with Scratch() as scratch:
        if found.bitcode:
            made = code_of(unit.compiler, code_options(unit.options), found.bitcode, scratch)
            if _is_smaller(made, own):
                best, passes = made, {**found.passes}
        other = _of_less_effort(unit, scratch)
        if other and _is_smaller(other, best):
            best, passes = other, dict.fromkeys(function_bytes(other), ("-Os",))
    return best, passes


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


def code_of(compiler: Compiler, options: list[str], bitcode: bytes, scratch: Scratch) -> bytes:
    """Have clang make code of a module, as it would of its own.

    Raises:
        SearchError: it makes none.
    """
    path = scratch.path / "improved.o"
    ended = run([*compiler.command, *options, *CODE_ONLY, "-o", str(path)], bitcode)
    if ended.code:
        said = ended.messages.decode(errors="replace").strip() or f"exit code {ended.code}"
        raise SearchError(f"clang makes no code of what was found: {said.splitlines()[0]}")
    return path.read_bytes()


def _report(
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
