"""Compilation of one source to one object: what is known of it, and what is kept."""

from __future__ import annotations

import os
from time import monotonic, time_ns

from planish.cc.arguments import code_options
from planish.cc.clang import CompletedProcess, Unit, run
from planish.cc.manifest import Manifest
from planish.cc.object_cache import CachedObject, ObjectCache, digest
from planish.cc.settings import CompileSettings

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from planish.cc.reading import Reading


class CompileJob:
    """One compilation; it begins here.

    Args:
        unit: the source and its object.
        settings: the objective and the time of the search.
        cache: has objects, manifests and searches.

    Attributes:
        manifest: the record of this compilation.
        bitcode, messages, key: what clang's front end wrote and said, and the object's name in the cache by
            it; empty before the front end was run.
        clang_s: seconds until clang had made its object.
        has_diagnostics: whether clang said more than its front end does.
    """

    __slots__ = (
        *("_began", "_began_ns", "bitcode", "cache", "clang_s", "has_diagnostics", "key", "manifest"),
        *("messages", "settings", "unit"),
    )

    def __init__(self, unit: Unit, settings: CompileSettings, cache: ObjectCache) -> None:
        self.unit, self.settings, self.cache = unit, settings, cache
        self._began, self._began_ns = monotonic(), time_ns()
        self.manifest = Manifest(unit, cache)
        self.key, self.bitcode, self.messages = "", b"", b""
        self.clang_s, self.has_diagnostics = 0.0, False

    @property
    def seconds(self) -> float:
        """Return how long it has taken by now."""
        return monotonic() - self._began

    def run_front_end(self) -> bool:
        """Have clang's front end make unoptimised bitcode; False where it makes none."""
        front = run([*self.unit.compiler.command, *self.unit.front_end])
        if front.code or not front.written.startswith(b"BC"):
            return False
        self.bitcode, self.messages = front.written, front.messages
        # The search's budget is no part of the key: the object follows from these alone.
        options = "\0".join([self.unit.host, *code_options(self.unit.options)])
        self.key = digest(self.unit.compiler.identity.encode(), os.fsencode(options), front.written)
        return True

    def run_clang(self) -> CompletedProcess:
        """Have clang make the object."""
        return run([*self.unit.compiler.command, *self.unit.words])

    def known(self, key: str) -> CachedObject | None:
        """Look an object up; None where more is to be spent on it than was."""
        entry, settings = self.cache.get(key), self.settings
        return entry if entry and entry.is_enough(settings.seconds, settings.evaluations) else None

    def keep(self, entry: CachedObject) -> bool:
        """Put an object into the cache; False where a file was changed meanwhile."""
        # What was changed since may be in the object, and not in the bitcode that names it.
        reading = self.reading()
        if not reading.is_unchanged:
            return False
        self.cache.keep(self.key, entry)
        if self.needs_no_clang(entry):
            self.manifest.put(self.key, reading)
        return True

    def needs_no_clang(self, entry: CachedObject) -> bool:
        """Return whether all that clang does for an object is known: only clang can say something again."""
        return not (entry.has_diagnostics or entry.is_clangs or self.messages)

    def reading(self) -> Reading:
        """Ask clang what the compilation reads."""
        from planish.cc.reading import Reading

        return Reading(self.unit, self._began_ns)

    def note(self, how: str, about: bytes, seconds: float = 0.0) -> None:
        """Keep what was done, for the report of the build; see `note`."""
        unit = self.unit
        note(self.cache, self.settings, unit.belongs_to, unit.source, how, about, seconds)


def note(
    cache: ObjectCache,
    settings: CompileSettings,
    output: str,
    source: str,
    how: str,
    about: bytes,
    seconds: float,
) -> None:
    """Keep what was done for the report of the build, and say it where that is asked for.

    Args:
        cache: where it is kept; it replaces what was noted when it was made before.
        settings: whether it is said.
        output: the object, or the program that it is for.
        source: the file.
        how: "searched", "known" (from the cache) or "clang" (left alone).
        about: what came of it, as JSON.
        seconds: that it took.
    """
    where, what = os.fsencode(os.path.abspath(output)), os.fsencode(os.path.abspath(source))
    data = b"\0".join([where, what, how.encode(), b"%.3f" % seconds, about])
    cache.put("builds", digest(where, what, str(os.geteuid()).encode()), data)
    if settings.reports:
        from planish.cc.reporting import report

        report(source, how, about, seconds)


def left_to_clang(why: str) -> CachedObject:
    """Return what is kept of a source whose object clang has to make each time."""
    return CachedObject(float("inf"), 0, refused(why), b"", has_diagnostics=False)


def refused(why: str) -> bytes:
    """Return the report of a source that is left to clang."""
    import json

    return json.dumps({"why": why}).encode()
