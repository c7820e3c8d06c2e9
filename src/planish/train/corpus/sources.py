"""Sources of functions: packages that are unpacked, and C files that are compiled without their build system.

A package's own configuration takes longer than the compilation, and needs all that the package depends on.
Include folders are guessed instead, and missing headers generated: most files compile that way.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Protocol

from planish.train.corpus.programs import Apt
from planish.train.corpus.shards import Kind
from planish.train.corpus.unit import SourceUnit

_LEFT_OPEN = re.compile(r"@\w+@|\$\{\w+\}")
_CMAKE_NUMBER = re.compile(r"^([ \t]*#[ \t]*)cmakedefine01([ \t]+\w+).*$", re.MULTILINE)
_CMAKE = re.compile(r"^([ \t]*#[ \t]*)cmakedefine\b", re.MULTILINE)


def made_up(template: str) -> str:
    """Write a header from the text of its NAME.in; what that leaves open becomes 1, and is defined."""
    text = _CMAKE_NUMBER.sub(r"\1define\2 1", template)
    return _LEFT_OPEN.sub("1", _CMAKE.sub(r"\1define", text))


@cache
def configuration() -> str:
    """Return a config.h that declares what a Linux system with the GNU library has."""
    return (files("planish.train.corpus") / "config.h").read_text()


_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_CONFIG = re.compile(r"(^|[/_-])(auto)?conf(ig)?(ure)?\.h$")
_FOREIGN = frozenset((
    "win", "win32", "win64", "windows", "msvc", "vc", "mingw", "cygwin", "wince", "dos", "djgpp", "os2",
    "mac", "macos", "macosx", "osx", "darwin", "ios", "amiga", "beos", "haiku", "android", "vms",
    "solaris", "aix", "hpux", "debian", ".pc", ".git",
))  # fmt: skip
_MOST_BYTES = 4_000_000  # larger "sources" are data
_LENIENT = (
    "-w",
    "-Wno-implicit-function-declaration",
    "-Wno-implicit-int",
    "-Wno-int-conversion",
    "-Wno-incompatible-function-pointer-types",
    "-Wno-incompatible-pointer-types",
    "-Wno-return-type",
    "-Wno-return-mismatch",
    "-ferror-limit=1",
)
_DEFINED = ("-D_GNU_SOURCE", "-DHAVE_CONFIG_H")


class SourceTree:
    """A package's sources.

    Args:
        root: their folder.
        system: where the compiler's own headers are.
        stubs: a folder for headers that are made up.
    """

    def __init__(self, root: Path, system: Sequence[Path], stubs: Path) -> None:
        self._root = root
        self._system = tuple(system)
        self._stubs = stubs
        self._including: dict[str, list[tuple[str, str]]] = {}
        self._nearest_known: dict[tuple[str, str], str | None] = {}
        self._system_known: dict[str, bool] = {}

    def c_files(self) -> list[str]:
        """List the C files, as paths within the tree, sorted."""
        return [path for path in self._paths if path.endswith(".c") and not _foreign(path)]

    def flags(self, file: str) -> tuple[str, ...]:
        """Return the arguments with which a file has a chance to compile, and make up what it lacks.

        Raises:
            OSError: a made-up header cannot be written.
        """
        quoted: dict[str, None] = {}
        angled: dict[str, None] = {}
        for kind, folder in self._folders(file):
            (quoted if kind == '"' else angled)[folder] = None
        # After the system's folders, where <string.h> must not be some package's replacement of it.
        found = [f"-iquote{self._root / folder}" for folder in quoted]
        found += [f"-idirafter{self._root / folder}" for folder in (quoted | angled)]
        return (*_LENIENT, *_DEFINED, *found, f"-idirafter{self._stubs}")

    def _folders(self, file: str) -> Iterator[tuple[str, str]]:
        """Yield the folders to be searched for what a file includes, and what that includes in turn."""
        waiting, seen = [file], {file}
        for path in waiting:
            for kind, name in self._includes(path):
                target = self._target(posixpath.dirname(path), kind, name)
                if target is None:
                    continue
                yield kind, target.removesuffix(name).rstrip("/") if target.endswith(name) else ""
                # Grows while it is walked: breadth first.
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)

    def _includes(self, path: str) -> list[tuple[str, str]]:
        if path not in self._including:
            found = _INCLUDE.findall(_read(self._root / path))
            self._including[path] = [
                (kind.decode(), name.decode(errors="replace").strip()) for kind, name in found
            ]
        return self._including[path]

    def _target(self, here: str, kind: str, name: str) -> str | None:
        """Find the file of the tree that is included; one that is nowhere is made up."""
        beside = posixpath.normpath(posixpath.join(here, name))
        if kind == '"' and beside in self._path_set:
            return beside
        if kind == "<" and self._is_system(name):
            return None
        target = self._nearest(here, name)
        if target is None and not self._is_system(name):
            target = self._installed(here, name)
            if target is None:
                self._make_up(here, kind, name)
        return target

    def _installed(self, here: str, name: str) -> str | None:
        """Find a header that is included by its name once installed: `gsl/gsl_math.h` for `gsl_math.h`."""
        rest = name.partition("/")[2]
        if not rest or _CONFIG.search(name):
            return None
        target = self._nearest(here, rest)
        if target is not None:
            self._write(name, lambda: f'#include "{(self._root / target).resolve()}"\n')
        return target

    def _nearest(self, here: str, name: str) -> str | None:
        key = (here, name)
        if key not in self._nearest_known:
            wanted = f"/{name}"
            found = [path for path in self._by_name[posixpath.basename(name)] if f"/{path}".endswith(wanted)]
            if _CONFIG.search(name):  # another program's configuration is worse than a made-up one
                found = [path for path in found if _above(path.removesuffix(name).rstrip("/"), here)]
            elif not _foreign(here):
                found = [path for path in found if not _foreign(path)]
            self._nearest_known[key] = min(found, key=lambda path: _distance(path, here), default=None)
        return self._nearest_known[key]

    def _is_system(self, name: str) -> bool:
        if name not in self._system_known:
            self._system_known[name] = any((folder / name).is_file() for folder in self._system)
        return self._system_known[name]

    def _make_up(self, here: str, kind: str, name: str) -> None:
        """Write a header that is generated by the package's build, or of another package.

        Headers in angle brackets are others' interfaces, without which nothing would compile, unless they
        are the configuration.
        """
        if _CONFIG.search(name):
            self._write(name, configuration)
        elif kind == '"':
            self._write(name, lambda: self._from_template(here, name))

    def _write(self, name: str, text: Callable[[], str]) -> None:
        """Write a header beside the sources, unless it is there: its text is made once."""
        header = self._stubs / name
        if ".." in name.split("/") or name.startswith("/") or header.exists():
            return
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(text())

    def _from_template(self, here: str, name: str) -> str:
        template = self._nearest(here, f"{name}.in")
        return made_up(_read(self._root / template).decode(errors="replace")) if template else ""

    @cached_property
    def _paths(self) -> list[str]:
        found: list[str] = []
        for folder, folders, names in os.walk(self._root):
            folders.sort()
            below = os.path.relpath(folder, self._root)
            found += [posixpath.normpath(posixpath.join(below, name)) for name in names]
        return sorted(path for path in found if (self._root / path).is_file())

    @cached_property
    def _path_set(self) -> frozenset[str]:
        return frozenset(self._paths)

    @cached_property
    def _by_name(self) -> defaultdict[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for path in self._paths:
            found[posixpath.basename(path)].append(path)
        return found


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.stat().st_size <= _MOST_BYTES else b""


def _foreign(path: str) -> bool:
    """Return whether it belongs to another system than Linux, by folders' names."""
    return not _FOREIGN.isdisjoint(path.lower().split("/")[:-1])


