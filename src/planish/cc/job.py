"""Compilation of one source to one object: what it reads, its manifest, what is known, and what is kept.

Of a tiny file, clang's start and its front end are nearly all that a compilation takes, so a known object
needs neither. A manifest names the files that were read, by their content, and what was found in their
folders under the names that were looked for: a header that appears where the compiler looks first is another
compilation.
"""

from __future__ import annotations

import os
from time import monotonic, time_ns

from planish.cc.arguments import code_options, grouped
from planish.cc.clang import CompletedProcess, Unit, read_file, run
from planish.cc.object_cache import CachedObject, ObjectCache, digest
from planish.cc.settings import CompileSettings

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from planish.cc.lock import LockEntry, SourceLock

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
        variant: what its object depends on besides its inputs.
    """

    __slots__ = ("_cache", "_key", "_unit")

    def __init__(self, unit: Unit, cache: ObjectCache, variant: str = "") -> None:
        self._unit, self._cache = unit, cache
        self._key = _key(unit, variant)

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


def _key(unit: Unit, variant: str) -> str:
    """Name a compilation by its command; empty where that is not enough."""
    words = unit.options
    included = [group[-1] for _, group in grouped(words) if group[0].startswith("-include")]
    names = [word.removeprefix("-include") for word in included]
    if any(os.path.exists(name + suffix) for name in names for suffix in _PRECOMPILED):
        return ""  # clang takes a precompiled header for what -include names
    variables = (os.environ.get(name, "") for name in VARIABLES)
    output = unit.output if unit.dependency_file else ""
    said = [os.getcwd(), unit.source, output, unit.host, variant, *variables, *words]
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


class CompileJob:
    """One compilation; it begins here.

    Args:
        unit: the source and its object.
        settings: the objective and the time of the search.
        cache: has objects, manifests and searches.

    Attributes:
        manifest: the record of this compilation.
        bitcode, messages, key: what clang's front end wrote and said, and the object's name in the cache by
            it; empty before the front end was run.
        clang_s: seconds until clang had made its object.
        has_diagnostics: whether clang said more than its front end does.
        lock: what a lock file has of the source; None without such a file.
    """

    __slots__ = (
        *("_began", "_began_ns", "bitcode", "cache", "clang_s", "has_diagnostics", "key", "lock"),
        *("manifest", "messages", "settings", "unit"),
    )

    def __init__(self, unit: Unit, settings: CompileSettings, cache: ObjectCache) -> None:
        self.unit, self.settings, self.cache = unit, settings, cache
        self._began, self._began_ns = monotonic(), time_ns()
        self.manifest = Manifest(unit, cache, settings.variant)
        self.key, self.bitcode, self.messages = "", b"", b""
        self.clang_s, self.has_diagnostics = 0.0, False
        self.lock: SourceLock | None = None

    @property
    def seconds(self) -> float:
        """Return how long it has taken by now."""
        return monotonic() - self._began

    def run_front_end(self) -> bool:
        """Have clang's front end make unoptimized bitcode; False where it makes none."""
        front = run([*self.unit.compiler.command, *self.unit.front_end])
        if front.code or not front.written.startswith(b"BC"):
            return False
        self.bitcode, self.messages = front.written, front.messages
        self.key = self._object_key()
        return True

    def _object_key(self) -> str:
        # Seconds of the search are not part of it: a longer search makes a better object of the same.
        variant = self.locked.digest if self.locked else self.settings.variant
        options = "\0".join([self.unit.host, variant, *code_options(self.unit.options)])
        return digest(self.unit.compiler.identity.encode(), os.fsencode(options), self.bitcode)

    def open_lock(self) -> None:
        """Read what the lock file has of the source.

        Raises:
            SearchError: the file cannot be read.
        """
        if self.settings.lock:
            from planish.cc.lock import SourceLock

            options = (group for _, group in grouped(self.unit.options) if group != [self.unit.source])
            self.lock = SourceLock(self.settings.lock, self.unit.source, options)
            self.manifest = Manifest(self.unit, self.cache, self.settings.variant + self.lock.digest)

    def match_lock(self) -> None:
        """Find the entry of this compilation in the lock file, by the bitcode of the front end.

        Raises:
            SearchError: the source has changed since the file was written.
        """
        if self.lock:
            self.lock.match(self.bitcode, self.cache)
            self.key = self._object_key()

    def enter_in_lock(self, about: bytes) -> None:
        """Enter what was chosen in the lock file; from now on it is what the object follows from.

        Args:
            about: the report of the search, which has it.

        Raises:
            SearchError: the file cannot be written.
        """
        assert self.lock
        self.lock.enter(about)
        self.key = self._object_key()
        self.manifest = Manifest(self.unit, self.cache, self.settings.variant + self.lock.digest)

    @property
    def locked(self) -> LockEntry | None:
        """The entry of this compilation in the lock file; None where it has none."""
        return self.lock.entry if self.lock else None

    def run_clang(self) -> CompletedProcess:
        """Have clang make the object."""
        return run([*self.unit.compiler.command, *self.unit.words])

    def known(self, key: str) -> CachedObject | None:
        """Look an object up; None where more is to be spent on it than was."""
        entry, settings = self.cache.get(key), self.settings
        return entry if entry and entry.is_enough(settings.seconds, settings.evaluations) else None

    def keep(self, entry: CachedObject) -> bool:
        """Put an object into the cache; False where a file was changed meanwhile."""
        # What was changed since may be in the object, and not in the bitcode that names it.
        reading = self.reading()
        if not reading.is_unchanged:
            return False
        self.cache.keep(self.key, entry)
        if self.needs_no_clang(entry):
            self.manifest.put(self.key, reading)
        return True

    def needs_no_clang(self, entry: CachedObject) -> bool:
        """Return whether all that clang does for an object is known: only clang can say something again."""
        return not (entry.has_diagnostics or entry.is_clangs or self.messages)

    def reading(self) -> Reading:
        """Ask clang what the compilation reads."""

        return Reading(self.unit, self._began_ns)

    def note(self, how: str, about: bytes, seconds: float = 0.0) -> None:
        """Keep what was done, for the report of the build; see `note`."""
        unit = self.unit
        note(self.cache, self.settings, unit.belongs_to, unit.source, how, about, seconds)


