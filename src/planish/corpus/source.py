"""Where functions come from: each source becomes packages, which are done or not done."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from planish.corpus.apt import Apt
from planish.corpus.includes import SourceTree
from planish.corpus.licence import UNKNOWN, read_licences
from planish.corpus.row import Kind
from planish.corpus.unit import SourceUnit

RANDOM_LICENCE = "CC0-1.0"  # nobody wrote a random program


class Package(Protocol):
    """Something whose functions go into one shard."""

    @property
    def name(self) -> str:
        """Its name in the rows."""
        ...

    @property
    def kind(self) -> Kind:
        """What kind of source it is."""
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
            SourceUnit(f"seed-{seed}.c", None, RANDOM_LICENCE, flags, (self.program, seed)) for seed in seeds
        ]
        return Prepared(self.version, units)


def _c_units(root: Path, stubs: Path, system: Sequence[Path], macros: Sequence[str] = ()) -> list[SourceUnit]:
    tree, licences, defined = SourceTree(root, system, stubs), read_licences(root), [f"-D{m}" for m in macros]
    return [
        SourceUnit(file, root / file, licences.of(file), (*tree.flags(file), *defined))
        for file in tree.c_files()
    ]
