"""Objects of programs whose time counts: what each was made of, and which ones a link command names.

What an object of -O2 or -O3 was made of is kept for the time when its program is run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from planish.cc.arguments import Invocation, code_options, grouped
from planish.cc.job import CompileJob
from planish.cc.object_cache import CachedObject, ObjectCache, digest
from planish.cc.settings import ReadsFilesError
from planish.levels.llvm.backend.elf import code_bytes
from planish.levels.llvm.modules.transform import CHILD_LIMITS, reading_directive_of
from planish.sandbox.fork_pool import in_child

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


def keep_timed_unit(job: CompileJob) -> bytes:
    """Keep clang's object, and what it was made of; return the report, as JSON.

    Raises:
        ReadsFilesError: the object may depend on files that are not known.
    """
    code = Path(job.unit.output).read_bytes()
    directive = in_child(partial(reading_directive_of, job.bitcode), str, CHILD_LIMITS)
    if directive:
        unknown = "something that LLVM does not survive"
        raise ReadsFilesError(directive if isinstance(directive, str) else unknown)
    about = json.dumps({"text": [code_bytes(code)] * 2}).encode()
    # For any search: none is made here that more time could improve.
    if job.keep(CachedObject(float("inf"), 0, about, code, has_diagnostics=job.has_diagnostics)):
        unit = TimedUnit(job.unit.source, code_options(job.unit.options), job.bitcode)
        data = json.dumps([unit.source, *unit.options]).encode() + b"\n" + unit.bitcode
        name = digest(data)
        job.cache.put(_KIND, name, data)
        job.cache.put(_MADE, f"{digest(code)}-{name}", b"")
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
    data = cache.read(_KIND, made[0].partition("-")[2])
    if data is None:
        return None
    about, _, bitcode = data.partition(b"\n")
    source, *options = json.loads(about)
    return TimedUnit(source, options, bitcode)


_ARCHIVE, _HEAD = b"!<arch>\n", 60
_INDICES = ("/", "//", "/SYM64/", "__.SYMDEF")
_BSD = "#1/"


@dataclass(frozen=True)
class LinkPart:
    """An object.

    Args:
        word: index of the word that names it, or its archive.
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
    for index in sorted(Invocation(list(words)).linked):
        path = Path(words[index])
        data = path.read_bytes() if path.is_file() else b""
        if data.startswith(_ARCHIVE):
            found += [LinkPart(index, digest(code), True, code) for code in _members(data)]
        elif data.startswith(b"\x7fELF"):
            found.append(LinkPart(index, digest(data), False, data))
    return found


def exchanged(words: Sequence[str], others: Mapping[LinkPart, str]) -> list[str]:
    """Replace objects by other words; what stands in an archive comes before the archive.

    The linker takes from an archive only what it lacks by then.
    """
    before: dict[int, list[str]] = {}
    for part, word in others.items():
        before.setdefault(part.word, []).append(word)
    gone = {part.word for part in others if not part.in_archive}
    return [
        each
        for index, word in enumerate(words)
        for each in (*before.get(index, ()), *(() if index in gone else (word,)))
    ]


def without_output(words: Sequence[str]) -> list[str]:
    """Leave out what -o names."""
    return [word for _, group in grouped(words) if not group[0].startswith("-o") for word in group]


def _members(data: bytes) -> Iterator[bytes]:
    at = len(_ARCHIVE)
    while at + _HEAD <= len(data):
        name, size = data[at : at + 16].decode("latin-1").rstrip(), int(data[at + 48 : at + 58])
        # Members begin at even offsets.
        start, at = at + _HEAD, at + _HEAD + size + size % 2
        # A long name stands before the content.
        long = int(name.removeprefix(_BSD)) if name.startswith(_BSD) else 0
        # A slash with a number is no index: it is the offset of a long name.
        if not name.startswith(_INDICES) or name[1:].isdigit():
            yield data[start + long : start + size]
