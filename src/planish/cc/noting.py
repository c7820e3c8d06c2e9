"""What is kept and said of a compilation."""

from __future__ import annotations

from planish.cc.cc_settings import CompileSettings
from planish.cc.object_cache import CachedObject, ObjectCache


def note(
    cache: ObjectCache,
    settings: CompileSettings,
    output: str,
    source: str,
    how: str,
    about: bytes,
    seconds: float,
) -> None:
    """Keep what was done, for the report of the build, and say it where that is asked for.

    Args:
        cache: where it is kept.
        settings: whether it is said.
        output: the object, or the program that it is for.
        source: the file.
        how: "searched", "known" (from the cache) or "clang" (left alone).
        about: what came of it, as JSON.
        seconds: that it took.
    """
    cache.note_build(output, source, [how.encode(), f"{seconds:.3f}".encode(), about])
    if settings.reports:
        from planish.cc.reporting import tell

        tell(source, how, about, seconds)


def left_to_clang(why: str) -> CachedObject:
    """Return what is kept of a source whose object clang has to make each time."""
    return CachedObject(float("inf"), 0, refused(why), b"", speaks=False)


def refused(why: str) -> bytes:
    """Give the report of a source that is left to clang."""
    import json

    return json.dumps({"why": why}).encode()
