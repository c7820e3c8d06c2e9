"""Objects of programs whose time counts: what each was made of, and which ones a link command names.

What an object of -O2 or -O3 was made of is kept for the time when its program is run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from planish.cc.arguments import Invocation, code_options
from planish.cc.clang import Unit
from planish.cc.object_cache import CachedObject, ObjectCache, digest
from planish.cc.settings import ReadsFilesError
from planish.levels.llvm.backend.elf import code_bytes
from planish.levels.llvm.modules.transform import CHILD_LIMITS, reading_directive_of
from planish.sandbox import in_child

_KIND, _MADE = "units", "made"
"""What objects were made of, by its content, and which object was made of which."""


@dataclass(frozen=True)
class TimedUnit:
    """Sources and options of an object.

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
    unit: Unit,
    bitcode: bytes,
    cache: ObjectCache,
    keep: Callable[[CachedObject], bool],
    *,
    has_diagnostics: bool,
) -> bytes:
    """Keep clang's object, and what it was made of.

    Args:
        unit: the source, whose object clang has made.
        bitcode: unoptimised.
        cache: keeps what it was made of.
        keep: puts an entry into the cache; returns False where a file was changed meanwhile.
        has_diagnostics: whether clang says more than its front end does.

    Returns:
        The report, as JSON.

    Raises:
        ReadsFilesError: the object may depend on files that are not known.
    """
    code = Path(unit.output).read_bytes()
    directive = in_child(partial(reading_directive_of, bitcode), str, CHILD_LIMITS)
    if directive:
        word = directive if isinstance(directive, str) else "something that LLVM does not survive"
        raise ReadsFilesError(word)
    about = json.dumps({"text": [code_bytes(code)] * 2}).encode()
    # For any search: none is made here that more time could improve.
    if keep(CachedObject(float("inf"), 0, about, code, has_diagnostics=has_diagnostics)):
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


_ARCHIVE, _HEAD = b"!<arch>\n", 60
_INDICES = ("/", "//", "/SYM64/", "__.SYMDEF")
_BSD = "#1/"


@dataclass(frozen=True)
class LinkPart:
    """An object.

    Args:
        word: the place of the word that names it, or its archive.
        name: its content, by `digest`.
        in_archive: whether the word names an archive.
        code: its content.
    """

    word: int
    name: str
    in_archive: bool
    code: bytes = field(repr=False)


def link_parts(words: Sequence[str]) -> list[LinkPart]:
    """List the objects that a command names, without its program."""
    found: list[LinkPart] = []
    for place in sorted(Invocation(list(words)).linked):
        path = Path(words[place])
        data = path.read_bytes() if path.is_file() else b""
        if data.startswith(_ARCHIVE):
            found += [LinkPart(place, digest(code), True, code) for code in _members(data)]
        elif data.startswith(b"\x7fELF"):
            found.append(LinkPart(place, digest(data), False, data))
    return found


def exchanged(words: Sequence[str], others: Mapping[LinkPart, str]) -> list[str]:
    """Put other words in the place of objects; what stands in an archive comes before the archive.

    The linker takes from an archive only what it lacks by then.
    """
    before: dict[int, list[str]] = {}
    for part, word in others.items():
        before.setdefault(part.word, []).append(word)
    gone = {part.word for part in others if not part.in_archive}
    return [
        each
        for place, word in enumerate(words)
        for each in (*before.get(place, ()), *(() if place in gone else (word,)))
    ]


def without_output(words: Sequence[str]) -> list[str]:
    """Leave out what -o names."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and not word.startswith("-o"):
            kept.append(word)
        skip = word == "-o" and not skip
    return kept


def _members(data: bytes) -> Iterator[bytes]:
    place = len(_ARCHIVE)
    while place + _HEAD <= len(data):
        name, size = data[place : place + 16].decode("latin-1").rstrip(), int(data[place + 48 : place + 58])
        # Members begin at even places.
        start, place = place + _HEAD, place + _HEAD + size + size % 2
        long = (
            int(name.removeprefix(_BSD)) if name.startswith(_BSD) else 0
        )  # the name stands before the content
        # A slash with a number is no index: it is the offset of a long name.
        if not name.startswith(_INDICES) or name[1:].isdigit():
            yield data[start + long : start + size]