def note(
    cache: ObjectCache,
    settings: CompileSettings,
    output: str,
    source: str,
    how: str,
    about: bytes,
    seconds: float,
) -> None:
    """Keep what was done for the report of the build, and say it where that is asked for.

    Args:
        cache: where it is kept; it replaces what was noted when it was made before.
        settings: whether it is said.
        output: the object, or the program that it is for.
        source: the file.
        how: "searched", "known" (from the cache) or "clang" (left alone).
        about: what came of it, as JSON.
        seconds: that it took.
    """
    where, what = os.fsencode(os.path.abspath(output)), os.fsencode(os.path.abspath(source))
    data = b"\0".join([where, what, how.encode(), b"%.3f" % seconds, about])
    cache.put("builds", digest(where, what, str(os.geteuid()).encode()), data)
    if settings.reports:
        from planish.cc.reporting import report

        report(source, how, about, seconds)


def left_to_clang(why: str) -> CachedObject:
    """Return the cached facts of a source whose object clang has to make each time."""
    return CachedObject(float("inf"), 0, refused(why), b"", has_diagnostics=False)


def refused(why: str) -> bytes:
    """Return the report of a source that is left to clang."""
    import json

    return json.dumps({"why": why}).encode()


_ALONE, _WITH_VALUE = ("-MD", "-MMD", "-MP", "-MV", "-w"), ("-MF", "-MT", "-MQ")
_PREPROCESS = (
    *("-fsyntax-only", "-Xclang", "-Eonly", "-MD", "-MF", "-", "-MV", "-MT", "x", "-v", "-Qunused-arguments"),
    *("-Wno-everything", "-Werror=date-time"),
)
_CHANGING = rb"__(?:TIME|DATE|TIMESTAMP)__"
_ASKS = rb"__has_(?:include|include_next|embed)\b"
_HARMLESS = rb"(?:ifdef|ifndef|defined *\(?) *__has_(?:include|include_next|embed)\b"
_LITERAL = rb"has_(?:include|include_next|embed)\s*\(\s*[<\"]([^>\"\n]+)[>\"]"
_LATEST_NS = 10_000_000
"""Times of files are those of the kernel's last tick, so what is so old may have been written just now."""
OF_SYSTEM = (b"/usr/", b"/lib/")
TOOLCHAINS = b"/usr/lib/gcc"


