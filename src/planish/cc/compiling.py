"""One source to an object: from the cache where it is known; else it is compiled, and then searched."""

from __future__ import annotations

import os
from time import monotonic, time_ns

from planish.cc.arguments import code_options
from planish.cc.cc_settings import CompileSettings, pass_on
from planish.cc.direct import Direct
from planish.cc.frontend import Ended, Unit, run, shell_code
from planish.cc.noting import note
from planish.cc.object_cache import CachedObject, ObjectCache, digest
from planish.cc.whole_file import write_whole


def make_object(unit: Unit, settings: CompileSettings, cache: ObjectCache) -> int:
    """Make one of several objects, by clang where planish does not; return the exit code."""
    if compile_unit(unit, settings, cache):
        return 0
    ended = run([*unit.compiler.command, *unit.words])
    pass_on(ended.messages)
    return shell_code(ended.code)


def compile_unit(unit: Unit, settings: CompileSettings, cache: ObjectCache) -> bool:
    """Make one object; False where clang has to make it, or to say why it cannot be made."""
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
        if not (entry.speaks or entry.is_clangs or front.messages):
            _keep(unit, direct, key, began_ns)
        return _take(unit, entry, front.messages, settings, cache, began)
    return _make(unit, direct, front, key, settings, cache, (began, began_ns))


def _make(
    unit: Unit,
    direct: Direct,
    front: Ended,
    key: str,
    settings: CompileSettings,
    cache: ObjectCache,
    began: tuple[float, int],
) -> bool:
    """Make an object that is not known; False where clang shall do it, or say why it cannot be made."""

    def keep(entry: CachedObject) -> bool:
        from planish.cc.reading import Reading

        # What was changed since may be in the object, and not in the bitcode that names it.
        reading = Reading(unit, began[1])
        if not reading.is_unchanged:
            return False
        cache.put(key, entry)
        if not (entry.speaks or entry.is_clangs or front.messages):  # only clang can say it again
            direct.put(key, reading)
        return True

    if not (settings.for_time or settings.seconds):
        return False
    from planish.cc.uncached import compile_uncached

    return compile_uncached(unit, front, keep, settings, cache, began[0])


def _keep(unit: Unit, direct: Direct, key: str, began_ns: int) -> None:
    """Keep what was read for an object that is known."""
    from planish.cc.reading import Reading

    direct.put(key, Reading(unit, began_ns))


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
    options = "\0".join([unit.host, *code_options(unit.options)])
    return digest(unit.compiler.identity.encode(), os.fsencode(options), bitcode)


def _take(
    unit: Unit,
    entry: CachedObject,
    messages: bytes,
    settings: CompileSettings,
    cache: ObjectCache,
    began: float,
) -> bool:
    """Write the object that is known, and say what clang would; False where clang shall make it."""
    if entry.is_clangs:
        note(cache, settings, unit.belongs_to, unit.source, "clang", entry.about, 0.0)
        return False
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
