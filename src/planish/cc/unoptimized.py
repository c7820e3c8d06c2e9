"""Bitcode as clang's front end makes it, kept by the object that clang made of the same source for -flto.

An object for link-time optimization went through clang's passes already, which leave little to choose. When
it is linked, the search starts from this bitcode.
"""

from __future__ import annotations

from planish.cc.clang import read_file
from planish.cc.job import CompileJob
from planish.cc.object_cache import ObjectCache, digest

BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
"""The first bytes of bitcode, and of wrapped bitcode."""
_KIND, _MADE = "unoptimized", "bitcode"
"""The bitcode by its content; which object was made of which."""


def keep_unoptimized(job: CompileJob) -> None:
    """Keep the bitcode of the front end for clang's object, if it is not known yet."""
    code = read_file(job.unit.output.encode(errors="surrogateescape")) or b""
    if not code.startswith(BITCODE) or job.cache.names(_MADE, f"{digest(code)}-"):
        return
    if job.run_front_end():
        name = digest(job.bitcode)
        job.cache.put(_KIND, name, job.bitcode)
        job.cache.put(_MADE, f"{digest(code)}-{name}", b"")


def find_unoptimized(cache: ObjectCache, code: bytes) -> bytes:
    """Return the bitcode that an object was made of; empty where it is not known, or one of several."""
    made = cache.names(_MADE, f"{digest(code)}-")
    # clang makes the same object of sources that differ, and other passes would not.
    return (cache.read(_KIND, made[0].partition("-")[2]) or b"") if len(made) == 1 else b""
