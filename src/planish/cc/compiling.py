"""One source to an object: from the cache where it is known; else it is compiled, and then searched."""

from __future__ import annotations

import os
from time import monotonic, time_ns

from planish.cc.arguments import code_options
from planish.cc.cc_settings import CompileSettings, pass_on
from planish.cc.direct import Direct
from planish.cc.frontend import Ended, Unit, run
from planish.cc.noting import note
from planish.cc.object_cache import CachedObject, ObjectCache, digest
from planish.cc.whole_file import write_whole


def compile_unit(unit: Unit, settings: CompileSettings, cache: ObjectCache) -> bool:
    """Make one object; False where clang has to say why it cannot be made."""
    began, began_ns = monotonic(), time_ns()
    direct = Direct(unit, cache)
    if found := direct.get():
        entry = cache.get(found[0])
        if entry and entry.is_enough(settings.seconds, settings.evaluations) and _write(unit, found[1]):
            return _take(unit, entry, b"", settings, cache, began)
    front = run([*unit.compiler.command, *unit.front_end])
    if front.code or not front.written.startswith(b"BC"):
        return False
    key = _key(unit, front.written)
    entry = cache.get(key)
    if entry and entry.is_enough(settings.seconds, settings.evaluations):
        _keep(direct, entry, front, key, began_ns)
        return _take(unit, entry, front.messages, settings, cache, began)
    if not _make(unit, front, key, settings, cache, began):
        return False
    if entry := cache.get(key):
        _keep(direct, entry, front, key, began_ns)
    return True


def _make(
    unit: Unit, front: Ended, key: str, settings: CompileSettings, cache: ObjectCache, began: float
) -> bool:
    """Make an object that is not known; False where clang shall do it, or say why it cannot be made."""
    if settings.for_time:
        from planish.cc.timed_unit import compile_timed

        return compile_timed(unit, front, key, settings, cache, began)
    if not settings.seconds:
        return False
    from planish.cc.improving import improve

    return improve(unit, front, key, settings, cache, began)


def _keep(direct: Direct, entry: CachedObject, front: Ended, key: str, began_ns: int) -> None:
    """Keep what was read, where clang says nothing: only clang can say it again."""
    if not (entry.speaks or front.messages):
        direct.put(key, began_ns)


def _write(unit: Unit, dependencies: bytes) -> bool:
    """Write what clang would of dependencies; False where it cannot be."""
    try:
        if unit.dependency_file is not None:
            write_whole(unit.dependency_file, dependencies)
    except OSError:
        return False
    return True


def _key(unit: Unit, bitcode: bytes) -> str:
    """Name what the object follows from; the search's budget is none of it."""
    options = "\0".join(code_options(unit.options))
    return digest(unit.compiler.identity.encode(), os.fsencode(options), bitcode)


def _take(
    unit: Unit,
    entry: CachedObject,
    messages: bytes,
    settings: CompileSettings,
    cache: ObjectCache,
    began: float,
) -> bool:
    """Write the object that is known, and say what clang would."""
    if entry.speaks:
        ended = run([*unit.compiler.command, *unit.words])
        if ended.code:
            return False
        messages = ended.messages
    pass_on(messages)
    try:
        write_whole(unit.output, entry.code)
    except OSError:
        return False  # clang finds another way, or says what is wrong
    note(cache, settings, unit.belongs_to, unit.source, "known", entry.about, monotonic() - began)
    return True
