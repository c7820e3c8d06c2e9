"""The gates that are kept beside the tables of costs that they were learnt from."""

from pathlib import Path

import numpy as np
import pytest

from gate_model import EvaluationShares, kept_gate
from planish.levels.llvm.ir.features import FEATURES, VERSION
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.train.cost_tables import CostTable, read_costs

LABELS = Path(__file__).parents[2] / "experiments" / "labels"
TABLES = {"instructions": "joined-lists.npz", "text_bytes": "functions.npz"}


@pytest.fixture(scope="module", params=TABLES)
def objective(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def table(objective: str) -> CostTable:
    return read_costs(LABELS / TABLES[objective])


def test_a_kept_gate_fits_this_planish(table: CostTable, objective: str) -> None:
    gate = kept_gate(objective)
    assert len((LABELS / f"gate-{objective}.npz").read_bytes()) < 500_000
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
    held, gate = table.take(np.isin(table.packages, kept)), kept_gate(objective)
    column = table.columns.objectives.index(objective)
    saved = held.saved(objective)
    coreset = [table.columns.lists.index(passes) for passes in load_coreset(objective)[:evaluations]]
    places = [table.columns.lists.index(passes) for passes in gate.lists]

    allocation = EvaluationShares(
        gate.gains(held.features, held.unoptimized[:, column], held.baseline[:, column])
    )
    for _ in range(evaluations * len(held)):
        if (given := allocation.next()) is not None:
            function, place = given
            allocation.tell(function, saved[function, places[place]])

    assert allocation.saved.sum() > 1.03 * saved[:, coreset].max(axis=1).sum()
