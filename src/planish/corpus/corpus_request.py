"""From what a user names to packages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planish.core import PlanishError, ProgramError, cache_folder
from planish.corpus.apt import open_apt, unknown_packages
from planish.corpus.csmith import csmith_version, find_csmith
from planish.corpus.row import KINDS
from planish.corpus.source import DebianPackage, IRFiles, Package, RandomPrograms, SourceFolder

STANDARD = "standard"
_STANDARD_FILE = Path(__file__).parent / "packages.json"
_BATCH = 250  # random programs that make a package, which is done or not done
_IR_SUFFIXES = (".ll", ".bc")


@dataclass(frozen=True)
class CorpusRequest:
    """What a corpus is to be made of.

    Args:
        debian: source packages that must exist.
        lists: files that name source packages, or "standard"; what does not exist is left out.
        folders: of C files.
        ir: files of LLVM IR, or folders of such.
        csmith: how many random programs; each has about six functions.
        seed: of the first one.
    """

    debian: Sequence[str] = ()
    lists: Sequence[str] = ()
    folders: Sequence[Path] = ()
    ir: Sequence[Path] = ()
    csmith: int = 0
    seed: int = 1


def packages_of(request: CorpusRequest, note: Callable[[str], None]) -> list[Package]:
    """Find all that is asked for.

    Args:
        request: what is asked for.
        note: takes a line for each package of a list that does not exist.

    Raises:
        PlanishError: something does not exist, has the name of another, or nothing is asked for.
    """
    found: list[Package] = [
        *_debian(request, note),
        *(_folder(path) for path in request.folders),
        *_ir(request.ir),
        *_random(request.csmith, request.seed),
    ]
    if not found:
        raise PlanishError(
            "nothing to make a corpus of", f"Name packages, folders or files, or: --debian-list {STANDARD}."
        )
    for first, second in zip(ordered := sorted(found, key=_order), ordered[1:], strict=False):
        if _order(first) == _order(second):
            what = f"two sources are called {first.name}"
            raise PlanishError(what, "Rename one of the folders, or leave it out.")
    return found


def standard_packages() -> dict[str, int]:
    """Read the shipped list of source packages: how many different functions each gave."""
    return _standard()["packages"]


def _standard() -> dict[str, Any]:
    return json.loads(_STANDARD_FILE.read_text())


def _order(package: Package) -> tuple[int, str]:
    return KINDS.index(package.kind), package.name


def _debian(request: CorpusRequest, note: Callable[[str], None]) -> list[Package]:
    listed = [name for named in request.lists for name in _listed(named)]
    wanted = dict.fromkeys([*request.debian, *listed])
    if not wanted:
        return []
    apt = open_apt(cache_folder("apt"))
    unknown = unknown_packages(apt, wanted)
    for name in request.debian:
        if name in unknown:
            raise PlanishError(f"no source package is called '{name}'", unknown[name])
    for name in unknown:
        note(f"{name}: no source package is called so; left out")
    macros = _standard()["macros"]
    return [DebianPackage(name, apt, macros.get(name, ())) for name in wanted if name not in unknown]


def _listed(named: str) -> Iterable[str]:
    """Read a list: names, with comments after `#`."""
    if named == STANDARD:
        return standard_packages()
    try:
        lines = Path(named).read_text().splitlines()
    except OSError as error:
        what = f"the list {named} cannot be read: {error.strerror or error}"
        raise PlanishError(what, f"Name a file, or '{STANDARD}'.") from error
    return [name for line in lines for name in line.partition("#")[0].split()]


def _folder(path: Path) -> SourceFolder:
    if not path.is_dir():
        raise ProgramError(f"{path} is no folder", "Name a folder of C files.")
    return SourceFolder(path.resolve().name, path)


def _ir(paths: Sequence[Path]) -> list[Package]:
    """Make a package of the files of each folder."""
    files: dict[Path, list[Path]] = {}
    for path in paths:
        if not path.exists():
            raise ProgramError(f"{path} does not exist", "Name files of LLVM IR: .ll or .bc.")
        some = sorted(p for p in path.rglob("*") if p.suffix in _IR_SUFFIXES) if path.is_dir() else [path]
        for file in some:
            if file.suffix not in _IR_SUFFIXES:
                raise ProgramError(f"{file} is no LLVM IR", "Name files of LLVM IR: .ll or .bc.")
            files.setdefault((path if path.is_dir() else path.parent).resolve(), []).append(file)
    return [IRFiles(folder.name, some) for folder, some in files.items()]


def _random(count: int, seed: int) -> list[Package]:
    if not count:
        return []
    program, headers = find_csmith()
    version = csmith_version(program)
    made: list[Package] = []
    for first in range(seed, seed + count, _BATCH):
        size = min(_BATCH, seed + count - first)
        made.append(
            RandomPrograms(f"seeds-{first}-{first + size - 1}", program, headers, version, first, size)
        )
    return made
