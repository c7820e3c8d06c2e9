"""Faster objects of a program that was linked of several: found, kept in the cache, and linked."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from planish.cc.clang import Compiler, check_version, run
from planish.cc.job import note, refused
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest
from planish.cc.settings import CompileSettings, SearchError
from planish.cc.timed_objects import LinkPart, exchanged, link_parts, read_unit, without_output
from planish.core import PlanishError
from planish.core.cores import usable_cores
from planish.core.process import processor_s
from planish.levels.llvm.program import Running, running_by
from planish.sandbox.scratch import Scratch

if TYPE_CHECKING:
    from planish.cc.timed_search import FasterObject


def read_running(run: str) -> Running:
    """Read how a program is run; files that are named are those of this folder, wherever it is run.

    Raises:
        ProgramError: it cannot be read.
    """
    running = running_by({"run": run if len(run.split()) > 1 else ""}, Running()) or Running()
    args = (os.path.abspath(word) if os.path.exists(word) else word for word in running.args)
    return replace(running, args=tuple(args))


_KIND = "programs"


def speed_up_program(
    compiler: Compiler, words: list[str], program: str, settings: CompileSettings, cache: ObjectCache
) -> None:
    """Exchange objects of a program for faster ones, and link it again.

    Args:
        compiler: that linked it.
        words: by which it was linked.
        program: it.
        settings: how it is run, and how long may be searched.
        cache: has what its objects were made of, and keeps what is found.

    Raises:
        UsageError: that cannot be done, and has to be (--planish-strict).
    """
    began = monotonic()
    try:
        how, text, objects = _found(compiler, words, settings, cache)
        _link_again(compiler, words, program, objects)
    except (SearchError, PlanishError, OSError) as error:
        settings.fall_back(f"{program}: {error}", program)
        return
    note(cache, settings, program, program, how, text, monotonic() - began)


def _found(
    compiler: Compiler, words: list[str], settings: CompileSettings, cache: ObjectCache
) -> tuple[str, bytes, dict[LinkPart, bytes]]:
    """Return how it was found, its report, and the objects that are faster."""
    parts = link_parts(words)
    running = read_running(settings.run)
    units = {part: unit for part in parts if (unit := read_unit(cache, part.name))}
    made_of = {part: unit.key for part, unit in units.items()}
    key = digest(
        compiler.identity.encode(),
        os.fsencode("\0".join(without_output(words))),
        *(f"{part.name} {made_of.get(part, '')}".encode() for part in parts),
        running.text.encode("latin-1", "backslashreplace"),
    )
    known = _known(cache, key, parts, settings.program_seconds)
    if known is not None:
        return "known", *known
    if not settings.program_seconds:
        return "clang", refused("there is no time to search in"), {}
    if not units:
        raise SearchError(
            "it is not known what its objects were made of: build them by planish cc too, and no two the same"
        )
    # Only here: what is known is linked without the engine.
    from planish.cc.timed_search import TimedSearch, open_results

    check_version(compiler)
    began, used = monotonic(), processor_s()
    with Scratch() as scratch, open_results(cache, scratch.path) as store:
        search = TimedSearch(compiler, words, units, running, scratch, store)
        found = search.run(settings.program_seconds)
    had = _had(settings.program_seconds, monotonic() - began, processor_s() - used)
    before = cache.read(_KIND, key)
    if had < settings.program_seconds and before:  # load may last: builds add up what they have
        had = min(settings.program_seconds, had + json.loads(before)[1]["seconds"])
    about = {
        "faster": [each.to_json() for each in found],
        "run": settings.run,
        "seconds": had,
        "search_s": round(monotonic() - began, 3),
    }
    return "searched", _keep(cache, key, about, found), {each.part: each.code for each in found}


def _had(seconds: float, passed: float, used: float) -> float:
    """Return the seconds that a search had: those of the processor where a loaded machine cut it short.

    Args:
        seconds: that it was given, by the clock.
        passed: that it took.
        used: of the processor.
    """
    # On a machine that is not loaded, it is the program that waits for something.
    is_loaded = os.getloadavg()[0] > usable_cores()
    return used if passed >= seconds > 2 * used and is_loaded else seconds


def _keep(cache: ObjectCache, key: str, about: Mapping[str, object], found: list[FasterObject]) -> bytes:
    kept = {each.part.name: digest(key.encode(), each.part.name.encode()) for each in found}
    # The objects first, so that what names them is never there without them.
    for each in found:
        cache.keep(kept[each.part.name], CachedObject(float("inf"), 0, b"", each.code, has_diagnostics=False))
    cache.put(_KIND, key, json.dumps([kept, about]).encode())
    return json.dumps(about).encode()


def _known(
    cache: ObjectCache, key: str, parts: list[LinkPart], seconds: float
) -> tuple[bytes, dict[LinkPart, bytes]] | None:
    """Return what was found before by a search as long; None where there was none, or it is damaged."""
    if (record := cache.read(_KIND, key)) is None:
        return None
    kept, about = json.loads(record)
    named = {part.name: part for part in reversed(parts)}
    objects = {named[name]: cache.get(key) for name, key in kept.items() if name in named}
    code = {part: entry.code for part, entry in objects.items() if entry}
    is_whole = len(code) == len(kept) and about["seconds"] >= seconds
    return (json.dumps(about).encode(), code) if is_whole else None


def _link_again(compiler: Compiler, words: list[str], program: str, objects: dict[LinkPart, bytes]) -> None:
    """Replace the program by the faster one, whole."""
    if not objects:
        return
    with Scratch() as scratch:
        others: dict[LinkPart, str] = {}
        for number, (each, code) in enumerate(objects.items()):
            path = scratch.path / f"{number}.o"
            path.write_bytes(code)
            others[each] = str(path)
        # Not beside the program: a linker that outlives an interrupt would leave a file there.
        made = scratch.path / "program"
        command = [*without_output(exchanged(words, others)), "-o", str(made), "-Qunused-arguments"]
        ended = run([*compiler.command, *command])
        if ended.code:
            raise SearchError("clang does not link what was found")
        atomic_write(program, made.read_bytes(), 0o777)
