"""Reading a corpus."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from planish.core import PlanishError, unknown
from planish.corpus.card import read_card
from planish.corpus.row import SPLITS, Row
from planish.corpus.shards import DATA, Table, arrow, read_table

SAMPLE = Path(__file__).parent / "sample" / "functions.jsonl.gz"


def read_corpus(path: Path | str = SAMPLE, split: str | None = None) -> Iterator[Row]:
    """Read the functions of a corpus, by package and file.

    Args:
        path: the folder that `planish corpus build` made, or a file of JSON lines compressed by gzip;
            the default is the sample that comes with planish, and needs no pyarrow.
        split: "train", "validation", "test" or "csmith"; None reads all.

    Yields:
        One function at a time; memory holds those of one package.

    Raises:
        PlanishError: there is no corpus, it is not finished or damaged, or the split is unknown.
    """
    if split is not None and split not in SPLITS:
        raise unknown("unknown split", split, SPLITS)
    path = Path(path)
    if path.is_file():
        yield from (row for row in _read_lines(path) if split in (None, row.split))
        return
    for shard in shards_of(path, split):
        yield from (Row(**row) for row in read_table(shard).to_pylist())


def read_arrow(path: Path | str, split: str | None = None, columns: list[str] | None = None) -> Table:
    """Read a corpus, or some of its columns, as one Arrow table; arguments as of `read_corpus`."""
    return arrow().concat_tables([read_table(shard, columns) for shard in shards_of(Path(path), split)])


def shards_of(folder: Path, split: str | None = None) -> list[Path]:
    """List the shards of a finished corpus: by split, then by package.

    Raises:
        PlanishError: there is no corpus, or it is not finished.
    """
    read_card(folder)
    wanted = SPLITS if split is None else (split,)
    return [shard for name in wanted for shard in sorted((folder / DATA / name).glob("*.parquet"))]


def _read_lines(path: Path) -> Iterator[Row]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield Row(**json.loads(line))
    except (OSError, EOFError, zlib.error, ValueError, TypeError) as error:
        what = f"{path} is no corpus: {error}"
        raise PlanishError(what, "Name a corpus's folder, or a .jsonl.gz file of functions.") from error
