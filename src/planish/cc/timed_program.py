"""Programs whose time counts: what their objects were made of, and linking them again with faster ones.

What an object of -O2 or -O3 was made of is kept for the time when its program is run. What is known to be
faster is linked without the engine; else `timed_search` finds it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from planish.cc.archives import ARCHIVE, members
from planish.cc.arguments import Invocation, code_options, grouped
from planish.cc.clang import Compiler, run
from planish.cc.job import CompileJob
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest
from planish.cc.settings import ReadsFilesError, SearchError
from planish.levels.llvm.bindings.elf import code_bytes
from planish.levels.llvm.modules.transform import CHILD_LIMITS, reading_directive_of
from planish.levels.llvm.program import Running, running_by
from planish.sandbox.fork_pool import in_child
from planish.sandbox.scratch import Scratch

_UNITS, _MADE, _PROGRAMS = "units", "made", "programs"
"""Sources of objects, by their content; which object was made of which; faster objects of programs."""


@dataclass(frozen=True)
class TimedUnit:
    """Sources and options of an object.

    Args:
        source: the file.
        options: of clang, to make code of bitcode.
        bitcode: unoptimized.
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
        unknown = "something that crashes LLVM"
        raise ReadsFilesError(directive if isinstance(directive, str) else unknown)
    about = json.dumps({"text": [code_bytes(code)] * 2}).encode()
    # For any search: none is made here that more time could improve.
    if job.keep(CachedObject(float("inf"), 0, about, code, has_diagnostics=job.has_diagnostics)):
        unit = TimedUnit(job.unit.source, code_options(job.unit.options), job.bitcode)
        data = json.dumps([unit.source, *unit.options]).encode() + b"\n" + unit.bitcode
        name = digest(data)
        job.cache.put(_UNITS, name, data)
        job.cache.put(_MADE, f"{digest(code)}-{name}", b"")
    return about


def read_unit(cache: ObjectCache, name: str) -> TimedUnit | None:
    """Return the unit that an object was made of; None where it is not known, damaged, or ambiguous.

    Args:
        cache: where it is kept.
        name: the object's content, by `digest`.
    """
    made = cache.names(_MADE, f"{name}-")
    # clang makes the same object of sources that differ, and other passes would not.
    if len(made) != 1:
        return None
    data = cache.read(_UNITS, made[0].partition("-")[2])
    if data is None:
        return None
    about, _, bitcode = data.partition(b"\n")
    source, *options = json.loads(about)
    return TimedUnit(source, options, bitcode)


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
        if data.startswith(ARCHIVE):
            found += [LinkPart(index, digest(code), True, code) for _, code in members(data)]
        elif data.startswith(b"\x7fELF"):
            found.append(LinkPart(index, digest(data), False, data))
    return found


def exchanged(words: Sequence[str], others: Mapping[LinkPart, str]) -> list[str]:
    """Replace objects by other words; the members of an archive come before the archive.

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


class TimedProgram:
    """A program that was linked of several objects, and the faster ones that are known.

    Args:
        compiler: that linked it.
        words: by which it was linked.
        run: how it is run, as in a shell.
        cache: has what its objects were made of, and keeps what is found.

    Attributes:
        parts: its objects.
        units: what they were made of, as far as that is known.
        running: how it is run; files that are named are those of this folder, wherever it is run.

    Raises:
        ProgramError: how it is run cannot be read.
    """

    def __init__(self, compiler: Compiler, words: Sequence[str], run: str, cache: ObjectCache) -> None:
        self.compiler, self.words, self.run, self.cache = compiler, words, run, cache
        running = running_by({"run": run if len(run.split()) > 1 else ""}, Running()) or Running()
        args = (os.path.abspath(word) if os.path.exists(word) else word for word in running.args)
        self.running = replace(running, args=tuple(args))
        self.parts = link_parts(words)
        self.units = {part: unit for part in self.parts if (unit := read_unit(cache, part.name))}
        made_of = {part: unit.key for part, unit in self.units.items()}
        self._key = digest(
            compiler.identity.encode(),
            os.fsencode("\0".join(without_output(words))),
            *(f"{part.name} {made_of.get(part, '')}".encode() for part in self.parts),
            self.running.text.encode("latin-1", "backslashreplace"),
        )

    def seconds(self) -> float:
        """Return how long was searched before; 0 where it was not, or what was found is damaged."""
        record = self.cache.read(_PROGRAMS, self._key)
        return json.loads(record)[1]["seconds"] if record else 0.0

    def known(self, seconds: float) -> tuple[bytes, dict[LinkPart, bytes]] | None:
        """Return the report and the faster objects of a search as long; None where there was none."""
        if (record := self.cache.read(_PROGRAMS, self._key)) is None:
            return None
        kept, about = json.loads(record)
        named = {part.name: part for part in reversed(self.parts)}
        objects = {named[name]: self.cache.get(key) for name, key in kept.items() if name in named}
        code = {part: entry.code for part, entry in objects.items() if entry}
        is_whole = len(code) == len(kept) and about["seconds"] >= seconds
        return (json.dumps(about).encode(), code) if is_whole else None

    def keep(self, about: Mapping[str, object], faster: Mapping[LinkPart, bytes]) -> None:
        """Keep what a search found."""
        keys = {part.name: digest(self._key.encode(), part.name.encode()) for part in faster}
        # The objects first, so that what names them is never there without them.
        for part, code in faster.items():
            entry = CachedObject(float("inf"), 0, b"", code, has_diagnostics=False)
            self.cache.keep(keys[part.name], entry)
        self.cache.put(_PROGRAMS, self._key, json.dumps([keys, about]).encode())

    def link_again(self, program: str, objects: Mapping[LinkPart, bytes]) -> None:
        """Replace the program by the one with faster objects, whole.

        Raises:
            SearchError: clang does not link it.
        """
        if not objects:
            return
        with Scratch() as scratch:
            others: dict[LinkPart, str] = {}
            for number, (part, code) in enumerate(objects.items()):
                path = scratch.path / f"{number}.o"
                path.write_bytes(code)
                others[part] = str(path)
            # Not in the folder of the program: a linker that outlives an interrupt would leave a file there.
            made = scratch.path / "program"
            words = [*without_output(exchanged(self.words, others)), "-o", str(made), "-Qunused-arguments"]
            if run([*self.compiler.command, *words]).code:
                raise SearchError("clang cannot link the faster objects")
            atomic_write(program, made.read_bytes(), 0o777)
