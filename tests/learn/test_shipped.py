"""The tables of costs in the repository."""

from pathlib import Path

import pytest

from planish.levels.llvm.ir.autophase import FEATURES
from planish.levels.llvm.passes import load_coreset
from planish.train.corpus.shards import split_of
from planish.train.cost_tables import CostTable, read_costs

LABELS = Path(__file__).parents[2] / "experiments" / "labels"
TABLES = {"instructions": "joined-lists.npz", "text_bytes": "functions.npz"}
HELD_BACK = {"lua5.1", "lua5.4", "zlib", "bzip2", "sqlite3", "redis", "cjson", "re2", "fmtlib"}


@pytest.fixture(scope="module", params=TABLES)
def objective(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def table(objective: str) -> CostTable:
    return read_costs(LABELS / TABLES[objective])


def test_tables_are_small() -> None:
    assert sum(file.stat().st_size for file in LABELS.glob("*.npz")) < 6_000_000


def test_a_table_is_of_the_packages_that_may_be_learnt_from(table: CostTable) -> None:
    assert len(set(table.identities.tolist())) == len(table) > 3000
    assert not HELD_BACK & set(table.splits)
    assert table.splits == {package: split_of("debian", package) for package in table.splits}


def test_a_table_has_every_list_of_the_coreset(table: CostTable, objective: str) -> None:
    assert objective in table.columns.objectives
    assert table.columns.features == FEATURES
    assert set(load_coreset(objective)) <= set(table.columns.lists)
