"""What the page on team stores grants is what a role needs, to write or to read."""

import re
import secrets
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
from sqlalchemy import URL
from sqlalchemy.exc import ProgrammingError

from planish.core import StoreError
from planish.store import ResultRow, open_store
from planish.testing.stored import STEPS, make_candidate, make_trial
from planish.testing.stores import begin
from store.servers import administer, as_text

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "team-store.md"
ROLES = ("owner", "writer", "reader")


def _grants(names: Mapping[str, str]) -> list[str]:
    """Return the statements of the page, with other names of roles."""
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for role, name in names.items():
        block = re.sub(rf"\b{role}\b", name, block)
    return [statement.strip() for statement in block.split(";") if statement.strip()]


@pytest.fixture
def shared(database: URL) -> Generator[Mapping[str, URL]]:
    """Give the URL of a store by role; its owner has made it, and granted what the page says."""
    names = {role: f"{role}_{secrets.token_hex(4)}" for role in ROLES}
    made = [f"CREATE ROLE {name} LOGIN" for name in names.values()]
    administer(database, *made, f"GRANT CREATE ON SCHEMA public TO {names['owner']}")
    urls = {role: database.set(username=name) for role, name in names.items()}
    with open_store(as_text(urls["owner"])) as store:
        store.finish_run(begin(store))
    administer(urls["owner"], *_grants(names))
    yield urls
    administer(database, f"DROP OWNED BY {', '.join(names.values())}")
    administer(database, f"DROP ROLE {', '.join(names.values())}")


def test_a_writer_may_do_all_that_a_search_does(shared: Mapping[str, URL]) -> None:
    with open_store(as_text(shared["writer"])) as store:
        run_id = begin(store)
        wanted = [make_candidate(0), make_candidate(1)]
        assert store.claim(run_id, wanted, 2) == wanted
        store.add_trials(run_id, [make_trial(0), make_trial(1)])
        store.save_result(run_id, [ResultRow(make_candidate(0), 2.0)])
        store.finish_run(run_id, seconds={"run": 1.0})
        assert store.run_trials(run_id, STEPS) == [make_trial(0), make_trial(1)]
        store.delete_run(run_id)


def test_a_reader_reads_and_writes_nothing(shared: Mapping[str, URL]) -> None:
    with open_store(as_text(shared["reader"]), read_only=True) as store:
        (run,) = store.runs()
        assert store.run_trials(run.id, STEPS) == []
    with (
        open_store(as_text(shared["reader"])) as store,
        pytest.raises(StoreError, match="lacks a right") as caught,
    ):
        begin(store)
    assert "Share a store" in caught.value.hint


@pytest.mark.parametrize("role", ["writer", "reader"])
@pytest.mark.parametrize(
    "statement", ["UPDATE planish_version SET version_num = '9999'", "DROP TABLE trials"]
)
def test_neither_may_change_the_tables(shared: Mapping[str, URL], role: str, statement: str) -> None:
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
        administer(shared[role], statement)
