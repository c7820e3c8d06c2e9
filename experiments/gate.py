"""What the gate saves on functions of packages that it has not learnt from, beside lists in a fixed order.

    python experiments/gate.py [--table FILE ...] [--learnt FILE ...] [--gate FILE] [--beside FILE]

Costs are those of the tables: nothing is run. A column spends so many evaluations on average, -Oz itself not
counted; -Oz stands behind all of them. Intervals of the difference are bootstrapped over packages. No package
and no function is judged by that `--learnt` has for training.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gate_model import EvaluationShares, Gate, kept_gate, load_gate
from planish.core import PlanishError
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.train.cost_tables import CostTable, join_tables, read_costs

EVALUATIONS = (1, 2, 3, 5, 10, 20)
LABELS = Path(__file__).parent / "labels" / "functions.npz"
TABLES = {"instructions": LABELS.with_name("joined-lists.npz"), "text_bytes": LABELS}
"""What the kept gates learnt from and are judged by."""
DRAWS = 2000
Spent = Sequence[NDArray[np.floating]]
"""What is saved on each function, by how much was spent."""


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--table", type=Path, nargs="+", help="what is judged by; else the kept gate's")
    given.add_argument("--learnt", type=Path, nargs="+", help="what it learnt from; else the kept gate's")
    given.add_argument("--gate", type=Path, help="a file; else those that are kept")
    given.add_argument("--beside", type=Path, help="a gate to compare it with, for the same objective")
    asked = given.parse_args()
    for gate in [load_gate(asked.gate)] if asked.gate else map(kept_gate, TABLES):
        usual = [TABLES[gate.objective]]
        learnt = joined(asked.learnt or usual, gate.objective).split("train")
        beside = {str(asked.beside): load_gate(asked.beside)} if asked.beside else {}
        wanted = [passes for each in (gate, *beside.values()) for passes in each.lists]
        held = held_back(joined(asked.table or usual, gate.objective, wanted), learnt)
        show(gate, held, len(learnt), beside)


def joined(files: Sequence[Path], objective: str, wanted: Sequence[tuple[str, ...]] = ()) -> CostTable:
    """Join those of the tables that have the objective, by the lists that all have.

    Where these lack one that is wanted, by those that are wanted and the coreset's: functions of which the
    costs of all are known count then.
    """
    tables = {str(file): read_costs(file) for file in files}
    have = {name: table for name, table in tables.items() if objective in table.columns.objectives} or tables
    common = set.intersection(*({*table.columns.lists} for table in have.values()))
    lists = None if {*wanted} <= common else [*dict.fromkeys((*wanted, *load_coreset(objective)))]
    return join_tables(have, objective, lists, described=True)


def held_back(table: CostTable, learnt: CostTable) -> CostTable:
    """Give functions of packages for validation and test, less those that were learnt from elsewhere."""
    kept = {name for name, split in table.splits.items() if split in ("validation", "test")}
    if both := kept & set(learnt.packages.tolist()):
        raise PlanishError(f"{', '.join(sorted(both))} was learnt from", "Leave it out of one of the tables.")
    held = table.take(np.isin(table.packages, [*kept]) & ~np.isin(table.identities, learnt.identities))
    if not len(held):
        raise PlanishError("the tables hold no function back", "Name others: --table FILE.")
    return held


def show(gate: Gate, held: CostTable, learnt: int, others: Mapping[str, Gate]) -> None:
    objective, baseline = gate.objective, held.baseline[:, 0]
    gains = expected(gate, held)
    best = held.saved(objective).max(axis=1)
    packages = len(set(held.packages.tolist()))
    print(
        f"## {objective}: {len(held):,} functions of {packages} packages, learnt from {learnt:,} of others; "
        f"LLVM {held.columns.llvm}\n\n"
        f"{(best > 0).mean():.0%} can be improved; whether one can is predicted with AUC "
        f"{auc(gains.sum(axis=1), best > 0):.3f}. The best list of each function, found by an oracle, saves "
        f"{best.sum() / baseline.sum():.2%}.\n"
    )
    print(f"| % saved over -Oz, evaluations a function | {' | '.join(map(str, EVALUATIONS))} |")
    print("|---" * (len(EVALUATIONS) + 1) + "|")
    coreset = static(matrix(held, objective, coreset_of(held, objective)))
    saved = matrix(held, objective, gate.lists)
    gated = spend(gains, saved)
    order = np.random.default_rng(0).permuted(held.saved(objective), axis=1)
    beside = {
        name: spend(expected(other, held), matrix(held, objective, other.lists))
        for name, other in others.items()
    }
    shown = {
        "lists in random order": static(order),
        "coreset, in its order": coreset,
        "the gate's lists, in their order": static(saved),
        "the gate": gated,
        **beside,
    }
    for name, spent in shown.items():
        row(name, [f"{each.sum() / baseline.sum():.2%}" for each in spent])
    for name, other in {"the coreset": coreset, **beside}.items():
        pairs = zip(gated, other, strict=True)
        row(f"the gate less {name}", [interval(a - b, baseline, held.packages) for a, b in pairs])
    print()


def expected(gate: Gate, held: CostTable) -> NDArray[np.float32]:
    gate.require(held.columns.features, held.columns.version)
    return gate.gains(held.features, held.unoptimized[:, 0], held.baseline[:, 0])


def row(name: str, cells: Sequence[str]) -> None:
    print(f"| {name} | {' | '.join(cells)} |")


def coreset_of(held: CostTable, objective: str) -> Sequence[tuple[str, ...]]:
    """Give the coreset that the table has the lists of: the shipped one, or the one before."""
    lists = load_coreset(objective)
    if set(lists) <= {*held.columns.lists}:
        return lists
    # Its columns are that coreset, in its order.
    return read_costs(LABELS.with_name("instructions.npz")).columns.lists


def matrix(held: CostTable, objective: str, lists: Sequence[tuple[str, ...]]) -> NDArray[np.int32]:
    if lacks := {*lists} - {*held.columns.lists}:
        raise PlanishError(
            f"the tables lack {len(lacks)} of {len(lists)} lists", "Name others: --table FILE."
        )
    return held.saved(objective)[:, [held.columns.lists.index(passes) for passes in lists]]


def static(saved: NDArray[np.int32], evaluations: Sequence[int] = EVALUATIONS) -> Spent:
    best = np.maximum.accumulate(saved, axis=1)
    return [best[:, min(k, best.shape[1]) - 1] for k in evaluations]


def spend(gains: NDArray[np.float32], saved: NDArray[np.int32]) -> Spent:
    """Let the gate spend all, as on one module."""
    allocation, after = EvaluationShares(gains), list[NDArray[np.floating]]()
    for done in range(1, max(EVALUATIONS) * len(saved) + 1):
        if (given := allocation.next()) is not None:
            allocation.tell(given[0], saved[given])
        if done % len(saved) == 0 and done // len(saved) in EVALUATIONS:
            after.append(allocation.saved.copy())
    return after


def auc(score: NDArray[np.floating], improved: NDArray[np.bool_]) -> float:
    """Give how often a function that can be improved has a higher score than one that cannot."""
    ranks = np.empty(len(score))
    ranks[score.argsort()] = np.arange(1, len(score) + 1)
    yes, no = improved.sum(), (~improved).sum()
    return float((ranks[improved].sum() - yes * (yes + 1) / 2) / (yes * no))


def interval(more: NDArray[np.floating], baseline: NDArray[np.int32], packages: NDArray[np.str_]) -> str:
    """Give the 95 % interval of a difference, in points."""
    places = np.unique(packages, return_inverse=True)[1]
    saved, whole = np.bincount(places, more), np.bincount(places, baseline)
    picks = np.random.default_rng(0).integers(len(saved), size=(DRAWS, len(saved)))
    low, high = np.percentile(100 * saved[picks].sum(axis=1) / whole[picks].sum(axis=1), (2.5, 97.5))
    return f"{low:+.2f} to {high:+.2f}"


if __name__ == "__main__":
    try:
        main()
    except PlanishError as error:
        raise SystemExit(f"gate.py: error: {error}") from error
