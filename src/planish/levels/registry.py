"""Finding the level of a program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from planish.core import (
    Candidate,
    Level,
    Program,
    ProgramError,
    register_file,
    registry,
)

GROUP = "planish.levels"
OF_TENSORS = "loops"
"""The level that is asked first where a source begins with a tensor, so that no other is loaded."""
_TENSOR = re.compile(r"\s*\w+\[")


def level_named(name: str) -> Level:
    """Load a level.

    Raises:
        PlanishError: there is none of this name, or another package's cannot be used.
    """
    factory = registry.load(GROUP, name)
    with registry.attributed(GROUP, name):
        return cast("Level", factory())


def level_of(source: str) -> Level:
    """Find the level that a source belongs to: a file's path, or a program's text.

    Raises:
        ProgramError: no installed level reads it.
    """
    names = registry.names(GROUP)
    broken: list[str] = []
    # One after the other: to import a level takes up to 0.1 s.
    first = OF_TENSORS if _TENSOR.match(source) else ""
    for name in sorted(names, key=lambda name: name != first):
        try:
            level = level_named(name)
            with registry.attributed(GROUP, name):
                if level.accepts(source):
                    return level
        except registry.PluginError as error:  # another level may read it
            broken.append(error.message)
    with suppress(OSError):  # a text may be too long for a path
        if Path(source).is_dir():
            raise ProgramError(f"'{source}' is a folder", "Name a file.")
        if Path(source).suffix and not Path(source).exists():
            raise ProgramError(f"there is no file '{source}'", "Check the path.")
    if "->" in source:
        example = "Write C[m,n] += A[m,k] * B[k,n] (docs/reference/notation.md), or call planish.einsum."
        raise ProgramError(f"'{source}' is in the notation of einsum", example)
    unusable = "".join(f" Not usable: {message}." for message in broken)
    hint = f'Name one: settings=Settings(level="NAME"); installed: {", ".join(names)}.{unusable}'
    raise ProgramError(f"no level reads '{source}'", hint)


def name_files(level: Level, paths: Iterable[Path]) -> None:
    """Let stored programs of a level have these files, wherever their content is asked for.

    Args:
        level: says how a file is named by its content.
        paths: files or folders that the user named.

    Raises:
        PlanishError: one cannot be read, or the level has no use for files.
    """
    for path in paths:
        register_file(level.digest(path), path)


def load_program(source: str, level: str, options: Mapping[str, str]) -> tuple[Level, Program]:
    """Read a program, with the level of this name, or, if it is empty, with the one that accepts it."""
    if not source.strip():
        raise ProgramError("the program is empty", "Give a program's text, or the path of a file.")
    found = level_named(level) if level else level_of(source)
    return found, found.load(source, options)


def first_exportable(level: Level, candidates: Sequence[Candidate]) -> Candidate:
    """Return the first candidate that can be exported; the very first where none can, whose export then
    raises.

    Args:
        level: theirs.
        candidates: at least one, the best first.
    """
    return next((each for each in candidates if level.exportable(each)), candidates[0])
