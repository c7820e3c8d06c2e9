"""Whether the search within a module would save more if it asked a model where lists are worth running.

    python experiments/within_modules/gate.py [--table experiments/labels/modules.npz]

Replays the search from the table, one package after the other as one module, by what each list takes: a
function's instructions and a constant. Lists are the shipped ones, which the search tries on parts of a
module. `as it is` has the largest functions in the first part; the others have first what a model expects to
save most for its time: trees that learnt from all other packages how much of each function can be saved, or
an oracle that knows it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planish.levels.llvm.modules.space import shipped_lists
from planish.models.cost_model import Dataset
from planish.train.cost_tables import CostTable, read_costs

sys.path.insert(0, str(Path(__file__).parents[1]))

from gate_model import describe_functions
from grown_trees import GrownTrees

TIMES = (0.25, 0.5, 1, 2, 4, 8, 16, 24)
"""Budgets: how often the time that one list takes on all functions."""
_OVERHEAD, _MOST, _FEWEST = 20.0, 150, 60
Numbers = NDArray[np.floating]


@dataclass(frozen=True)
class Package:
    """The functions of a package.

    Args:
        saved: (n, lists), by each list over the one that all functions have.
        took: (n,), instructions and the constant.
        size: what they cost.
    """

    saved: NDArray[np.int32]
    took: Numbers
    size: int

    def parts(self, worth: Numbers, largest: int) -> list[NDArray[np.intp]]:
        """Cut it into parts, what is worth most first."""
        parts, size = [list[int]()], 0.0
        for place in np.argsort(-worth):
            if parts[-1] and (len(parts[-1]) == _MOST or size + self.took[place] > largest):
                parts.append([])
                size = 0.0
            parts[-1].append(int(place))
            size += self.took[place]
        return [np.array(part) for part in parts]

    def replay(
        self, parts: Sequence[NDArray[np.intp]], worth: Callable[[NDArray[np.intp]], float]
    ) -> Numbers:
        """Give what is saved by each time, with each list worth what it usually saves."""
        shares = [share for _, share in shipped_lists().first[1:]]
        jobs = [(share * worth(part), part, place) for place, share in enumerate(shares) for part in parts]
        jobs.sort(key=lambda job: -job[0])
        best, spent = np.zeros(len(self.took)), 0.0
        after = np.zeros(len(TIMES))
        for _, part, place in jobs:
            spent += float(self.took[part].sum())
            best[part] = np.maximum(best[part], self.saved[part, place])
            after[np.array(TIMES) * self.took.sum() >= spent] = best.sum()
        return after


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--table", type=Path, default=Path("experiments/labels/modules.npz"))
    table = read_costs(given.parse_args().table)
    sums: dict[str, Numbers] = {}
    whole, shown = 0, list[str]()
    for name in sorted(table.splits):
        of_it = table.packages == name
        if of_it.sum() >= _FEWEST:
            package, found = replayed(table, of_it)
            shown.append(f"{name} ({of_it.sum():,})")
            whole += package.size
            for way, saved in found.items():
                sums[way] = sums.get(way, 0) + saved
    print(f"Functions of {', '.join(shown)}; % of the bytes of .text that are saved.\n")
    print(f"| times that all functions have a list | {' | '.join(map(str, TIMES))} |")
    print(f"|---{'|--:' * len(TIMES)}|")
    for way, saved in sums.items():
        print(f"| {way} | {' | '.join(f'{100 * each / whole:.2f}' for each in saved)} |")


def replayed(table: CostTable, of_it: NDArray[np.bool_]) -> tuple[Package, dict[str, Numbers]]:
    """Replay the search on a package in each way."""
    lists = [table.columns.lists.index(passes) for passes, _ in shipped_lists().first[1:]]
    saved, size = table.saved("text_bytes")[:, lists], table.baseline[:, 0]
    count = table.features[:, 0, table.columns.features.index("TotalInsts")]
    asked = describe_functions(table.columns.features, table.features, table.unoptimized, table.baseline)
    model = GrownTrees(rounds=100, depth=3)
    model.fit(
        Dataset(asked[~of_it], (saved.max(axis=1) / np.maximum(size, 1)).astype(np.float32)[~of_it, None])
    )
    package = Package(saved[of_it], count[of_it] + _OVERHEAD, int(size[of_it].sum()))
    expected = {
        "a model": np.maximum(model.predict(asked[of_it]).mean[:, 0], 0) * size[of_it],
        "an oracle": package.saved.max(axis=1).astype(float),
    }
    found = {"as it is": package.replay(package.parts(package.took, 5000), lambda part: _mean(package, part))}
    found["as it is, smaller parts"] = package.replay(
        package.parts(package.took, 2000), lambda part: _mean(package, part)
    )
    for way, promise in expected.items():
        parts = package.parts(promise / package.took, 2000)
        found[way] = package.replay(
            parts, lambda part, promise=promise: float(promise[part].sum() / package.took[part].sum())
        )
    return package, found


def _mean(package: Package, part: NDArray[np.intp]) -> float:
    """Tell how much of the time for a part goes into its code, as the search does."""
    return 1 - _OVERHEAD / float(package.took[part].mean())


if __name__ == "__main__":
    main()
