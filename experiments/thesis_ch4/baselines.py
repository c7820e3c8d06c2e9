"""Figures 4.5 and 4.6: the thesis's baselines and more, on functions that nothing has learnt from.

    python experiments/thesis_ch4/baselines.py HELD.npz [--collected OUT.jsonl] [--agent RETURNS.jsonl]

HELD is a table of `planish corpus costs` on held-out packages: costs of the coresets' lists are looked up in
it, and nothing is run. `--collected` is of experiments/thesis_ch6/collect.py, and brings random lists, the
policy's samples and the autotuner; `--agent` is of autophase.py. What is fitted here learns from the training
packages of experiments/labels/functions.npz.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.models.cost_model import Dataset
from planish.train.cost_tables import FAILED, CostTable, read_costs
from planish.train.labeling.run import HEADS, Saving, cells, summarize

sys.path.insert(0, str(Path(__file__).parents[1]))

from gate_model import describe_functions
from grown_trees import GrownTrees

LABELS = Path(__file__).parents[1] / "labels" / "functions.npz"
ORDER = LABELS.with_name("instructions.npz")
OBJECTIVE = "instructions"
PASSES = 45
"""That Coreset-NVP and AutoPhase may run on a function."""
NEIGHBORS = 5
COLLECTED = ("Random", "Greedy", "Nucleus, Temp1.2", "Priority Sampling (PS)", "Autotuner", "AutoPhase")
"""Of what was run, the ways that are shown; thesis_ch6/tables.py shows all."""
COMPILATIONS = (1, 3, 10, 40)
Floats = NDArray[np.floating]
Places = NDArray[np.intp]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("held", type=Path)
    given.add_argument("--labels", type=Path, default=LABELS)
    given.add_argument("--collected", type=Path)
    given.add_argument("--agent", type=Path)
    asked = given.parse_args()
    held, labels = read_costs(asked.held), read_costs(asked.labels).split("train")
    print(f"{len(held):,} functions of {len({*held.packages.tolist()})} packages, LLVM {held.columns.llvm}; ")
    print(f"{len(labels):,} of others to learn from\n")
    print(f"| | -Oz backup | additional compilations | {' | '.join(HEADS)} |")
    print("|---" * (len(HEADS) + 3) + "|")
    # The columns of this table are the coreset that all of them have, in its order.
    for name, order, counts in tabled(labels, held, read_costs(ORDER).columns.lists):
        show(name, *run(held, order, counts))
    for path in filter(None, (asked.collected, asked.agent)):
        wanted = {*held.identities.tolist()}
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        collected([row for row in rows if row["identity"] in wanted])


def tabled(
    labels: CostTable, held: CostTable, chosen: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, Places, NDArray[np.int_]]]:
    """Give ways of choosing lists of the table: a name, which lists in which order, and how many of them.

    Args:
        labels: what is learnt from.
        held: what is judged by; it has the same lists.
        chosen: the coreset, in its order.
    """
    lists = held.columns.lists
    assert lists == labels.columns.lists
    coreset = np.array([lists.index(passes) for passes in chosen])
    for count in COMPILATIONS:
        order = np.tile(coreset, (len(held), 1))
        yield f"static coreset, {count}", order, np.full(len(held), count)
    trees = coreset[np.argsort(-values(labels, held, coreset), axis=1, kind="stable")]
    lengths = np.array([len(passes) for passes in lists])[trees]
    within = np.maximum((lengths.cumsum(axis=1) <= PASSES).sum(axis=1), 1)
    yield f"Coreset-NVP by trees, {PASSES} passes", trees, within
    yield "Coreset-NVP by trees, 1", trees, np.ones(len(held), int)
    near = neighbors(labels, held)
    yield "nearest neighbor's best list", near, np.ones(len(held), int)
    yield f"{NEIGHBORS} neighbors' best lists", near, np.full(len(held), NEIGHBORS)


def values(labels: CostTable, held: CostTable, lists: Places) -> Floats:
    """Predict what each list is worth on each function: what it saves over -Oz, or loses, as a share."""
    baseline, costs = costs_of(labels)
    worth = (baseline[:, None] - costs[:, lists]) / np.maximum(baseline, 1)[:, None]
    model = GrownTrees(seed=0)
    model.fit(Dataset(described(labels), np.maximum(worth, -1).astype(np.float32)))
    return model.predict(described(held)).mean


def neighbors(labels: CostTable, held: CostTable) -> Places:
    """Give the best lists of the nearest training functions, by standardized logarithms of the features."""
    ours, theirs = (np.log1p(np.abs(described(table))) for table in (held, labels))
    mean, scale = theirs.mean(axis=0), theirs.std(axis=0) + 1e-6
    ours, theirs = (ours - mean) / scale, (theirs - mean) / scale
    squares = (ours**2).sum(axis=1)[:, None] - 2 * ours @ theirs.T + (theirs**2).sum(axis=1)
    best = costs_of(labels)[1].argmin(axis=1)
    return best[np.argsort(squares, axis=1, kind="stable")[:, :NEIGHBORS]]


def described(table: CostTable) -> Floats:
    return describe_functions(table.columns.features, table.features, table.unoptimized, table.baseline)


def costs_of(table: CostTable) -> tuple[Floats, Floats]:
    """Give the costs after -Oz, and after each list; where it fails, of the function as it is."""
    place = table.columns.objectives.index(OBJECTIVE)
    costs, as_it_is = table.costs[:, :, place], table.unoptimized[:, place, None]
    baseline = table.baseline[:, place]
    return baseline.astype(float), np.where(costs == FAILED, as_it_is, costs).astype(float)


def run(held: CostTable, order: Places, counts: NDArray[np.int_]) -> tuple[list[Saving], int, int]:
    """Take the best of the first so many lists of each function."""
    baseline, costs = costs_of(held)
    found = np.take_along_axis(costs, order, axis=1)
    found[np.arange(order.shape[1]) >= counts[:, None]] = np.inf
    rows = zip(held.packages.tolist(), baseline, found.min(axis=1), strict=True)
    ran = int(np.minimum(counts, order.shape[1]).sum())
    return [Saving(package, int(before), int(after)) for package, before, after in rows], ran, len(held)


def collected(rows: Sequence[Any]) -> None:
    """Show what was run: functions of HELD alone."""
    if not rows:
        return
    for name, found in rows[0]["ways"].items():
        if name not in COLLECTED:
            continue
        places = {1: 0, 10: 3, 100: 5} if isinstance(found["best"], list) else {}
        places = {1: 0} if name == "Greedy" else places
        for count, place in places.items():
            effects = [Saving(r["package"], r["baseline"], r["ways"][name]["best"][place]) for r in rows]
            show(f"{name}, {count}", effects, sum(r["ways"][name]["unique"][place] for r in rows), len(rows))
        if not places:
            effects = [Saving(r["package"], r["baseline"], r["ways"][name]["best"]) for r in rows]
            # The autotuner begins with -Oz; an agent does not.
            backups = 0 if name == "Autotuner" else len(rows)
            show(name, effects, sum(r["ways"][name]["evaluations"] for r in rows), backups)


def show(name: str, effects: Sequence[Saving], ran: int, backups: int) -> None:
    for kind, more in (("no", 0), ("yes", backups)):
        summary = summarize(effects, backup=kind == "yes")
        columns = cells({**asdict(summary), "overall": summary.overall})
        print(f"| {name} | {kind} | {ran + more:,} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
