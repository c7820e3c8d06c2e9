"""Manifests of compilations by their command line, so that a known object needs no start of clang.

Of a tiny file, clang's start and its front end are nearly all that a compilation takes. A manifest names the
files that were read, by their content, and what was found beside them under the names that were looked for:
a header that appears where the compiler looks first is another compilation.
"""

from __future__ import annotations

import os

from planish.cc.arguments import grouped
from planish.cc.clang import Unit, read_file
from planish.cc.object_cache import ObjectCache, digest

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from planish.cc.reading import Reading

_KIND = "direct"
VARIABLES = (
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "SOURCE_DATE_EPOCH", "PWD", "COMPILER_PATH"),
    *("RC_DEBUG_PREFIX_MAP",),
    *("LIBRARY_PATH", "LLVM_OVERRIDE_PRODUCER", "SDKROOT", "MACOSX_DEPLOYMENT_TARGET", "INCLUDE"),
    *("IPHONEOS_DEPLOYMENT_TARGET", "TVOS_DEPLOYMENT_TARGET", "WATCHOS_DEPLOYMENT_TARGET"),
    *("XROS_DEPLOYMENT_TARGET", "DRIVERKIT_DEPLOYMENT_TARGET", "EXTERNAL_INCLUDE"),
)
"""Variables that clang reads to compile C and C++ for any target; `installation` has the libraries'."""
_PRECOMPILED = (".pch", ".gch")
_ABSENT = b"-"


class Manifest:
    """The record of one compilation.

    Args:
        unit: it.
        cache: where records are.
    """

    __slots__ = ("_cache", "_key", "_unit")

    def __init__(self, unit: Unit, cache: ObjectCache) -> None:
        self._unit, self._cache = unit, cache
        self._key = _key(unit)

    def get(self) -> tuple[str, bytes] | None:
        """Return the object's key and the dependencies that clang writes, where all is as it was."""
        held = self._cache.read(_KIND, self._key) if self._key else None
        if held is None:
            return None
        key, dependencies, files, asked, folders, toolchains = held.split(b"\0\0")
        named = [line.partition(b" ") for line in files.split(b"\0")]
        read = [name for check, _, name in named if check != _ABSENT]
        if any(check != _content(name) for check, _, name in named if check != _ABSENT):
            return None
        if any(check != _names_in(name) for check, _, name in _lines(toolchains)):
            return None
        stamps = _lines(folders)
        if any(check != _stamp(name) for check, _, name in stamps):
            beside = [name for check, _, name in named if check == _ABSENT]
            if _beside(read, asked.split(b"\0"), {name for _, _, name in stamps}) != beside:
                return None
        return key.decode(), dependencies

    def put(self, key: str, reading: Reading) -> None:
        """Keep what a compilation read.

        Args:
            key: of its object.
            reading: it.
        """
        written = self._unit.dependency_file
        dependencies = read_file(os.fsencode(written)) if written else b""
        checks = [_content(name) for name in reading.files]
        if not self._key or dependencies is None or b"" in checks or not reading.is_stable:
            return
        asked = sorted(reading.asked)
        folders = _with_subfolders(reading)
        lines = [b" ".join(row) for row in zip(checks, reading.files, strict=True)]
        lines += [_ABSENT + b" " + name for name in _beside(reading.files, asked, folders)]
        unchanged = (reading.is_older(name) or not os.path.exists(name) for name in folders)
        stamps = (_stamp(name) if old else b"0" for name, old in zip(folders, unchanged, strict=True))
        parts = [
            *(key.encode(), dependencies, b"\0".join(lines), b"\0".join(asked)),
            b"\0".join(b" ".join(row) for row in zip(stamps, folders, strict=True)),
            b"\0".join(_names_in(name) + b" " + name for name in sorted(reading.toolchains)),
        ]
        self._cache.put(_KIND, self._key, b"\0\0".join(parts))


def _key(unit: Unit) -> str:
    """Name a compilation by its command; empty where that is not enough."""
    words = unit.options
    included = [group[-1] for _, group in grouped(words) if group[0].startswith("-include")]
    names = [word.removeprefix("-include") for word in included]
    if any(os.path.exists(name + suffix) for name in names for suffix in _PRECOMPILED):
        return ""  # clang takes a precompiled header for what -include names
    variables = (os.environ.get(name, "") for name in VARIABLES)
    output = unit.output if unit.dependency_file else ""
    said = [os.getcwd(), unit.source, output, unit.host, *variables, *words]
    return digest(unit.compiler.identity.encode(), *map(os.fsencode, said))


def _lines(part: bytes) -> list[tuple[bytes, bytes, bytes]]:
    return [line.partition(b" ") for line in part.split(b"\0")]


def _content(name: bytes) -> bytes:
    """Name a file's content; empty where it cannot be read."""
    data = read_file(name)
    return b"" if data is None else digest(data).encode()


def _stamp(folder: bytes) -> bytes:
    """Return when the names in a folder were changed last."""
    try:
        return b"%d" % os.stat(folder).st_mtime_ns
    except OSError:
        return _ABSENT


def _names_in(folder: bytes) -> bytes:
    """Name the names in a folder."""
    try:
        return digest(*sorted(os.listdir(folder))).encode()
    except OSError:
        return _ABSENT


def _names(read: Iterable[bytes], asked: Iterable[bytes], folders: Collection[bytes]) -> set[bytes]:
    """Return the names that may have been looked for.

    clang joins a folder and a name to the path that it reports, and removes nothing but a leading `./`.
    """
    found = {name for name in asked if name}
    for path in read:
        end = path.rfind(b"/")
        while end > 0:
            if path[:end] in folders:
                found.add(path[end + 1 :])
            end = path.rfind(b"/", 0, end)
        if not path.startswith(b"/"):
            found.add(path)
    return found


def _beside(read: list[bytes], asked: list[bytes], folders: Collection[bytes]) -> list[bytes]:
    """List files that have names of those that were looked for, in folders where they were looked for too."""
    wanted: dict[bytes, list[bytes]] = {}
    for name in _names(read, asked, folders):
        wanted.setdefault(name.partition(b"/")[0], []).append(name)
    known = set(read)
    found: list[bytes] = []
    for folder in folders:
        try:
            there = {*os.listdir(folder), b".."}
        except OSError:
            continue
        for first in wanted.keys() & there:
            for name in wanted[first]:
                path = name if folder == b"." else folder + b"/" + name
                if path not in known and os.path.isfile(path):
                    known.add(path)
                    found.append(path)
    return sorted(found)


def _with_subfolders(reading: Reading) -> set[bytes]:
    """Add the folders within those of headers that a name which is looked for would lead to."""
    below: set[bytes] = set()
    for name in _names(reading.files, reading.asked, reading.folders):
        while name := os.path.dirname(name):
            below.add(name)
    found = set(reading.folders)
    for folder in reading.folders:
        found.update(path for name in below if os.path.isdir(path := folder + b"/" + name))
    return found
