"""A command that links a program of several objects, some of which are exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

OBJECTS, PROGRAM = "\0objects", "\0program"
"""What stands in a command for the objects that are exchanged, and for the program: no word is like them."""


@dataclass(frozen=True)
class LinkCommand:
    """How objects become a program.

    Args:
        compiler: what compiles and links.
        words: what follows; `OBJECTS` and `PROGRAM` stand for them.
        reads: files and folders that linking reads, and running.
    """

    compiler: tuple[str, ...]
    words: tuple[str, ...]
    reads: tuple[str, ...] = ()

    def filled(self, objects: Sequence[Path], program: Path) -> list[str]:
        """Give what follows the compiler to make a program of some objects."""
        given = {OBJECTS: list(map(str, objects)), PROGRAM: [str(program)]}
        return [each for word in self.words for each in given.get(word, [word])]
