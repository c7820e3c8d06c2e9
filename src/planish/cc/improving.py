"""A source that is not known yet: clang's object, and then a smaller one where that is found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic

from planish.cc.arguments import code_options
from planish.cc.cc_settings import CompileSettings, UsageError, pass_on
from planish.cc.compiler import Compiler
from planish.cc.frontend import Ended, Unit, run
from planish.cc.interrupts import Stoppable
from planish.cc.noting import left_to_clang, note
from planish.cc.object_cache import CachedObject, ObjectCache
from planish.cc.searching import Asked, FoundBuild, ReadsFilesError, SearchError, search
from planish.cc.whole_file import write_whole
from planish.core import PlanishError
from planish.isolation.scratch import Scratch
from planish.llvm.backend.elf import code_bytes, function_bytes, loaded_bytes

_PATIENCE, _PATIENCE_S = 20.0, 30.0
"""The search is killed after so many times what clang takes, and so many seconds, beyond its own time."""
_SLOWEST = 6.0
"""How many seconds by the clock one of the search may take, in all."""
_VERSION = re.compile(rb"clang version (\d+)\.")
_CODE_ONLY = ("-Xclang", "-disable-llvm-passes", "-Qunused-arguments", "-w", "-c", "-x", "ir", "-")


def improve(
    unit: Unit,
    front: Ended,
    keep: Callable[[CachedObject], bool],
    settings: CompileSettings,
    cache: ObjectCache,
    began: float,
) -> bool:
    """Compile, search, and leave the smaller object; False where clang has to say why it cannot be made."""
    with Stoppable():
        own = run([*unit.compiler.command, *unit.words])
        if own.code:
            return False
        took = monotonic() - began
        pass_on(own.messages)
        try:
            code, about = _searched(unit, front.written, settings, cache, took)
        except ReadsFilesError as error:
            entry = left_to_clang(str(error))
            keep(entry)
            note(cache, settings, unit.belongs_to, unit.source, "clang", entry.about, 0.0)
            return True
        except (SearchError, PlanishError, OSError) as error:
            _fall_back(unit, settings, " ".join(str(error).split()).rstrip("."))
            return True
        about["clang_s"], about["search_s"] = round(took, 3), round(monotonic() - began - took, 3)
        text = json.dumps(about).encode()
        speaks = own.messages != front.messages
        keep(CachedObject(settings.seconds, settings.evaluations, text, code, speaks=speaks))
        note(cache, settings, unit.belongs_to, unit.source, "searched", text, monotonic() - began)
        return True


def _fall_back(unit: Unit, settings: CompileSettings, why: str) -> None:
    try:
        settings.fall_back(f"{unit.source}: {why}")
    except UsageError:
        Path(unit.output).unlink(missing_ok=True)  # or the next make would take it for made
        raise


def _searched(
    unit: Unit, bitcode: bytes, settings: CompileSettings, cache: ObjectCache, clang_s: float
) -> tuple[bytes, dict[str, object]]:
    """Put the smaller object in its place; give its content, and the report."""
    check_version(unit.compiler)
    own = Path(unit.output).read_bytes()
    before, loaded = code_bytes(own), loaded_bytes(own)
    scratch = Scratch()
    with closing(Removed(scratch)):
        patience = settings.seconds * _SLOWEST + clang_s * _PATIENCE + _PATIENCE_S
        asked = Asked(bitcode, settings.seconds, settings.evaluations or None, patience)
        found = search(asked, cache, scratch)
        if found.trouble:
            cache.trouble = cache.trouble or found.trouble
        options = code_options(unit.options)
        made = code_of(unit.compiler, options, found.bitcode, scratch) if found.bitcode else own
    after, loads = code_bytes(made), loaded_bytes(made)
    # Smaller code with more data beside it is no gain.
    better = after <= before and loads <= loaded and (after, loads) != (before, loaded)
    if not better:
        return own, _about(found, own, own)
    write_whole(unit.output, made)
    return made, _about(found, own, made)


class Removed:
    """Removes a folder when it is closed."""

    def __init__(self, scratch: Scratch) -> None:
        self.close = scratch.remove


def check_version(compiler: Compiler) -> None:
    """See that clang is of the LLVM that searches.

    Raises:
        SearchError: it is not.
    """
    from planish.llvm.backend import open_backend

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
    ended = run([*compiler.command, *options, *_CODE_ONLY, "-o", str(path)], bitcode)
    if ended.code:
        last = (ended.messages.decode(errors="replace").strip().splitlines() or [f"exit code {ended.code}"])[
            0
        ]
        raise SearchError(f"clang makes no code of what was found: {last}")
    return path.read_bytes()


def _about(found: FoundBuild, own: bytes, made: bytes) -> dict[str, object]:
    """Report what clang's object has, and what is left there: bytes of all code and of each function."""
    before, after = function_bytes(own), function_bytes(made)
    both = ((name, before.get(name, 0), after.get(name, 0)) for name in {**before, **after})
    changed = sorted((row for row in both if row[1] != row[2]), key=lambda row: row[2] - row[1])
    return {
        "text": [code_bytes(own), code_bytes(made)],
        "functions": [(*row, found.passes.get(row[0], ())) for row in changed],
        "evaluations": found.evaluations,
    }
