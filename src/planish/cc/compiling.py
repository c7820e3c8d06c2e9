"""One source to an object: from the cache where it is known; else it is compiled, and then searched."""

from __future__ import annotations

import os
from time import monotonic

from planish.cc.arguments import code_options
from planish.cc.cache import Cache, Entry, digest, write_whole
from planish.cc.frontend import Ended, Unit, run
from planish.cc.noting import note
from planish.cc.settings import Settings


def compile_unit(unit: Unit, settings: Settings, cache: Cache) -> bool:
    """Make one object; False where clang has to say why it cannot be made."""
    began = monotonic()
    front = run([*unit.compiler.command, *unit.front_end])
    if front.code or not front.written.startswith(b"BC"):
        return False
    key = _key(unit, front.written)
    entry = cache.get(key)
    if entry and entry.is_enough(settings.seconds, settings.evaluations):
        return _take(unit, entry, front, settings, cache, began)
    if not settings.seconds:
        return False
    from planish.cc.improving import improve

    return improve(unit, front, key, settings, cache, began)


def _key(unit: Unit, bitcode: bytes) -> str:
    """Name what the object follows from; the search's budget is none of it."""
    options = "\0".join(code_options(unit.options))
    return digest(unit.compiler.identity.encode(), os.fsencode(options), bitcode)


def _take(unit: Unit, entry: Entry, front: Ended, settings: Settings, cache: Cache, began: float) -> bool:
    """Write the object that is known, and say what clang would."""
    messages = front.messages
    if entry.speaks:
        ended = run([*unit.compiler.command, *unit.words])
        if ended.code:
            return False
        messages = ended.messages
    os.write(2, messages)
    try:
        write_whole(unit.output, entry.code)
    except OSError:
        return False  # clang finds another way, or says what is wrong
    note(cache, settings, unit.belongs_to, unit.source, "known", entry.about, monotonic() - began)
    return True
