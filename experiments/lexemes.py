"""Counts the lexemes of functions whose row in a table of costs is older than that column.

    python experiments/lexemes.py CORPUS TABLE ...

Functions that the corpus lacks stay uncounted. Nothing else of a table changes.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.ir.attributes import for_size
from planish.sandbox.fork_pool import Watchdog, forked
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row
from planish.train.cost_tables import UNCOUNTED, read_costs, write_costs
from planish.train.labeling.tabling import count_lexemes, small_text

_JOBS = 2
OZ = ("default<Oz>",)


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("tables", type=Path, nargs="+")
    asked = given.parse_args()
    for path in asked.tables:
        table = read_costs(path)
        unknown = table.lexemes[:, 0] == UNCOUNTED
        found = counted(asked.corpus, set(table.identities[unknown].tolist()))
        rows = [
            found.get(name, known)
            for name, known in zip(table.identities.tolist(), table.lexemes.tolist(), strict=True)
        ]
        write_costs(replace(table, lexemes=np.array(rows, np.int32)), path)
        print(f"{path}: {len(found):,} of {int(unknown.sum()):,} functions counted")


def counted(corpus: Path, identities: Collection[str]) -> Mapping[str, tuple[int, int]]:
    """Count the lexemes of functions, before and after -Oz."""
    rows = [row for row in read_corpus(corpus) if row.identity in identities]
    found: dict[str, tuple[int, int]] = {}
    for done in forked(rows, counts, tuple[int, int], _JOBS):
        if done.answer:
            found[done.item.identity] = done.answer
    return found


def counts(row: Row, watchdog: Watchdog) -> tuple[int, int]:
    """Count those of one function."""
    watchdog.enter("-Oz")
    with closing(open_bindings().parse(for_size(row.ir))) as module:
        return count_lexemes(row.ir, small_text(module, OZ))


if __name__ == "__main__":
    main()
