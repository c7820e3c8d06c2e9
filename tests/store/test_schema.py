"""The schema of a store: created whole or not at all; another one, and other databases, are refused."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Column, MetaData, Table, Text

from planish.core import StoreError
from planish.store import open_store, opening
from planish.store.opening import locate
from planish.store.schema import SCHEMA
from planish.testing.stores import begin
from store.servers import administer


def _execute(place: str, statement: str) -> None:
    target = locate(place)
    if not isinstance(target, Path):
        administer(target, statement)
        return
    connection = sqlite3.connect(target, isolation_level=None)
    connection.execute(statement)
    connection.close()


def test_a_store_that_cannot_be_created_is_left_empty(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(opening, "schema_version", Table("missing", MetaData(), Column("version_num", Text)))
        with pytest.raises(StoreError):
            open_store(place)
    with pytest.raises(StoreError, match="is empty"):
        open_store(place, read_only=True)
    with open_store(place) as store:
        begin(store)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("version", "hint"), [(SCHEMA + 1, "pip install --upgrade"), (SCHEMA - 1, "name another with --store")]
)
def test_a_store_of_another_schema_is_refused_and_left_alone(
    tmp_path: Path, version: int, hint: str, read_only: bool
) -> None:
    place = tmp_path / "planish.db"
    open_store(place).close()
    _execute(str(place), f"UPDATE planish_version SET version_num = '{version}'")
    before = place.read_bytes()
    with pytest.raises(
        StoreError, match=f"has the schema {version}, and this planish reads and writes {SCHEMA}"
    ) as caught:
        open_store(place, read_only=read_only)
    assert hint in caught.value.hint
    assert "\n" not in f"{caught.value}{caught.value.hint}"
    assert place.read_bytes() == before


def test_a_database_of_something_else_is_refused(place: str) -> None:
    _execute(place, "CREATE TABLE recipes (name TEXT)")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="holds other tables: recipes"):
            open_store(place, read_only=read_only)


def test_an_empty_database_cannot_be_read(postgres: str) -> None:
    with pytest.raises(StoreError, match="is empty"):
        open_store(postgres, read_only=True)


def test_opening_imports_only_what_it_needs(tmp_path: Path) -> None:
    program = (
        "import sys; from planish.store import open_store; open_store(sys.argv[1]).close(); "
        "assert not {'psycopg', 'sqlalchemy.dialects.postgresql', 'numpy'} & set(sys.modules)"
    )
    begun = subprocess.run([sys.executable, "-c", program, str(tmp_path / "planish.db")], check=False)
    assert begun.returncode == 0
