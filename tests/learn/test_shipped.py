"""The tables of costs in the repository, and the gates that were learnt from them."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from planish.corpus import split_of
from planish.learn.cost import EvaluationShares, shipped_gate
from planish.learn.cost_table import CostTable, read_costs
from planish.llvm.features.autophase import FEATURES, VERSION
from planish.llvm.passes import load_coreset, print_pipeline

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


def test_a_gate_fits_this_planish(table: CostTable, objective: str) -> None:
    gate = shipped_gate(objective)
    assert len((files("planish.learn.cost") / f"gate-{objective}.npz").read_bytes()) < 500_000
    assert (gate.objective, gate.names) == (objective, FEATURES)
    gate.require(table.columns.features, table.columns.version)
    gate.require(FEATURES, VERSION)
    for passes in gate.lists:
        assert print_pipeline(passes)


@pytest.mark.parametrize("evaluations", [1, 5, 10])
def test_a_gate_saves_more_than_the_coreset_on_packages_that_it_has_not_seen(
    table: CostTable, objective: str, evaluations: int
) -> None:
    kept = [name for name, split in table.splits.items() if split != "train"]
    held, gate = table.take(np.isin(table.packages, kept)), shipped_gate(objective)
    column = table.columns.objectives.index(objective)
    saved = held.saved(objective)
    coreset = [table.columns.lists.index(passes) for passes in load_coreset(objective)[:evaluations]]
    places = [table.columns.lists.index(passes) for passes in gate.lists]

    allocation = EvaluationShares(
        gate.gains(held.features, held.unoptimised[:, column], held.baseline[:, column])
    )
    for _ in range(evaluations * len(held)):
        if (given := allocation.next()) is not None:
            function, place = given
            allocation.tell(function, saved[function, places[place]])

    assert allocation.saved.sum() > 1.03 * saved[:, coreset].max(axis=1).sum()
