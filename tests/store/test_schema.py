"""Schemas: the old ones are brought up to date, newer and strange ones are refused."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from planish.core import StoreError
from planish.store import open_store, upgrade
from planish.store.location import locate
from planish.store.schema import SCHEMA, metadata
from planish.testing.stored import STEPS, make_trial
from planish.testing.stores import begin
from store.old_data import DATA, FINALISTS, TASK, TRIALS, write
from store.servers import administer

NEXT = """
from alembic import op
import sqlalchemy as sa

revision = "9998"
down_revision = "{schema}"

def upgrade():
    op.add_column("trials", sa.Column("mood", sa.Text, server_default="calm"))
    {then}
"""

OLD = sorted(DATA.glob("store-*.db"))


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(DATA / f"store-{SCHEMA}.db", tmp_path / "planish.db"))


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make this a later planish with one more migration, which ends with a statement."""

    def make(then: str) -> None:
        migrations = tmp_path / "migrations"
        shutil.copytree(upgrade.MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
        (migrations / "versions" / "9998_mood.py").write_text(NEXT.format(schema=SCHEMA, then=then))
        monkeypatch.setattr(upgrade, "MIGRATIONS", migrations)
        monkeypatch.setattr(upgrade, "SCHEMA", "9998")

    return make


def _execute(file: Path, statement: str) -> list[tuple[str]]:
    connection = sqlite3.connect(file, isolation_level=None)
    rows = connection.execute(statement).fetchall()
    connection.close()
    return rows


def _holds_the_old_data(place: str | Path) -> None:
    with open_store(place) as store:
        second, first = sorted(store.runs(), key=lambda run: run.trials)
        assert (first.status, second.status) == ("finished", "interrupted")
        assert (first.searcher, first.options, first.seconds) == ("genetic", {"width": 3}, {"search": 0.5})
        assert store.run_trials(first.id, STEPS) == TRIALS
        assert store.result_rows(first.id, STEPS) == [replace(f, run_id=first.id) for f in FINALISTS]
        assert store.task(first.task_key).bind(TASK.program) == TASK
        assert store.best_results(TASK, STEPS)[0] == replace(FINALISTS[0], run_id=first.id)
        store.resume_run(second.id)
        store.add_trials(second.id, [make_trial(1)])
        assert len(store.run_trials(second.id, STEPS)) == 2


def test_every_schema_has_a_database_that_was_made_by_it(tmp_path: Path) -> None:
    versions = {path.name[:4] for path in (upgrade.MIGRATIONS / "versions").glob("*.py")}
    assert {path.stem.removeprefix("store-") for path in OLD} == versions
    assert max(versions) == SCHEMA
    for path in OLD:
        copy = Path(shutil.copy(path, tmp_path))
        assert _execute(copy, "SELECT version_num FROM planish_version") == [(path.stem[-4:],)]


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_a_store_of_an_old_schema_keeps_all_that_it_holds(path: Path, tmp_path: Path) -> None:
    _holds_the_old_data(shutil.copy(path, tmp_path / "planish.db"))


@pytest.mark.parametrize("made", ["at once", "by migrations"])
def test_both_ways_make_the_schema(place: str, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if made == "by migrations":
        monkeypatch.setattr(upgrade, "create", upgrade.migrate)
    open_store(place).close()
    target = locate(place)
    engine = create_engine(f"sqlite:///{target}" if isinstance(target, Path) else target, poolclass=NullPool)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": "planish_version", "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []


def test_the_next_schema_keeps_what_is_stored(place: str, release: Callable[[str], None]) -> None:
    write(place)
    release("pass")
    with pytest.raises(StoreError, match=f"has the old schema {SCHEMA}"):
        open_store(place, read_only=True)
    _holds_the_old_data(place)
    open_store(place, read_only=True).close()


def test_an_upgrade_that_fails_changes_nothing(place: str, release: Callable[[str], None]) -> None:
    write(place)
    release("raise ArithmeticError('no mood')")
    with pytest.raises(ArithmeticError, match="no mood"):
        open_store(place)
    target = locate(place)
    query = "SELECT * FROM trials WHERE mood = 'calm'"
    if isinstance(target, Path):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            _execute(target, query)
        assert _execute(target, "SELECT version_num FROM planish_version") == [(SCHEMA,)]
    else:
        with pytest.raises(Exception, match="does not exist"):
            administer(target, query)
        assert administer(target, "SELECT version_num FROM planish_version") == [(SCHEMA,)]


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_of_a_newer_schema_is_refused_and_left_alone(old: Path, read_only: bool) -> None:
    _execute(old, "UPDATE planish_version SET version_num = '9999'")
    before = old.read_bytes()
    with pytest.raises(StoreError, match=f"schema 9999, newer than {SCHEMA}") as caught:
        open_store(old, read_only=read_only)
    assert "pip install --upgrade" in caught.value.hint
    assert old.read_bytes() == before


def test_a_database_of_something_else_is_refused(place: str) -> None:
    target = locate(place)
    if isinstance(target, Path):
        _execute(target, "CREATE TABLE recipes (name TEXT)")
    else:
        administer(target, "CREATE TABLE recipes (name TEXT)")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="holds other tables: recipes"):
            open_store(place, read_only=read_only)


def test_an_empty_database_cannot_be_read(postgres: str) -> None:
    with pytest.raises(StoreError, match="is empty"):
        open_store(postgres, read_only=True)


def test_opening_imports_only_what_it_needs(old: Path) -> None:
    program = (
        "import sys; from planish.store import open_store; open_store(sys.argv[1]).close(); "
        "assert not {'alembic', 'psycopg', 'sqlalchemy.dialects.postgresql', 'numpy'} & set(sys.modules)"
    )
    begun = subprocess.run([sys.executable, "-c", program, str(old)], check=False)
    assert begun.returncode == 0
    with open_store(old) as store:
        begin(store)
