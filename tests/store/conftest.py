"""A real PostgreSQL server: the one that PLANISH_TEST_POSTGRES names, else one started for the tests."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

from store.servers import as_text, installed, make_schema, new_cluster, new_database


@pytest.fixture(scope="session")
def server() -> Generator[URL]:
    """Return the URL of a PostgreSQL server where databases may be made."""
    if given := os.environ.get("PLANISH_TEST_POSTGRES"):
        yield make_url(given).set(drivername="postgresql+psycopg")
        return
    programs = installed()
    if programs is None:
        reason = "PostgreSQL is not installed: apt-get install postgresql"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with new_cluster(programs) as cluster:
        yield cluster.url


@pytest.fixture
def postgres(server: URL) -> str:
    """Return the URL of a new, empty schema: a database of its own to a store, but made faster."""
    return as_text(make_schema(server))


@pytest.fixture
def database(server: URL) -> Generator[URL]:
    """Return the URL of a new, empty database on a server that is ours."""
    if os.environ.get("PLANISH_TEST_POSTGRES"):
        pytest.skip("the server is not ours")
    with new_database(server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the location of a new store, of each kind in turn."""
    return str(tmp_path / "planish.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