class Reading:
    """The files that one compilation reads.

    Attributes:
        files: paths of all files that were read.
        asked: names of which a file asks whether there is such a header.
        folders: where headers are looked for, also those that do not exist.
        toolchains: folders in which clang looks for installations of GCC.
        is_stable: whether the same files have the same result again, as far as is known.
        is_unchanged: whether no file was changed since the compilation began.
    """

    __slots__ = ("_before_ns", "asked", "files", "folders", "is_stable", "is_unchanged", "toolchains")

    def __init__(self, unit: Unit, began_ns: int) -> None:
        """Ask clang what it reads for a unit, whose compilation began at a time."""
        ended = run([*unit.compiler.command, *_options(unit), *_PREPROCESS])
        self.files = _listed(ended.written)
        self._before_ns = began_ns - _LATEST_NS
        self.folders, self.toolchains = _searched(ended.messages)
        self.folders |= {os.path.dirname(name) or b"." for name in self.files} | {b"."}
        self.folders = {name.removeprefix(b"./") or b"." for name in self.folders}
        self.asked = set[bytes]()
        self.is_unchanged = bool(self.files) and all(map(self.is_older, self.files))
        self.is_stable = self.is_unchanged and not ended.code and all(map(self._is_stable, self.files))

    def is_older(self, path: bytes) -> bool:
        """Return whether a file or folder is as it was before the compilation began."""
        try:
            found = os.stat(path)
        except OSError:
            return False
        # A file that was moved here may keep the time of its content; that of its entry is new.
        return max(found.st_mtime_ns, found.st_ctime_ns) < self._before_ns

    def _is_stable(self, path: bytes) -> bool:
        """Read which headers a file asks for; False where its text says something else each time."""
        import re  # a known object is found without it

        text = read_file(path)
        if text is None or re.search(_CHANGING, text):
            return False
        names = re.findall(_LITERAL, text)
        self.asked.update(names)
        # A name that a macro makes is not known. Headers of the system have macros for the question itself.
        others = len(re.findall(_ASKS, text)) - len(re.findall(_HARMLESS, text)) - len(names)
        return others <= 0 or path.startswith(OF_SYSTEM)


def _options(unit: Unit) -> list[str]:
    """Leave out of a unit's options what is about dependencies, and `-w`, which would hide dates."""
    return [
        word
        for _, group in grouped(unit.options)
        if group[0] not in _ALONE and not group[0].startswith(_WITH_VALUE)
        for word in group
    ]


def _listed(rule: bytes) -> list[bytes]:
    """Read a rule as NMake has it: names with spaces are quoted, and nothing else is changed."""
    found: list[bytes] = []
    for index, part in enumerate(rule.partition(b":")[2].replace(b"\\\n", b" ").split(b'"')):
        found += [part] if index % 2 else part.split()
    return found


def _searched(messages: bytes) -> tuple[set[bytes], set[bytes]]:
    """Read from what `-v` says in which folders headers, and installations of GCC, are looked for."""
    folders, toolchains = set[bytes](), {TOOLCHAINS}
    listing = False
    for line in messages.splitlines():
        missing = line.partition(b'ignoring nonexistent directory "')[2]
        found = line.partition(b"Found candidate GCC installation: ")[2]
        if missing:
            folders.add(missing.rstrip(b'"'))
        elif found:
            toolchains.add(os.path.dirname(found))
        elif line.startswith(b"#include "):
            listing = True
        elif line.startswith(b"End of search list"):
            listing = False
        elif listing:
            folders.add(line.strip())
    return folders, toolchains
