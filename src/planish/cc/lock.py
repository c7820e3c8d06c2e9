"""Lock file: the pass lists that were chosen for the sources of a build, which later builds repeat.

It is a JSON document that can be committed with the sources. Its entries name a compilation by the module
that clang's front end makes, without debug information, so that the folder of a checkout does not matter.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager

from planish.cc.object_cache import atomic_write, digest
from planish.cc.settings import SearchError

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence
    from typing import Any, Literal

    from planish.cc.object_cache import ObjectCache

    Result = Literal["passes", "-Os", "-Oz", "clang"]

_SCHEMA = 1
_KIND = "modules"
_PATHS = (
    *("-I", "-isystem", "-iquote", "-idirafter", "-isysroot", "-include", "-imacros", "-L", "-B", "-MF"),
    *("-MT", "-MQ", "-o", "-fdebug-prefix-map", "-ffile-prefix-map", "-fmacro-prefix-map", "--sysroot"),
)
"""Options whose values are paths: another checkout has other ones."""


class LockEntry:
    """The result of one compilation.

    Attributes:
        module: names the module before any pass; see `planish.levels.llvm.modules.transform.module_digest`.
        options: names the options of the compilation, without paths.
        result: "passes" (the lists below), "-Os" or "-Oz" (clang's passes at that level), or "clang" (its own
            result).
        begin, end: what is run on the whole module before and after the lists.
        inlining: functions that are inlined nowhere (noinline) or everywhere (alwaysinline).
        lists: pipelines of function passes with their functions; one without functions is for all others.
        attributes: changes of attributes before code is made, with their functions: `KEY=VALUE`, or `-NAME`
            for one that is removed.
        llvm: options of LLVM for code generation, as clang takes each after `-mllvm`.
    """

    __slots__ = (*("attributes", "begin", "end", "inlining", "lists", "llvm", "module", "options", "result"),)

    def __init__(
        self,
        module: str,
        options: str,
        result: Result,
        begin: str = "",
        end: str = "",
        inlining: Iterable[tuple[str, str]] = (),
        lists: Iterable[tuple[str, Sequence[str]]] = (),
        attributes: Iterable[tuple[str, Sequence[str]]] = (),
        llvm: Iterable[str] = (),
    ) -> None:
        self.module, self.options, self.begin, self.end = module, options, begin, end
        self.result: Result = result
        self.inlining = tuple((name, attribute) for name, attribute in inlining)
        self.lists = tuple((pipeline, tuple(names)) for pipeline, names in lists)
        self.attributes = tuple((change, tuple(names)) for change, names in attributes)
        self.llvm = tuple(llvm)

    @property
    def digest(self) -> str:
        """Name the entry by all that it has."""
        return digest(json.dumps(self.to_json(), sort_keys=True).encode())

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a lock file has it."""
        named: dict[str, Any] = {"module": self.module, "options": self.options, "result": self.result}
        if self.result == "passes":
            chosen = {"inlining": self.inlining, "lists": self.lists}
            named |= {"begin": self.begin, **chosen, "end": self.end}
        if self.attributes:
            named["attributes"] = self.attributes
        if self.llvm:
            named["llvm"] = self.llvm
        return named


def entry_from_json(named: Mapping[str, Any]) -> LockEntry:
    """Read an entry; raises KeyError, TypeError or AttributeError where it is malformed."""
    return LockEntry(
        named["module"],
        named["options"],
        named["result"],
        named.get("begin", ""),
        named.get("end", ""),
        named.get("inlining", ()),
        named.get("lists", ()),
        named.get("attributes", ()),
        named.get("llvm", ()),
    )


class SourceLock:
    """The entries of one source in a lock file, and the one of a compilation of it.

    Args:
        path: of the file; it is created when something is chosen.
        source: the path of the source, or of a program that is linked.
        options: of the compilation, as groups of words.

    Attributes:
        path: the same.
        entries: one for each compilation of the source.
        entry: of this compilation; None where it has none.

    Raises:
        SearchError: the file cannot be read.
    """

    __slots__ = ("_module", "_options", "_source", "entries", "entry", "path")

    def __init__(self, path: str, source: str, options: Iterable[list[str]]) -> None:
        self.path = path
        folder = os.path.dirname(os.path.abspath(path))
        self._source = os.path.relpath(os.path.abspath(source), folder)
        self._options, self._module = _options_digest(options), ""
        self.entries = self._read(_document(path))
        self.entry: LockEntry | None = None

    @property
    def digest(self) -> str:
        """Name what the file has of this source; empty where it has nothing."""
        return "".join(entry.digest for entry in self.entries)

    def match(self, bitcode: bytes, cache: ObjectCache) -> None:
        """Find the entry of the compilation.

        Args:
            bitcode: what it starts from.
            cache: keeps the names of modules.

        Raises:
            SearchError: the source has changed since the file was written, or LLVM cannot read the bitcode.
        """
        self._module = _module_name(bitcode, cache)
        same = [entry for entry in self.entries if entry.module == self._module]
        # Of equal modules of other options, such as -ffunction-sections, the lists are as good.
        self.entry = min(same, key=lambda entry: entry.options != self._options, default=None)
        if self.entry is None and any(entry.options == self._options for entry in self.entries):
            raise SearchError(
                f"{self.path} was written for another version of {self._source}; "
                "delete its entry to search again"
            )

    def enter(self, about: bytes) -> None:
        """Enter what was chosen for the compilation.

        Args:
            about: the report of the search, as JSON.

        Raises:
            SearchError: the file cannot be written.
        """
        chosen = {**json.loads(about), "module": self._module, "options": self._options}
        self.entry = entry_from_json(chosen)
        self._add(self.entry)

    def _add(self, entry: LockEntry) -> None:
        """Add an entry to the file, beside what other processes add."""
        try:
            with _exclusive(self.path):
                document = _document(self.path)
                others = [each for each in self._read(document) if each.digest != entry.digest]
                self.entries = sorted([*others, entry], key=lambda each: (each.module, each.options))
                rows = [each.to_json() for each in self.entries]
                sources = {**document.get("sources", {}), self._source: rows}
                document = {"schema_version": _SCHEMA, "sources": dict(sorted(sources.items()))}
                atomic_write(self.path, json.dumps(document, indent=1).encode() + b"\n")
        except OSError as error:
            raise SearchError(f"{self.path} cannot be written: {error.strerror}") from error

    def _read(self, document: Mapping[str, Any]) -> list[LockEntry]:
        try:
            return [entry_from_json(each) for each in document.get("sources", {}).get(self._source, ())]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise SearchError(f"{self.path} has a malformed entry of {self._source}") from error


def _options_digest(groups: Iterable[list[str]]) -> str:
    """Name options without those whose values are paths."""
    kept = [word for group in groups if not group[0].startswith(_PATHS) for word in group]
    return digest(*map(os.fsencode, kept))


def _module_name(bitcode: bytes, cache: ObjectCache) -> str:
    key = digest(bitcode)
    if known := cache.read(_KIND, key):
        return known.decode()
    from functools import partial

    from planish.core import PlanishError
    from planish.levels.llvm.modules.transform import module_digest, survived

    try:
        name = survived(partial(module_digest, bitcode), str, "reading the module")
    except PlanishError as error:
        raise SearchError(error.message) from error
    cache.put(_KIND, key, name.encode())
    return name


def _document(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SearchError(f"{path} cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("schema_version") != _SCHEMA:
        raise SearchError(f"{path} is not a lock file of this version of planish")
    return document


@contextmanager
def _exclusive(path: str) -> Generator[None]:
    """Hold the lock on a file's folder: the file itself is replaced."""
    number = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
