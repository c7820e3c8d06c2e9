"""Functions drawn in turns from all packages."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from fnmatch import fnmatch
from pathlib import Path

from planish.corpus.corpus_reader import read_corpus
from planish.corpus.row import Row


def draw_in_turns(
    corpus: Path, splits: Sequence[str], count: int, known: Set[str], without: Sequence[str] = ()
) -> tuple[list[Row], int]:
    """Draw functions in turns from all packages, those of a package by a hash of their identity.

    However few of them are taken, all packages and sizes have their share; and more of them begin with the
    same ones.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        splits: what of it.
        count: so many, known ones too; 0: all.
        known: identities that are not given again.
        without: files that are left out, as patterns of PACKAGE/PATH: copies of programs to be held back.

    Returns:
        The functions that are not known, in the order of drawing, and how many of those drawn are known.
    """
    packages: dict[str, list[tuple[str, str]]] = defaultdict(list)
    # The corpus is read twice: what is drawn is held, and what is not would be much more.
    for row in _rows(corpus, splits, without):
        share = hashlib.sha256(row.identity.encode()).hexdigest()
        packages[row.package].append((share, row.identity))
    turns = [(turn, *each) for some in packages.values() for turn, each in enumerate(sorted(some))]
    drawn = [identity for _, _, identity in sorted(turns)][: count or None]
    places = {identity: place for place, identity in enumerate(drawn) if identity not in known}
    rows = [row for row in _rows(corpus, splits, without) if row.identity in places]
    return sorted(rows, key=lambda row: places[row.identity]), len(drawn) - len(places)


def _rows(corpus: Path, splits: Sequence[str], without: Sequence[str]) -> Iterator[Row]:
    for split in splits:
        for row in read_corpus(corpus, split):
            if not any(fnmatch(f"{row.package}/{row.file}", pattern) for pattern in without):
                yield row
