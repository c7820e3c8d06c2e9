"""What the lists of the search within modules save on functions that nothing has learnt from.

    python experiments/within_modules/compare_lists.py [--objective instructions] [--beside FILE ...]
    python experiments/within_modules/compare_lists.py --corpus FILE [--split validation] --beside FILE

Functions are of packages that no list and no policy was made from (those of the sample), each by itself after
the initial pipeline. The table has what is saved over -Oz's own simplification of a function after each
number of lists, the usual one first: of the shipped lists, and of files as `find_lists.py` writes them. Those
take turns with the coreset, except for a target's, which are an order of their own. With a split, functions
are of all its other packages. The second table has the packages by themselves.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planish.core import content_hash
from planish.levels.llvm.bindings.c_module import CModule
from planish.levels.llvm.bindings.protocol import IRError, PassError
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.modules.function_costs import FunctionCosts
from planish.levels.llvm.modules.space import Passes, in_turns, shipped_lists
from planish.levels.llvm.modules.transform import begin, initial_pipeline, single, whole_bindings
from planish.levels.llvm.passes.catalogue import drop_unsafe_passes
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.sandbox.fork_pool import Watchdog, forked
from planish.train.background import HELD_OUT
from planish.train.corpus.reader import SAMPLE, read_corpus
from planish.train.corpus.shards import SPLITS, Row

OBJECTIVES = ("text_bytes", "instructions")
COUNTS = 1, 2, 3, 4, 6, 8, 12, 16, 24, 48
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Listed:
    """Runs lists on functions.

    Args:
        lists: the first is -Oz's own.
        objective: what is counted.
    """

    lists: Sequence[Passes]
    objective: str

    def __call__(self, row: Row, watchdog: Watchdog) -> list[int | None] | None:
        """Return what a function costs after each list; None where LLVM cannot read it."""
        del watchdog
        bindings, ir, costs = whole_bindings(), for_size(row.ir), FunctionCosts(self.objective)

        def cost(module: CModule, passes: Passes) -> int | None:
            found = costs.try_list(module, print_pipeline(drop_unsafe_passes(passes, ir)))
            return None if found is None else sum(found.values())

        with suppress(IRError, PassError), closing(single(bindings.parse(ir))) as module:
            begin(module, (), initial_pipeline(bindings))
            return [cost(module, passes) for passes in self.lists]
        return None


def costs_on(
    rows: Sequence[Row], lists: Sequence[Passes], objective: str, state: Path | None = None
) -> tuple[Floats, list[str]]:
    """Return what functions cost after each list, infinite where it failed, and the package of each.

    Functions that fail after the first list are left out.

    Args:
        rows, lists, objective: the functions, the lists, and what is counted.
        state: a file of costs, which is continued; None: all are measured.
    """
    about = content_hash(json.dumps([lists, objective]))
    known: dict[str, list[int | None] | None] = {}
    for line in state.read_text(encoding="utf-8").splitlines() if state and state.exists() else ():
        stored = json.loads(line)
        if stored["lists"] == about:
            known[stored["identity"]] = stored["costs"]
    left = [row for row in rows if row.identity not in known]
    for each in forked(left, Listed(lists, objective), list[int | None] | None, 1, at_once=5):
        known[each.item.identity] = each.answer
        if state:
            with state.open("a", encoding="utf-8") as file:
                line = {"lists": about, "identity": each.item.identity, "costs": each.answer}
                file.write(json.dumps(line) + "\n")
    found = [(row.package, costs) for row in rows if (costs := known[row.identity]) and costs[0]]
    table = [[np.inf if cost is None else cost for cost in costs] for _, costs in found]
    return np.array(table), [package for package, _ in found]


def lists_of(file: Path) -> list[Passes]:
    """Read the lists of a file, by turns with the coreset, as the search has them; a target's as they are."""
    data = json.loads(file.read_text(encoding="utf-8"))
    first = [(tuple(each["passes"]), each["saves"]) for each in data["first"]]
    return [passes for passes, _ in (in_turns(first) if "simplify" in data else first)]


def saved(costs: Floats, order: Sequence[int]) -> Iterator[float]:
    """Yield the share that is saved after each number of lists."""
    best = np.minimum.accumulate(costs[:, order], axis=1).sum(axis=0)
    yield from (1 - float(best[min(count, len(order)) - 1] / costs[:, 0].sum()) for count in COUNTS)


def main() -> None:
    """Print the tables."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--objective", choices=OBJECTIVES, default=OBJECTIVES[0])
    given.add_argument("--functions", type=int, default=250)
    given.add_argument("--beside", type=Path, nargs="+", default=())
    given.add_argument("--corpus", type=Path, default=SAMPLE)
    given.add_argument("--split", choices=SPLITS)
    given.add_argument("--state", type=Path, help="file of costs: the same command continues from there")
    asked = given.parse_args()
    orders = {"shipped": [passes for passes, _ in in_turns(shipped_lists().first)]}
    orders |= {str(file): lists_of(file) for file in asked.beside}
    lists = [
        *dict.fromkeys([shipped_lists().simplify, *(each for order in orders.values() for each in order)])
    ]
    held = list(read_corpus(asked.corpus, asked.split))
    rows = [row for row in held if (row.package in HELD_OUT) == (asked.split is None)]
    rows = random.Random(0).sample(rows, min(asked.functions, len(rows)))
    costs, packages = costs_on(rows, lists, asked.objective, asked.state)
    print(f"{len(costs):,} functions, by {asked.objective}\n")
    print(f"| lists | {' | '.join(map(str, COUNTS))} |\n|---{'|--:' * len(COUNTS)}|")
    for package in ("", *sorted({*packages})):
        chosen = costs[[package in ("", each) for each in packages]]
        for name, order in orders.items():
            shares = saved(chosen, [lists.index(passes) for passes in order])
            label = f"{package} {name}".strip()
            print(f"| {label} | {' | '.join(f'{share:.2%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
