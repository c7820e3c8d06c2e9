"""Both databases pass the suite of stores, and return any trial as it was stored."""

from collections.abc import Generator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import URL

from amounts import examples
from planish.core import STAGES, Candidate, Failed, Measured, Trial
from planish.store import ResultRow, Store, open_store
from planish.testing.stores import STEPS, StoreConformance, Tile, begin, make_task
from store.servers import as_text, make_schema


class _Conformance(StoreConformance):
    location: str | Path

    def open(self, *, read_only: bool = False) -> Store:
        return open_store(self.location, read_only=read_only)

    def result_row(self, candidate: Candidate, ratio: float, data: Mapping[str, Any]) -> ResultRow:
        return ResultRow(candidate, ratio, data)


class TestSQLite(_Conformance):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.location = tmp_path / "planish.db"


class TestPostgreSQL(_Conformance):
    @pytest.fixture(autouse=True)
    def _database(self, postgres: str) -> None:
        self.location = postgres


ANY = st.text(st.characters())  # surrogates and control characters too
PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
INTEGERS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)

FACTORS = st.lists(INTEGERS, max_size=4).map(tuple)

tiles = st.builds(Tile, ANY, FACTORS, FLOATS, st.booleans(), st.none() | ANY)
measured = st.builds(
    Measured,
    st.dictionaries(ANY, st.floats(allow_nan=False), max_size=3),
    st.dictionaries(ANY, st.lists(FLOATS, max_size=4).map(tuple), max_size=2),
    st.dictionaries(ANY, FLOATS, max_size=2),
)
failed = st.builds(Failed, st.sampled_from(STAGES), ANY, ANY)
trials = st.builds(
    Trial,
    st.lists(tiles, max_size=4).map(lambda steps: Candidate(tuple(steps))),
    measured | failed,
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.dictionaries(ANY, FLOATS, max_size=3),
    PLAIN,
    FLOATS,
    st.booleans(),
)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Store]:
    location: str | Path = tmp_path_factory.mktemp("any") / "planish.db"
    if request.param == "postgres":
        server: URL = request.getfixturevalue("server")
        location = as_text(make_schema(server))
    with open_store(location) as store:
        yield store


RUNS = count()


@given(st.lists(trials, max_size=4, unique_by=lambda trial: trial.index))
@example([Trial(Candidate(), Measured({}), time=-0.0)])
@settings(max_examples=examples(50))
def test_any_trial_comes_back_as_it_was(store: Store, added: list[Trial]) -> None:
    task = make_task(f"any {next(RUNS)}")
    run_id = begin(store, task)
    store.add_trials(run_id, added)
    assert store.run_trials(run_id, STEPS) == sorted(added, key=lambda trial: trial.index)
    known = {trial.candidate.hash: trial for trial in added if not trial.cached}
    assert store.known(task.key, [trial.candidate for trial in added]) == known
    store.finish_run(run_id)
