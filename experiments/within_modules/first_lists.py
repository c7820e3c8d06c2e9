"""Which lists the search within modules should try first on each function, at equal evaluations.

    python experiments/within_modules/first_lists.py [--objective text_bytes]

On functions of packages that nothing has learnt from (those of the sample), each by itself after the initial
pipeline: what is saved over the usual list after each number of lists, by those for modules alone, and by
turns with the coreset of single functions, as the search has them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from planish.levels.llvm.bindings.c_module import CModule
from planish.levels.llvm.bindings.protocol import IRError, PassError
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.modules.function_costs import FunctionCosts
from planish.levels.llvm.modules.space import coreset_lists, shipped_lists
from planish.levels.llvm.modules.transform import begin, initial_pipeline, single, whole_bindings
from planish.levels.llvm.passes.catalogue import drop_unsafe_passes
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.sandbox.fork_pool import Watchdog, forked
from planish.train.background import HELD_OUT
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row

OBJECTIVES = ("instructions", "text_bytes")
COUNTS = 1, 2, 3, 4, 6, 8, 12, 16, 24
Passes = tuple[str, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Listed:
    """Runs lists on functions.

    Args:
        lists: the first is the usual one.
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


def orders(lists: Sequence[Passes]) -> Iterator[tuple[str, list[int]]]:
    """Yield orders of lists, as their places among all of them."""
    place = {passes: index for index, passes in enumerate(lists)}
    ours, theirs = (
        [place[passes] for passes in each]
        for each in ([passes for passes, _ in shipped_lists().first[1:]], coreset_lists())
    )
    turns = chain.from_iterable(zip(theirs, ours, strict=False))
    yield "those for modules", ours
    yield "by turns with the coreset", [*dict.fromkeys(turns)]


def saved(costs: Floats, order: Sequence[int]) -> Iterator[float]:
    """Yield the share that is saved over the usual list after each number of lists."""
    best = np.minimum.accumulate(costs[:, [0, *order]], axis=1).sum(axis=0)
    yield from (1 - float(best[min(count, len(order))] / best[0]) for count in COUNTS)


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--objective", choices=OBJECTIVES, default=OBJECTIVES[0])
    asked = given.parse_args()
    lists = tuple(dict.fromkeys([*(passes for passes, _ in shipped_lists().first), *coreset_lists()]))
    rows = [row for row in read_corpus() if row.package in HELD_OUT]
    done = forked(rows, Listed(lists, asked.objective), list[int | None] | None, 1, at_once=25)
    found = [each.answer for each in done if each.answer and each.answer[0]]
    costs = np.array([[np.inf if cost is None else cost for cost in each] for each in found])
    print(f"{len(costs):,} functions, by {asked.objective}\n")
    print(f"| lists | {' | '.join(map(str, COUNTS))} |\n|---{'|--:' * len(COUNTS)}|")
    for name, order in orders(lists):
        print(f"| {name} | {' | '.join(f'{share:.2%}' for share in saved(costs, order))} |")


if __name__ == "__main__":
    main()
