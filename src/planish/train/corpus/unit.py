"""Functions of one source file, extracted in worker processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from planish.core import PlanishError, ProgramError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings, IRError
from planish.levels.llvm.clang import Compiler
from planish.levels.llvm.ir.functions import identity, normalize, split_module
from planish.sandbox.scratch import is_no_room
from planish.train.corpus.programs import random_program

_COMPILE_S = 30.0
_DETAIL = 200


@dataclass(frozen=True)
class SourceUnit:
    """One file, or one random program, that functions come from.

    Args:
        name: its path within the package.
        path: where it is; None for a random program.
        license: its license's short name.
        flags: the compiler's arguments.
        csmith: the program that makes it, and its seed.
    """

    name: str
    path: Path | None
    license: str
    flags: tuple[str, ...] = ()
    csmith: tuple[str, int] | None = None


@dataclass(frozen=True)
class CorpusRecipe:
    """Recipe of functions: how they are made and filtered; rows depend on it and on the sources.

    Args:
        compiler: of C; None where only IR is read.
        max_chars: longer functions are left out.
        alignment: whether the alignment of loads and stores is kept.
        noundef: whether `noundef` is kept.
    """

    compiler: Compiler | None
    max_chars: int
    alignment: bool = True
    noundef: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """One function of a file; the names are those of `Row`."""

    identity: str
    file: str
    function: str
    license: str
    ir: str
    instructions: int


@dataclass
class Crop:
    """Functions that some files gave.

    Args:
        found: the functions, in the order of the files.
        failures: the files that gave nothing, each with the reason.
        left_out: how many functions are left out, by reason.
        files: how many files gave IR.
    """

    found: list[Found] = field(default_factory=list[Found])
    failures: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    left_out: Counter[str] = field(default_factory=Counter[str])
    files: int = 0

    def add(self, other: Crop) -> None:
        """Take what came of further files."""
        self.found += other.found
        self.failures += other.failures
        self.left_out += other.left_out
        self.files += other.files


def harvest(units: Iterable[SourceUnit], recipe: CorpusRecipe) -> Crop:
    """Get the functions of some files. One bad file is a failure of its own, not an end.

    Raises:
        OSError: the disk is full.
    """
    crop = Crop()
    for unit in units:
        try:
            crop.found += _functions(unit, recipe, crop.left_out)
            crop.files += 1
        except PlanishError as error:
            crop.failures.append((unit.name, error.message[-_DETAIL:]))
        except OSError as error:
            if is_no_room(error):
                raise
            crop.failures.append((unit.name, error.strerror or str(error)))
        except Exception as error:  # noqa: BLE001  (any error is this file's failure, and is counted)
            crop.failures.append((unit.name, f"{type(error).__name__}: {error}"[:_DETAIL]))
    return crop


def _text(unit: SourceUnit, recipe: CorpusRecipe) -> str:
    if unit.csmith is not None:
        return _compiled(unit, recipe, random_program(*unit.csmith))
    if unit.path is None:
        raise ProgramError(f"{unit.name} is not a file")
    if unit.path.suffix == ".c":
        return _compiled(unit, recipe, None)
    with closing(_bindings().parse(unit.path.read_bytes(), unit.name)) as module:
        return module.text()


def _compiled(unit: SourceUnit, recipe: CorpusRecipe, source: str | None) -> str:
    if recipe.compiler is None:
        raise ProgramError(f"{unit.name} needs a C compiler")
    path = unit.path or Path(unit.name)
    return recipe.compiler.to_ir(path, unit.flags, source=source, seconds=_COMPILE_S)


def _functions(unit: SourceUnit, recipe: CorpusRecipe, left_out: Counter[str]) -> list[Found]:
    found: list[Found] = []
    for function in split_module(_text(unit, recipe), left_out):
        try:
            ir = normalize(function.text, alignment=recipe.alignment, noundef=recipe.noundef)
            if len(ir) > recipe.max_chars:
                left_out["too long"] += 1
                continue
            with closing(_bindings().parse(ir)) as module:
                count = module.instructions()
        except IRError:
            left_out["unreadable"] += 1
            continue
        found.append(Found(identity(ir), unit.name, function.name, unit.license, ir, count))
    return found


@cache
def _bindings() -> Bindings:
    return open_bindings()
