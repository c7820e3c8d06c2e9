"""The gate: a model of what each list of a coreset may still save on a function, before any is run.

    python experiments/gate_model.py TABLE ... -o FILE [--objective text_bytes]

trains one on what `planish corpus costs` made: on the tables' functions for training alone, by the lists that
all tables have, in the order of greedy cover. The same input makes the same file.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grown_trees import GrownTrees
from planish.core import PlanishError
from planish.core.files import DAMAGED, replacing, why
from planish.models.cost_model import Dataset, Floats
from planish.models.trees import BoostedTrees
from planish.train.cost_tables import CostTable, read_joined
from planish.train.labeling.choice import lists_of_table

FORMAT = 2
LISTS = 40
"""At most so many lists."""
FOLDER = Path(__file__).parent / "labels"
_LEAST = 1e-9
"""Where nothing at all is expected of lists, they are still run, after all others."""
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
        model: of the share of -Oz's cost that each list saves.
        version: of what the names of the features mean.
    """

    objective: str
    llvm: str
    lists: tuple[Passes, ...]
    names: tuple[str, ...]
    model: BoostedTrees
    version: int

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
            raise PlanishError(what, "Train one for these: planish corpus costs, gate_model.py.")

    def gains(self, features: Numbers, unoptimized: Numbers, baseline: Numbers) -> Floats:
        """Expect what each list saves beside those before it, (n, lists), in the objective's unit.

        Args:
            features: (n, 2, names), before and after -Oz.
            unoptimized: (n,), what the functions cost as they are, in the objective's unit.
            baseline: (n,), after -Oz.
        """
        asked = describe_functions(self.names, features, unoptimized[:, None], baseline[:, None])
        # The best so far never gets worse by running another list, so less than nothing is the model's error.
        share = np.maximum(self.model.predict(asked).mean, 0)
        return share * baseline[:, None].astype(np.float32)


def train_gate(table: CostTable, objective: str, lists: Sequence[Passes], seed: int = 0) -> Gate:
    """Learn from what lists cost on functions.

    Args:
        table: of the functions to learn from.
        objective: what is made less.
        lists: some of the table's, in the order in which they are to be run.
        seed: of all randomness.

    Raises:
        PlanishError: the table has no functions or no features, or lacks a list.
    """
    columns = table.columns
    lacks = [f"the list {','.join(passes)}" for passes in lists if passes not in columns.lists]
    lacks += ["functions to learn from"] * (not len(table))
    lacks += ["features of functions"] * (_TOTAL not in columns.features)
    if lacks:
        raise PlanishError(f"the table lacks {lacks[0]}", "Add to it: planish corpus costs CORPUS FILE.")
    # What a list adds to those before it, not what it saves: lists are run in their order, and the best is
    # kept.
    best = np.maximum.accumulate(table.saved(objective)[:, [columns.lists.index(p) for p in lists]], axis=1)
    place = columns.objectives.index(objective)
    unoptimized, baseline = table.unoptimized[:, [place]], table.baseline[:, [place]]
    # As shares, so that large functions do not make up the whole error.
    shares = np.diff(best, axis=1, prepend=0) / np.maximum(baseline, 1)
    model = GrownTrees(seed=seed)
    asked = describe_functions(columns.features, table.features, unoptimized, baseline)
    model.fit(Dataset(asked, shares.astype(np.float32)))
    return Gate(objective, columns.llvm, tuple(lists), columns.features, model.trees, columns.version)


def describe_functions(
    names: Sequence[str], features: Numbers, unoptimized: Numbers, baseline: Numbers
) -> Floats:
    """Give what a gate is asked with: features before and after -Oz, their densities after it, and costs.

    Args:
        names: of the features.
        features: (n, 2, names), before and after -Oz.
        unoptimized: (n, objectives).
        baseline: (n, objectives), after -Oz.
    """
    before, after = features[:, 0], features[:, 1]
    total = np.maximum(after[:, [list(names).index(_TOTAL)]], 1)
    left = baseline / np.maximum(unoptimized, 1)
    return np.concatenate(
        [before, after, after / total, unoptimized, baseline, left], axis=1, dtype=np.float32
    )


