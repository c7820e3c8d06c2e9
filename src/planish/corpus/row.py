"""One function of a corpus."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

Kind = Literal["debian", "folder", "ir", "csmith"]
Split = Literal["train", "validation", "test", "csmith"]
KINDS: tuple[Kind, ...] = ("debian", "folder", "ir", "csmith")
SPLITS: tuple[Split, ...] = ("train", "validation", "test", "csmith")

_TRAIN, _VALIDATION = 80, 90  # of 100: the rest is for the test


@dataclass(frozen=True, slots=True)
class Row:
    """One function, as a module of its own.

    Args:
        identity: the hash of its IR, whatever its names are.
        package: where it is from: a source package, a folder, a batch of random programs.
        version: the package's.
        file: the path within the package.
        function: its name there.
        licence: the short name of the file's licence (DEP-5); "unknown" where nobody says it.
        kind: of the source.
        split: what it is for; the same for all of a package.
        ir: the normalised text.
        instructions: of the IR as it stands, unoptimised.
        chars: the IR's length in characters.
        duplicates: how many other functions, in this package and others, are the same.
    """

    identity: str
    package: str
    version: str
    file: str
    function: str
    licence: str
    kind: Kind
    split: Split
    ir: str
    instructions: int
    chars: int
    duplicates: int


def split_of(kind: Kind, package: str) -> Split:
    """Say what a package is for: 80 % train, 10 % validate, 10 % test; random programs stay apart.

    It depends on the name alone, so that a package is for the same in every corpus.
    """
    if kind == "csmith":
        return "csmith"
    share = int(hashlib.sha256(package.encode()).hexdigest()[:8], 16) % 100
    return "train" if share < _TRAIN else "validation" if share < _VALIDATION else "test"