def _above(folder: str, here: str) -> bool:
    base = folder.removesuffix("include").rstrip("/")
    return not base or here == base or here.startswith(f"{base}/")


def _distance(path: str, here: str) -> tuple[int, int, str]:
    theirs, ours = path.split("/")[:-1], here.split("/")
    shared = 0
    for a, b in zip(theirs, ours, strict=False):
        if a != b:
            break
        shared += 1
    return -shared, len(theirs), path


UNKNOWN = "unknown"
_FIELD = re.compile(r"^(Files|License):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Licenses:
    """The licenses of a package's files.

    Args:
        rules: a pattern of paths and a license's short name; the last rule that fits a path counts.
    """

    rules: Sequence[tuple[re.Pattern[str], str]]

    def of(self, path: str) -> str:
        """Return the short name for a path within the package: "MIT", "GPL-2+ or MIT"; else "unknown"."""
        return next((name for pattern, name in reversed(self.rules) if pattern.fullmatch(path)), UNKNOWN)


def read_licenses(tree: Path) -> Licenses:
    """Read debian/copyright of an unpacked package; where it is missing or free text, nothing is known."""
    file = tree / "debian" / "copyright"
    return parse_licenses(file.read_text(errors="replace") if file.is_file() else "")


def parse_licenses(text: str) -> Licenses:
    """Read the stanzas of a copyright file that have `Files` and `License`."""
    rules: list[tuple[re.Pattern[str], str]] = []
    for stanza in re.split(r"\n[ \t]*\n", text):
        fields = dict(_FIELD.findall(stanza))
        names = fields.get("License", "").strip().splitlines()
        if names and "Files" in fields:
            name = " ".join(names[0].split())
            rules += [(_pattern(glob), name) for glob in fields["Files"].split()]
    return Licenses(rules)


def _pattern(glob: str) -> re.Pattern[str]:
    """Make a DEP-5 glob an expression: only `*`, `?` and a backslash are special, and `*` takes slashes."""
    made = re.sub(r"\\(.)|(\*)|(\?)|([^*?\\])", _piece, glob)
    return re.compile(made, re.DOTALL)


def _piece(match: re.Match[str]) -> str:
    escaped, star, one, plain = match.groups()
    return ".*" if star else "." if one else re.escape(escaped or plain)


RANDOM_LICENSE = "CC0-1.0"  # a random program has no author


class Package(Protocol):
    """Something whose functions go into one shard."""

    @property
    def name(self) -> str:
        """Its name in the rows."""
        ...

    @property
    def kind(self) -> Kind:
        """Return the kind of the source."""
        ...

    def prepare(self, work: Path, system: Sequence[Path]) -> Prepared:
        """Get the files, in a worker process.

        Args:
            work: a folder of its own, which does not exist yet.
            system: where the compiler's own headers are.

        Raises:
            PlanishError: it cannot be had.
            OSError: the disk is full.
        """
        ...


@dataclass(frozen=True)
class Prepared:
    """A package's version and files."""

    version: str
    units: Sequence[SourceUnit]


@dataclass(frozen=True)
class DebianPackage:
    """A Debian source package.

    Args:
        name: Debian's.
        apt: downloads it.
        macros: what its own build would define, as `NAME` or `NAME=VALUE`.
    """

    name: str
    apt: Apt
    macros: Sequence[str] = ()
    kind: Kind = "debian"

    def prepare(self, work: Path, system: Sequence[Path]) -> Prepared:
        """Download it, unpack it, and see which C files it has."""
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        tree, version = self.apt.unpack(self.name, work)
        return Prepared(version, _c_units(tree, work / "stubs", system, self.macros))


@dataclass(frozen=True)
class SourceFolder:
    """A folder of C files, with all that is below it."""

    name: str
    path: Path
    kind: Kind = "folder"

    def prepare(self, work: Path, system: Sequence[Path]) -> Prepared:
        """See which C files it has."""
        return Prepared("", _c_units(self.path.resolve(), work / "stubs", system))


@dataclass(frozen=True)
class IRFiles:
    """Files of LLVM IR."""

    name: str
    paths: Sequence[Path]
    kind: Kind = "ir"

    def prepare(self, work: Path, system: Sequence[Path]) -> Prepared:
        """List them."""
        del work, system
        return Prepared("", [SourceUnit(str(path), path.resolve(), UNKNOWN) for path in self.paths])


@dataclass(frozen=True)
class RandomPrograms:
    """A batch of random programs.

    Args:
        name: in the rows.
        program: csmith.
        headers: where its headers are.
        first: the first seed.
        count: how many programs.
    """

    name: str
    program: str
    headers: Path
    version: str
    first: int
    count: int
    kind: Kind = "csmith"

    def prepare(self, work: Path, system: Sequence[Path]) -> Prepared:
        """List the seeds."""
        del work, system
        flags = ("-w", f"-isystem{self.headers}")
        seeds = range(self.first, self.first + self.count)
        units = [
            SourceUnit(f"seed-{seed}.c", None, RANDOM_LICENSE, flags, (self.program, seed)) for seed in seeds
        ]
        return Prepared(self.version, units)


def _c_units(root: Path, stubs: Path, system: Sequence[Path], macros: Sequence[str] = ()) -> list[SourceUnit]:
    tree, licenses, defined = SourceTree(root, system, stubs), read_licenses(root), [f"-D{m}" for m in macros]
    return [
        SourceUnit(file, root / file, licenses.of(file), (*tree.flags(file), *defined))
        for file in tree.c_files()
    ]
