"""Search for an object that is smaller than clang's, in a child, and its memory of functions.

What crashes or hangs in the child costs the improvement alone. What was found for functions is remembered by
their content and the toolchain, whatever file they stand in.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic

from planish.cc.arguments import code_options
from planish.cc.clang import Compiler, Unit, run
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest, share
from planish.cc.settings import CompileSettings, UsageError
from planish.core import PlanishError
from planish.levels.llvm.backend.elf import code_bytes, function_bytes, loaded_bytes
from planish.sandbox.child import ForkedChild, Send, wait
from planish.sandbox.plain_data import DataError, dumps, loads
from planish.sandbox.scratch import Scratch

_LARGEST = 1 << 20
"""Bytes of one of the 256 files of each user."""
_CHECK = 16


class FunctionMemory:
    """Lines of text in 256 files; each user appends to files of their own, and reads those of all users.

    A line has a checksum: what a full disk or a dying machine cut short is passed over.

    Args:
        cache: whose folder it uses; errors are noted there.
    """

    def __init__(self, cache: ObjectCache) -> None:
        self._cache = cache
        self._known: dict[str, dict[str, str]] = {}

    def get(self, key: str) -> str | None:
        """Return the value of a key; None where there is none."""
        return self._shard(_shard(key)).get(key)

    def put(self, key: str, value: str) -> None:
        """Keep a value in place of the key's old one."""
        shard = _shard(key)
        self._shard(shard)[key] = value
        text = json.dumps([key, value])
        try:
            # It begins a line of its own, also behind one that was cut short.
            self._append(shard, f"\n{_check(text)} {text}\n".encode())
        except OSError as error:
            self._cache.note(f"cannot be written: {error}")

    def _shard(self, shard: str) -> dict[str, str]:
        if shard not in self._known:
            self._known[shard] = known = {}
            for path in sorted(glob.glob(f"{glob.escape(self._cache.folder)}/functions/{shard}-*")):
                known.update(_read(path))
        return self._known[shard]

    def _append(self, shard: str, line: bytes) -> None:
        path = f"{self._cache.folder}/functions/{shard}-{os.geteuid()}"
        self._cache.make_folder(os.path.dirname(path))
        with open(path, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not file.tell():
                share(file.fileno(), os.path.dirname(path))
            if file.tell() > _LARGEST:
                os.unlink(path)  # old lists go; the next one begins a new file
            file.write(line)


def _shard(key: str) -> str:
    return digest(key.encode())[:2]


def _check(text: str) -> str:
    return digest(text.encode())[:_CHECK]


def _read(path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                check, _, text = line.rstrip("\n").partition(" ")
                if check == _check(text):
                    key, value = json.loads(text)
                    found[key] = value
    except OSError:
        pass  # another user's who keeps it closed: their functions are searched again
    return found


_MEMORY_BYTES = 8 << 30


class SearchError(Exception):
    """There is no result; the message is for the user."""


class ReadsFilesError(Exception):
    """An object depends on files that are not known: only clang can make it."""


@dataclass(frozen=True)
class Asked:
    """A search.

    Args:
        bitcode: unoptimised.
        seconds: of the processor, at most, apart from making the module once.
        evaluations: of lists on functions; None: no limit.
        patience_s: after which the child is killed.
    """

    bitcode: bytes
    seconds: float
    evaluations: int | None
    patience_s: float


@dataclass(frozen=True)
class FoundBuild:
    """Result of a search in a child.

    Args:
        bitcode: improved; empty where nothing else can be made.
        passes: function to the list that it has of its own.
        evaluations: lists that were run on functions.
        seconds: that were spent on it by now; fewer than were asked for where load cut the search short.
        cache_error: what is wrong with the cache; empty: nothing.
        reading_directive: of assembly, by which the object may depend on more files; empty: there is none.
    """

    bitcode: bytes
    passes: Mapping[str, tuple[str, ...]]
    evaluations: int
    seconds: float
    cache_error: str
    reading_directive: str = ""


_ANSWER = FoundBuild | str


def search(asked: Asked, cache: ObjectCache, scratch: Scratch) -> FoundBuild:
    """Search in a child.

    Raises:
        SearchError: it fails, crashes, or does not end.
    """
    child = ForkedChild(partial(_work, asked, cache), _MEMORY_BYTES, scratch.path)
    try:
        answer = _answer(child, asked.patience_s)
    except (SearchError, KeyboardInterrupt):
        child.kill()
        raise
    end = child.end()
    if isinstance(answer, FoundBuild):
        if answer.reading_directive:
            raise ReadsFilesError(reads_files(answer.reading_directive))
        return answer
    raise SearchError(answer if isinstance(answer, str) else f"the search died: {end.cause}")


def reads_files(directive: str) -> str:
    """Return why clang has to make an object each time."""
    return f"its assembly has '{directive}', which may read files"


def _answer(child: ForkedChild, seconds: float) -> FoundBuild | str | None:
    """Wait for a child's answer; None where it dies, or sends something else.

    Raises:
        SearchError: it does not come in time.
    """
    deadline = time.monotonic() + seconds
    with suppress(EOFError):
        while wait(child.ends, max(0.0, deadline - time.monotonic())):
            for message in child.receive():
                try:
                    return loads(message, _ANSWER)
                except DataError as error:
                    child.reject(error)
        raise SearchError(f"the search did not end within {seconds:.0f} s")
    return None


def _work(asked: Asked, cache: ObjectCache, send: Send) -> None:
    """Search, and send what comes of it, or why nothing does."""
    try:
        send(dumps(_found(asked, cache), _ANSWER))
    except (PlanishError, ImportError) as error:
        send(dumps(str(error), _ANSWER))


def _found(asked: Asked, cache: ObjectCache) -> FoundBuild:
    from planish.levels.llvm.modules import make_smaller, reading_directive_of

    if directive := reading_directive_of(asked.bitcode):
        return FoundBuild(b"", {}, 0, asked.seconds, cache.error, directive)
    found = make_smaller(asked.bitcode, asked.seconds, asked.evaluations, FunctionMemory(cache))
    if found is None:
        return FoundBuild(b"", {}, 0, asked.seconds, cache.error)
    return FoundBuild(found.bitcode, found.passes(), found.evaluations, found.seconds, cache.error)


_PATIENCE, _PATIENCE_S = 20.0, 30.0
"""The search is killed after so many times what clang takes, and so many seconds, beyond its own time."""
_SLOWEST = 6.0
"""How many seconds by the clock one of the search may take, in all."""
_VERSION = re.compile(rb"clang version (\d+)\.")
CODE_ONLY = ("-Xclang", "-disable-llvm-passes", "-Qunused-arguments", "-w", "-c", "-x", "ir", "-")


def improve(
    unit: Unit,
    bitcode: bytes,
    settings: CompileSettings,
    cache: ObjectCache,
    clang_s: float,
    *,
    has_diagnostics: bool,
) -> CachedObject | None:
    """Search for a smaller object, and leave it where clang's is.

    Args:
        unit: the source, whose object clang has made.
        bitcode: unoptimised.
        settings: the time of the search.
        cache: has what is known of functions.
        clang_s: seconds that clang took.
        has_diagnostics: whether clang says more than its front end does.

    Returns:
        What is to be kept; None where the search failed, and clang's object stays.

    Raises:
        ReadsFilesError: the object may depend on files that are not known.
        UsageError: the search failed, and must not (--planish-strict).
    """
    began = monotonic()
    try:
        code, about, seconds = _searched(unit, bitcode, settings, cache, clang_s)
    except (SearchError, PlanishError, OSError) as error:
        _fall_back(unit, settings, " ".join(str(error).split()).rstrip("."))
        return None
    about["clang_s"], about["search_s"] = round(clang_s, 3), round(monotonic() - began, 3)
    return CachedObject(
        seconds, settings.evaluations, json.dumps(about).encode(), code, has_diagnostics=has_diagnostics
    )


def _fall_back(unit: Unit, settings: CompileSettings, why: str) -> None:
    try:
        settings.fall_back(f"{unit.source}: {why}")
    except UsageError:
        Path(unit.output).unlink(missing_ok=True)  # or the next make would take it for made
        raise


def _searched(
    unit: Unit, bitcode: bytes, settings: CompileSettings, cache: ObjectCache, clang_s: float
) -> tuple[bytes, dict[str, object], float]:
    """Put the smaller object in its place; return its content, the report, and the seconds that it had."""
    check_version(unit.compiler)
    own = Path(unit.output).read_bytes()
    scratch = Scratch()
    with closing(Removed(scratch)):
        patience = settings.seconds * _SLOWEST + clang_s * _PATIENCE + _PATIENCE_S
        asked = Asked(bitcode, settings.seconds, settings.evaluations or None, patience)
        found = search(asked, cache, scratch)
        if found.cache_error:
            cache.error = cache.error or found.cache_error
        options = code_options(unit.options)
        made = code_of(unit.compiler, options, found.bitcode, scratch) if found.bitcode else own
        best, passes = (made, found.passes) if _is_smaller(made, own) else (own, {})
        other = _of_less_effort(unit, scratch)
        if other and _is_smaller(other, best):
            best, passes = other, dict.fromkeys(function_bytes(other), ("-Os",))
    if best != own:
        atomic_write(unit.output, best)
    return best, _about(passes, found.evaluations, own, best), found.seconds


def _is_smaller(made: bytes, other: bytes) -> bool:
    """Return whether an object has less code or data than another, and more of neither."""
    after, before = ((code_bytes(each), loaded_bytes(each)) for each in (made, other))
    # Smaller code with more data beside it is no gain.
    return after[0] <= before[0] and after[1] <= before[1] and after != before


def _of_less_effort(unit: Unit, scratch: Scratch) -> bytes:
    """Make the object by -Os: -Oz leaves loops as they are written, which may take more code; empty: none."""
    if [word for word in unit.options if word.startswith("-O")][-1:] != ["-Oz"]:
        return b""
    path = scratch.path / "other.o"
    elsewhere = ["-MF", os.devnull] if unit.dependency_file else []
    words = [*unit.options, "-Os", *elsewhere, "-w", "-Qunused-arguments", "-c", "-o", str(path)]
    return b"" if run([*unit.compiler.command, *words]).code else path.read_bytes()


class Removed:
    """Removes a folder when it is closed."""

    def __init__(self, scratch: Scratch) -> None:
        self.close = scratch.remove


def check_version(compiler: Compiler) -> None:
    """See that clang is of the LLVM that searches.

    Raises:
        SearchError: it is not.
    """
    from planish.levels.llvm.backend import open_backend

    said = _VERSION.search(run([*compiler.command, "--version"]).written)
    theirs = said[1].decode() if said else "an unknown version"
    ours = open_backend().version
    if theirs != ours.partition(".")[0]:
        raise SearchError(f"{compiler.path} is of LLVM {theirs}, and what searches of {ours}")


def code_of(compiler: Compiler, options: list[str], bitcode: bytes, scratch: Scratch) -> bytes:
    """Have clang make code of a module, as it would of its own.

    Raises:
        SearchError: it makes none.
    """
    path = scratch.path / "improved.o"
    ended = run([*compiler.command, *options, *CODE_ONLY, "-o", str(path)], bitcode)
    if ended.code:
        last = (ended.messages.decode(errors="replace").strip().splitlines() or [f"exit code {ended.code}"])[
            0
        ]
        raise SearchError(f"clang makes no code of what was found: {last}")
    return path.read_bytes()


def _about(
    passes: Mapping[str, tuple[str, ...]], evaluations: int, own: bytes, made: bytes
) -> dict[str, object]:
    """Report what clang's object has, and what is left there: bytes of all code and of each function."""
    before, after = function_bytes(own), function_bytes(made)
    both = ((name, before.get(name, 0), after.get(name, 0)) for name in {**before, **after})
    changed = sorted((row for row in both if row[1] != row[2]), key=lambda row: row[2] - row[1])
    return {
        "text": [code_bytes(own), code_bytes(made)],
        "functions": [(*row, passes.get(row[0], ())) for row in changed],
        "evaluations": evaluations,
    }
