"""Compilation of a source that the cache does not have: clang's object, and what planish makes of it."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from planish.cc.cc_settings import CompileSettings, pass_on
from planish.cc.frontend import Ended, Unit, run
from planish.cc.interrupts import Stoppable
from planish.cc.noting import left_to_clang, note
from planish.cc.object_cache import CachedObject, ObjectCache
from planish.cc.searching import ReadsFilesError


def compile_uncached(
    unit: Unit,
    front: Ended,
    keep: Callable[[CachedObject], bool],
    settings: CompileSettings,
    cache: ObjectCache,
    began: float,
) -> bool:
    """Have clang make the object, and search for a smaller one or record what it was made of.

    Args:
        unit: the source and its object.
        front: how the front end ended, with the unoptimised bitcode.
        keep: puts an entry into the cache; returns False where a file was changed meanwhile.
        settings: the objective and the time of the search.
        cache: has what is known of functions.
        began: when the compilation began, by the monotonic clock.

    Returns:
        False where clang has to say why it cannot be made.
    """
    with Stoppable():
        own = run([*unit.compiler.command, *unit.words])
        if own.code:
            return False
        clang_s = monotonic() - began
        pass_on(own.messages)
        speaks = own.messages != front.messages
        try:
            if settings.for_time:
                from planish.cc.timed_unit import keep_timed_unit

                how, about = "compiled", keep_timed_unit(unit, front.written, cache, keep, speaks=speaks)
            else:
                from planish.cc.improving import improve

                entry = improve(unit, front.written, settings, cache, clang_s, speaks=speaks)
                if entry is None:
                    return True
                keep(entry)
                how, about = "searched", entry.about
        except ReadsFilesError as error:
            entry = left_to_clang(str(error))
            keep(entry)
            note(cache, settings, unit.belongs_to, unit.source, "clang", entry.about, 0.0)
        else:
            note(cache, settings, unit.belongs_to, unit.source, how, about, monotonic() - began)
        return True
