"""Labels in Parquet files, one for each so many functions of the corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from planish.core import PlanishError
from planish.corpus.labelling.label import Label
from planish.corpus.shards import arrow, read_table, write_table

LABELS = "labels"


def label_schema() -> Any:
    """Give the columns of a shard: the fields of `Label`."""
    pa = arrow()
    kinds: dict[str, Any] = {"int": pa.int32(), "str": pa.string(), "tuple[str, ...]": pa.list_(pa.string())}
    return pa.schema([(field.name, kinds[str(field.type)]) for field in fields(Label)])


def write_labels(labels: Sequence[Label], path: Path) -> None:
    """Write a shard such that it is there as a whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    columns = {field.name: [getattr(label, field.name) for label in labels] for field in fields(Label)}
    write_table(arrow().table(columns, schema=label_schema()), path)


def read_shard(path: Path) -> list[Label]:
    """Read one shard."""
    return [_label(row) for row in read_table(path).to_pylist()]


def read_labels(folder: Path | str) -> Iterator[Label]:
    """Read the labels of a corpus that `planish corpus label` made, in the corpus's order.

    Raises:
        PlanishError: there are none.
    """
    shards = sorted((Path(folder) / LABELS).glob("*.parquet"))
    if not shards:
        raise PlanishError(f"{folder} holds no labels", "Make them: planish corpus label CORPUS DIR.")
    for shard in shards:
        yield from read_shard(shard)


def _label(row: dict[str, Any]) -> Label:
    held: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in row.items()}
    return Label(**held)
