"""The gate: what each list of a coreset may still save on a function, before any is run."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.learn.cost.model import CostModel, Dataset, Floats
from planish.learn.cost.trees import BoostedTrees
from planish.learn.cost_table import CostTable

FORMAT = 1
Passes = tuple[str, ...]
Numbers = NDArray[np.integer] | NDArray[np.floating]
_TOTAL = "TotalInsts"


@dataclass(frozen=True)
class Gate:
    """Predicts what lists save beside those before them, when they are run in their order.

    Args:
        objective: what is made less.
        llvm: whose lists were run.
        lists: in the order in which they are to be run on every function.
        names: of the features of a function.
        objectives: of the costs of a function.
        model: of the share of -Oz's cost that each list saves.
        version: of what the names of the features mean; files without one have the first.
    """

    objective: str
    llvm: str
    lists: tuple[Passes, ...]
    names: tuple[str, ...]
    objectives: tuple[str, ...]
    model: CostModel
    version: int = 1

    def require(self, names: Sequence[str], version: int) -> None:
        """See that it may be asked with features.

        Args:
            names: of the features.
            version: of what they mean.

        Raises:
            PlanishError: it learnt from others.
        """
        if (tuple(names), version) != (self.names, self.version):
            what = f"the gate is for version {self.version} of its features, and these are version {version}"
            if tuple(names) != self.names:
                what = "the gate is for features of other names"
            raise PlanishError(what, "Train one for these: planish corpus costs, planish corpus gate.")

    def gains(self, features: Numbers, unoptimised: Numbers, baseline: Numbers) -> Floats:
        """Expect what each list saves beside those before it, (n, lists), in the objective's unit.

        Args:
            features: (n, 2, names), before and after -Oz.
            unoptimised: (n, objectives), what the functions cost as they are.
            baseline: (n, objectives), after -Oz.
        """
        asked = describe_functions(self.names, features, unoptimised, baseline)
        # The best so far never gets worse by running another list, so less than nothing is the model's error.
        share = np.maximum(self.model.predict(asked).mean, 0)
        return share * baseline[:, [self.objectives.index(self.objective)]].astype(np.float32)


def train_gate(table: CostTable, objective: str, lists: Sequence[Passes], seed: int = 0) -> Gate:
    """Learn from what lists cost on functions.

    Args:
        table: of the functions to learn from.
        objective: what is made less.
        lists: some of the table's, in the order in which they are to be run.
        seed: of all randomness.

    Raises:
        PlanishError: the table has no functions, or lacks a list.
    """
    columns = table.columns
    missing = [passes for passes in lists if passes not in columns.lists]
    if missing or not len(table):
        what = f"the list {','.join(missing[0])}" if missing else "functions to learn from"
        raise PlanishError(f"the table lacks {what}", "Add to it: planish corpus costs CORPUS FILE.")
    # What a list adds to those before it, not what it saves: lists are run in their order, and the best is
    # kept.
    best = np.maximum.accumulate(table.saved(objective)[:, [columns.lists.index(p) for p in lists]], axis=1)
    baseline = table.baseline[:, [columns.objectives.index(objective)]]
    # As shares, so that large functions do not make up the whole error.
    shares = np.diff(best, axis=1, prepend=0) / np.maximum(baseline, 1)
    model = BoostedTrees(seed=seed)
    asked = describe_functions(columns.features, table.features, table.unoptimised, table.baseline)
    model.fit(Dataset(asked, shares.astype(np.float32)))
    about = objective, columns.llvm, tuple(lists), columns.features, columns.objectives
    return Gate(*about, model, columns.version)


def describe_functions(
    names: Sequence[str], features: Numbers, unoptimised: Numbers, baseline: Numbers
) -> Floats:
    """Give what a gate is asked with: features before and after -Oz, their densities after it, and costs."""
    before, after = features[:, 0], features[:, 1]
    total = np.maximum(after[:, [list(names).index(_TOTAL)]], 1)
    left = baseline / np.maximum(unoptimised, 1)
    return np.concatenate(
        [before, after, after / total, unoptimised, baseline, left], axis=1, dtype=np.float32
    )


def write_gate(gate: Gate, path: Path) -> None:
    """Write a gate whose model are trees: an .npz of their arrays, and of `about`, JSON as bytes.

    Raises:
        OSError: it cannot be written.
    """
    assert isinstance(gate.model, BoostedTrees)
    about = {"format": FORMAT, **{name: value for name, value in vars(gate).items() if name != "model"}}
    written = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, about=written, **gate.model.arrays())


def load_gate(path: Path) -> Gate:
    """Read a gate that `write_gate` wrote.

    Raises:
        PlanishError: there is none, it is damaged, or of another format.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            about = json.loads(held["about"].tobytes())
            if about["format"] != FORMAT:
                what = f"{path} has format {about['format']}, and this planish reads {FORMAT}"
                raise PlanishError(what, "Train it anew: planish corpus gate TABLE -o FILE.")
            lists = tuple(tuple(passes) for passes in about["lists"])
            names = tuple(about["names"]), tuple(about["objectives"])
            model, version = BoostedTrees.of(held), int(about.get("version", 1))
            return Gate(about["objective"], about["llvm"], lists, *names, model, version)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        hint = "Train one: planish corpus gate TABLE -o FILE."
        raise PlanishError(f"cannot read a gate from {path}: {error}", hint) from error


def shipped_gate(objective: str) -> Gate:
    """Read the gate that comes with planish for an objective.

    Raises:
        PlanishError: there is none.
    """
    with as_file(files("planish.learn.cost") / f"gate-{objective}.npz") as path:
        return load_gate(path)
