"""Functions in Parquet files: first one for each package as found, then without duplicates by split."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from planish.core import PlanishError, TargetError
from planish.core.replacing import replacing
from planish.corpus.row import Row

RAW = "raw"
DATA = "data"
Table = Any  # pyarrow has no types
_GROUP = 4096  # rows that are compressed together


def arrow() -> Any:
    """Import pyarrow.

    Raises:
        TargetError: it is not installed.
    """
    try:
        import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise TargetError("a corpus needs pyarrow", "Try: pip install 'planish[corpus]'.") from error
    return import_module("pyarrow")


def schema() -> Any:
    """Give the columns of a shard: the fields of `Row`."""
    pa = arrow()
    numbers = {"instructions": pa.int32(), "chars": pa.int32(), "duplicates": pa.int32()}
    return pa.schema([(name, numbers.get(name, pa.string())) for name in Row.__slots__])


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write a shard such that it is there as a whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    columns = {name: [getattr(row, name) for row in rows] for name in Row.__slots__}
    write_table(arrow().table(columns, schema=schema()), path)


def write_table(table: Table, path: Path) -> None:
    """Write a table as `write_rows` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part, part.open("wb") as file:
        arrow().parquet.write_table(table, file, compression="zstd", row_group_size=_GROUP)


def read_table(path: Path, columns: Sequence[str] | None = None) -> Table:
    """Read a shard, or some of its columns.

    Raises:
        PlanishError: it is damaged.
    """
    try:
        return arrow().parquet.read_table(path, columns=columns)
    except ValueError as error:
        what = f"{path} is damaged: {error}"
        raise PlanishError(what, "Make it again by the command that made it, in another folder.") from error
