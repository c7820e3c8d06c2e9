"""What an object of -O2 or -O3 was made of: kept, for the time when its program is run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from planish.cc.arguments import code_options
from planish.cc.frontend import Unit
from planish.cc.object_cache import CachedObject, ObjectCache, digest
from planish.cc.searching import ReadsFilesError, reads_files
from planish.llvm.backend.elf import code_bytes
from planish.llvm.modules import reading_directive_of
from planish.llvm.modules.budget import LIMITS
from planish.sandbox import in_child

_KIND, _MADE = "units", "made"
"""What objects were made of, by its content, and which object was made of which."""


@dataclass(frozen=True)
class TimedUnit:
    """What an object was made of.

    Args:
        source: the file.
        options: of clang, to make code of bitcode.
        bitcode: unoptimised.
    """

    source: str
    options: list[str]
    bitcode: bytes

    @property
    def key(self) -> str:
        """Its code follows from this."""
        return digest(os.fsencode("\0".join(self.options)), self.bitcode)


def keep_timed_unit(
    unit: Unit, bitcode: bytes, cache: ObjectCache, keep: Callable[[CachedObject], bool], *, speaks: bool
) -> bytes:
    """Keep clang's object, and what it was made of.

    Args:
        unit: the source, whose object clang has made.
        bitcode: unoptimised.
        cache: keeps what it was made of.
        keep: puts an entry into the cache; returns False where a file was changed meanwhile.
        speaks: whether clang says more than its front end does.

    Returns:
        The report, as JSON.

    Raises:
        ReadsFilesError: the object may depend on files that are not known.
    """
    code = Path(unit.output).read_bytes()
    directive = in_child(partial(reading_directive_of, bitcode), str, LIMITS)
    if directive:
        word = directive if isinstance(directive, str) else "something that LLVM does not survive"
        raise ReadsFilesError(reads_files(word))
    about = json.dumps({"text": [code_bytes(code)] * 2}).encode()
    # For any search: none is made here that more time could improve.
    if keep(CachedObject(float("inf"), 0, about, code, speaks=speaks)):
        _put(cache, code, TimedUnit(unit.source, code_options(unit.options), bitcode))
    return about


def read_unit(cache: ObjectCache, name: str) -> TimedUnit | None:
    """Return what an object was made of; None where that is not known, damaged, or one of several.

    Args:
        cache: where it is kept.
        name: the object's content, by `digest`.
    """
    made = cache.names(_MADE, f"{name}-")
    # clang makes the same object of sources that differ, and other passes would not.
    if len(made) != 1:
        return None
    unit = made[0].partition("-")[2]
    data = cache.read(_KIND, unit) or b""
    if digest(data) != unit:
        return None
    about, _, bitcode = data.partition(b"\n")
    source, *options = json.loads(about)
    return TimedUnit(source, options, bitcode)


def _put(cache: ObjectCache, code: bytes, unit: TimedUnit) -> None:
    data = json.dumps([unit.source, *unit.options]).encode() + b"\n" + unit.bitcode
    name = digest(data)
    cache.put_plain(_KIND, name, data)
    cache.put_plain(_MADE, f"{digest(code)}-{name}", b"")  # empty, so that the full cache does not lose it
