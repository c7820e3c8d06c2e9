"""What a policy over pass lists saves on functions of packages that it has not learnt from, beside the gate.

    python experiments/pass_lists.py CORPUS [--table experiments/labels/functions.npz] [--policy FILE]

Costs are those of the table: nothing is run but -Oz, whose code the policy reads. -Oz stands behind all rows.
Functions that the kept gate's table has for training are left out, in whatever package they are.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from gate import EVALUATIONS, LABELS, TABLES, auc, interval, matrix, row, spend, static
from gate_model import kept_gate
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.models.networks import HEADS, ReaderShape, predict_lists
from planish.models.policy_files import SavedPolicy, load_policy, policy_paths
from planish.train.corpus.answers import read_list_dataset
from planish.train.cost_tables import CostTable, read_costs
from planish.train.samples import GAIN


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("--table", type=Path, default=LABELS)
    given.add_argument("--policy", type=Path, default=policy_paths().get("llvm"))
    asked = given.parse_args()
    show(load_policy(asked.policy), asked.corpus, read_costs(asked.table))


def show(policy: SavedPolicy, corpus: Path, table: CostTable) -> None:
    assert isinstance(policy.shape, ReaderShape)
    objective, lists = policy.schema.name.rpartition("/")[2], [tuple(a.split(",")) for a in policy.actions]
    parts = [read_list_dataset(corpus, [table], objective, lists, split) for split in ("validation", "test")]
    names = [name for part in parts for name in part.identities]
    # The gate's lists need not be the policy's: each is judged by a table that has its lists.
    gate, labels = kept_gate(objective), read_costs(TABLES[objective])
    wanted = {*gate.lists, *load_coreset(objective)}
    theirs, learnt_from = table if wanted <= {*table.columns.lists} else labels, labels.split("train")
    here, there = (
        {name: number for number, name in enumerate(one.identities.tolist())} for one in (table, theirs)
    )
    seen = {*learnt_from.identities.tolist()}
    both = [number for number, name in enumerate(names) if name in there and name not in seen]
    held = table.take(np.array([here[names[number]] for number in both]))
    gated_by = theirs.take(np.array([there[names[number]] for number in both]))
    observed = np.concatenate([part.observed for part in parts])[both]
    said = predict_lists(policy.shape, policy.parameters, observed)
    column = held.columns.objectives.index(objective)
    unoptimized, baseline = held.unoptimized[:, column], held.baseline[:, column]
    saved, best = matrix(held, objective, lists), held.saved(objective).max(axis=1)
    coreset = matrix(gated_by, objective, load_coreset(objective))
    trees = gate.gains(held.features, unoptimized, baseline)
    mine = (np.maximum(said[:, 0], 0) * GAIN * baseline[:, None]).astype(np.float32)
    packages, learnt = len(set(held.packages.tolist())), policy.programs
    policy_auc, gates = auc(mine.sum(axis=1), best > 0), auc(trees.sum(axis=1), best > 0)
    print(
        f"## {objective}: {len(held):,} functions of {packages} packages, learnt from {learnt:,} of others\n"
    )
    print(
        f"Whether one can be improved is predicted with AUC {policy_auc:.3f} by the policy, "
        f"{gates:.3f} by the gate.\n"
    )
    print(f"| % saved over -Oz, evaluations a function | {' | '.join(map(str, EVALUATIONS))} |")
    print("|---" * (len(EVALUATIONS) + 1) + "|")
    probable = np.argsort(-said[:, HEADS.index("choice")], axis=1, kind="stable")
    gated, read = spend(trees, matrix(gated_by, objective, gate.lists)), spend(mine, saved)
    shown = {
        "each alike: coreset, in its order": static(coreset),
        "each alike: the policy's lists, the most probable first": static(
            np.take_along_axis(saved, probable, axis=1)
        ),
        "spent over all: the gate": gated,
        "spent over all: the policy": read,
    }
    if tuple(lists) == gate.lists:
        shown["spent over all: the mean of both"] = spend(((mine + trees) / 2).astype(np.float32), saved)
    for name, spent in shown.items():
        row(name, [f"{each.sum() / baseline.sum():.2%}" for each in spent])
    for name, spent in list(shown.items())[3:]:
        pairs = zip(spent, gated, strict=True)
        row(f"{name}, less the gate", [interval(a - b, baseline, held.packages) for a, b in pairs])


if __name__ == "__main__":
    main()
