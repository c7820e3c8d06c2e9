"""Each function once in the whole corpus, whatever the order in which packages were done."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from planish.corpus.manifest import PackageEntry
from planish.corpus.row import split_of
from planish.corpus.shards import DATA, RAW, Table, arrow, read_table, write_table


def deduplicate(folder: Path, entries: Sequence[PackageEntry]) -> None:
    """Write the shards of each split anew from the packages' own.

    The first package that has a function keeps it, and is told how many other places have it.

    Args:
        folder: the corpus.
        entries: what is done, in the order in which packages keep functions.

    Raises:
        OSError: the disk is full.
    """
    places = _places(folder, entries)
    shutil.rmtree(folder / DATA, ignore_errors=True)
    seen: set[str] = set()
    for entry in entries:
        table = _first_ones(read_table(_raw(folder, entry)), places, seen)
        write_table(table, folder / DATA / split_of(entry.kind, entry.package) / f"{entry.key}.parquet")


def _raw(folder: Path, entry: PackageEntry) -> Path:
    return folder / RAW / f"{entry.key}.parquet"


def _places(folder: Path, entries: Sequence[PackageEntry]) -> Counter[str]:
    """Count how many places have each function."""
    places: Counter[str] = Counter()
    for entry in entries:
        table = read_table(_raw(folder, entry), ["identity", "duplicates"])
        for name, more in zip(table["identity"].to_pylist(), table["duplicates"].to_pylist(), strict=True):
            places[name] += 1 + more
    return places


def _first_ones(table: Table, places: Counter[str], seen: set[str]) -> Table:
    names: list[str] = table["identity"].to_pylist()
    fresh = [name not in seen for name in names]
    seen.update(names)
    kept = table.filter(arrow().array(fresh, arrow().bool_()))
    counts = [places[name] - 1 for name, is_fresh in zip(names, fresh, strict=True) if is_fresh]
    column = kept.schema.get_field_index("duplicates")
    return kept.set_column(column, kept.schema.field(column), arrow().array(counts, arrow().int32()))
