"""What a compilation read: where all of that is as it was, clang need not read it again to know the object.

Of a tiny file, clang's start and its front end are nearly all that a compilation takes. A record names the
files that were read, by their content, and what was found beside them under the names that were looked for:
a header that appears where the compiler looks first is another compilation.
"""

from __future__ import annotations

import os

from planish.cc.frontend import Unit, run
from planish.cc.object_cache import ObjectCache, digest

_MAGIC = b"planish-direct-1"
_READ = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "SOURCE_DATE_EPOCH", "CCC_OVERRIDE_OPTIONS", "PWD")
"""Variables that clang reads."""
_WRITES = ("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "CC_PRINT_HEADERS", "CC_LOG_DIAGNOSTICS")
"""Variables by which clang writes something else besides."""
_CHANGING = (b"__TIME__", b"__DATE__", b"__TIMESTAMP__", b".incbin")
"""What is another thing the next time though all files are the same, or names a file that is not told."""
_ABSENT = (b"__has_include", b"__has_embed", b"#embed")
"""What reads the absence of a file, which nobody tells; the system's own headers may do so."""
_REFUSED = tuple(
    "-include-pch -MG -fpch -ivfsoverlay --precompile -Xclang -Xpreprocessor -Wp, -iwith -iprefix "
    "-iframework -F -cxx-isystem -c-isystem -stdlib++-isystem --include-directory".split()
)
"""Options that read or write otherwise, or name folders where headers are looked for in another way."""
_FOLDERS = ("-I", "-iquote", "-isystem", "-idirafter")
_ALONE, _WITH_VALUE = ("-MD", "-MMD", "-MP", "-MV"), ("-MF", "-MT", "-MQ")
_OF_SYSTEM = (b"/usr/", b"/lib/")


class Direct:
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
        """Give the object's key and the dependencies that clang writes, where all is as it was."""
        held = self._cache.read("direct", self._key) if self._key else None
        parts = (held or b"").split(b"\0\0")
        if len(parts) != 5 or digest(*parts[1:]).encode() != parts[0] or parts[1] != _MAGIC:
            return None
        key, dependencies, files = parts[2:]
        names = [line.partition(b" ") for line in files.split(b"\0")]
        read = [name for check, _, name in names if check]
        if any(check and _content(name) != check for check, _, name in names):
            return None
        beside = [name for check, _, name in names if not check and name]
        return (key.decode(), dependencies) if _beside(self._unit, read) == beside else None

    def put(self, key: str, began_ns: int) -> None:
        """Keep what a compilation read.

        Args:
            key: of its object.
            began_ns: when it began; what was changed since may not be what it read.
        """
        written = self._unit.dependency_file
        dependencies = _read(os.fsencode(written)) if written else b""
        read = _files(self._unit) if self._key and dependencies is not None else []
        checks = [_content(name) for name in read]
        changing = b"" in checks or any(_changed(name) > began_ns for name in read)
        if not read or dependencies is None or changing:
            return
        lines = [b" ".join(row) for row in zip(checks, read, strict=True)]
        lines += [b" " + name for name in _beside(self._unit, read)]
        parts = [_MAGIC, key.encode(), dependencies, b"\0".join(lines)]
        self._cache.put_plain("direct", self._key, b"\0\0".join([digest(*parts).encode(), *parts]))


def _key(unit: Unit) -> str:
    """Name a compilation by its command; empty where that is not enough."""
    environment = os.environ
    words = unit.options
    if any(name in environment for name in _WRITES) or any(word.startswith(_REFUSED) for word in words):
        return ""
    output = unit.output if unit.dependency_file else ""
    said = [os.getcwd(), unit.source, output, *(environment.get(name, "") for name in _READ), *words]
    return digest(unit.compiler.identity.encode(), *map(os.fsencode, said))


def _files(unit: Unit) -> list[bytes]:
    """Ask clang which files it reads; none where it does not say."""
    options: list[str] = []
    skip = False
    for word in unit.options:
        if skip or word in _ALONE:
            skip = False
        elif word.startswith(_WITH_VALUE):
            skip = word in _WITH_VALUE
        else:
            options.append(word)
    asked = run([*unit.compiler.command, *options, "-M", "-MV", "-MT", "x", "-w", "-Qunused-arguments"])
    return _listed(asked.written) if not asked.code else []


def _listed(rule: bytes) -> list[bytes]:
    """Read a rule as NMake has it: names with spaces are quoted, and nothing else is changed."""
    found: list[bytes] = []
    for place, part in enumerate(rule.partition(b":")[2].replace(b"\\\n", b" ").split(b'"')):
        found += [part] if place % 2 else part.split()
    return found


def _content(name: bytes) -> bytes:
    """Name a file's content; empty where it cannot be read, or says something else each time."""
    data = _read(name)
    telling = _CHANGING if name.startswith(_OF_SYSTEM) else _CHANGING + _ABSENT
    if data is None or any(word in data for word in telling):
        return b""
    return digest(data).encode()


def _read(name: bytes) -> bytes | None:
    try:
        with open(name, "rb", 0) as file:
            return file.read()
    except OSError:
        return None


def _changed(name: bytes) -> int:
    found = os.stat(name)
    # What was put in its place may keep the time of its content; that of its entry is new.
    return max(found.st_mtime_ns, found.st_ctime_ns)


def _beside(unit: Unit, read: list[bytes]) -> list[bytes]:
    """List files that have names of those that were read, in folders where they were looked for too."""
    known = set(read)
    names = [name.split(b"/") for name in read]
    found: list[bytes] = []
    for folder in _folders(unit, read):
        try:
            there = set(os.listdir(folder or b"."))
        except OSError:
            continue
        for parts in names:
            # An include may name the file alone, or with any of the folders that it is in.
            for i in range(len(parts)):
                if parts[i] in there:
                    path = b"/".join([folder, *parts[i:]]) if folder else b"/".join(parts[i:])
                    if path not in known and os.path.isfile(path):
                        known.add(path)
                        found.append(path)
    return sorted(found)


def _folders(unit: Unit, read: list[bytes]) -> list[bytes]:
    folders = {os.path.dirname(name) for name in read if not name.startswith(_OF_SYSTEM)}
    for name in _READ[:3]:
        folders.update(map(os.fsencode, filter(None, os.environ.get(name, "").split(":"))))
    words = iter(unit.options)
    for word in words:
        if word.startswith(_FOLDERS):
            joined = next(word[len(option) :] for option in _FOLDERS if word.startswith(option))
            folders.add(os.fsencode(joined or next(words, "")))
    return sorted(folders)