def write_gate(gate: Gate, path: Path) -> None:
    """Write a gate whose model are trees: an .npz of their arrays, and of `about`, JSON as bytes.

    Raises:
        OSError: it cannot be written.
    """
    about = {"format": FORMAT, **{name: value for name, value in vars(gate).items() if name != "model"}}
    written = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with replacing(path) as part, part.open("wb") as file:
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
                raise PlanishError(what, "Train it anew: gate_model.py TABLE -o FILE.")
            return _gate(about, BoostedTrees.of(held))
    except DAMAGED as error:
        hint = "Train one: gate_model.py TABLE -o FILE."
        raise PlanishError(f"cannot read a gate from {path}: {why(error)}", hint) from error


def _gate(about: Mapping[str, Any], model: BoostedTrees) -> Gate:
    lists, names = tuple(tuple(passes) for passes in about["lists"]), tuple(about["names"])
    none = np.zeros((0, 1), np.int32)
    asked = describe_functions(names, np.zeros((0, 2, len(names)), np.int32), none, none)
    # Trees that do not fit would fail, or read other columns, where the gate is asked.
    if not model.fits(asked.shape[1], len(lists)):
        raise ValueError("its trees do not fit its features and lists")
    return Gate(about["objective"], about["llvm"], lists, names, model, int(about["version"]))


def kept_gate(objective: str) -> Gate:
    """Read the gate for an objective that is kept beside the tables that it learnt from.

    Raises:
        PlanishError: there is none.
    """
    return load_gate(FOLDER / f"gate-{objective}.npz")


class EvaluationShares:
    """Says on which function the next list is worth most.

    On each function lists are run in their order. A function is worth the greatest mean gain of some of its
    next lists, so one that promises little may stand before one that promises much. What was measured
    counts in that the gains expected are those beside the lists that were run. To make a function worth more
    or less by how its saving so far compares with what was expected (by a gamma prior, or by ratios learnt
    for each place) gained nothing on functions of packages that were held back.

    Args:
        gains: (functions, lists), what each list is expected to save beside those before it.

    Attributes:
        saved: the most that was saved on each function.
    """

    def __init__(self, gains: Floats) -> None:
        self._worth = _worth(gains)
        self._next = np.zeros(len(gains), np.intp)
        self.saved = np.zeros(len(gains))
        self._heap: list[tuple[float, int]] = []
        for function in range(len(gains)):
            self._offer(function)

    def next(self) -> tuple[int, int] | None:
        """Give a function, and the place of the list to be run on it; None where all is under way or over.

        The function is not given again until its saving is reported.
        """
        if not self._heap:
            return None
        _, function = heapq.heappop(self._heap)
        return function, int(self._next[function])

    def tell(self, function: int, saved: float) -> None:
        """Tell what the list saved over -Oz on a function that was given; 0 where it failed or costs more."""
        self.saved[function] = max(self.saved[function], saved)
        self._next[function] += 1
        self._offer(function)

    def _offer(self, function: int) -> None:
        place = self._next[function]
        if place < self._worth.shape[1]:
            heapq.heappush(self._heap, (-float(self._worth[function, place]), function))


def _worth(gains: Floats) -> NDArray[np.float64]:
    """Give for each list the greatest mean gain of it and some lists that follow it."""
    count, lists = gains.shape
    sums = np.concatenate([np.zeros((count, 1)), gains.cumsum(axis=1, dtype=np.float64)], axis=1)
    worth = np.zeros((count, lists))
    for place in range(lists):
        # By sums, so that all runs of lists from here on cost one subtraction each.
        means = (sums[:, place + 1 :] - sums[:, [place]]) / np.arange(1, lists - place + 1)
        # The small term orders what has no promise at all: functions that were tried less often come first.
        worth[:, place] = means.max(axis=1) + _LEAST / (1 + place)
    return worth


def main(words: Sequence[str] | None = None) -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("table", type=Path, nargs="+")
    given.add_argument("-o", "--output", type=Path, required=True)
    given.add_argument("--objective", default="instructions")
    given.add_argument("--size", type=int, default=LISTS, help="at most so many lists")
    given.add_argument("--seed", type=int, default=0)
    asked = given.parse_args(words)
    train = read_joined(asked.table, asked.objective, described=True).split("train")
    lists = lists_of_table(train, asked.objective, asked.size)
    write_gate(train_gate(train, asked.objective, lists, asked.seed), asked.output)
    print(f"wrote {asked.output}: {len(lists)} lists, learnt from {len(train):,} functions")


if __name__ == "__main__":
    try:
        main()
    except PlanishError as error:
        raise SystemExit(f"gate_model.py: error: {error}") from error
