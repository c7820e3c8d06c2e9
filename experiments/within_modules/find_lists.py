"""Chooses lists for the search within modules, by functions for training.

    python experiments/within_modules/find_lists.py -o lists.json
    python experiments/within_modules/compare_lists.py --beside lists.json

Candidates are the coresets of single functions and drawn lists; in a second round, joins of those that were
chosen first and changes of those that are best alone. Each is run on the sample's functions for training,
after the initial pipeline. The usual list, which functions have that have none of their own, leaves the
fewest bytes of all; the others follow by greedy cover, each with the share that it saves in addition. The
file names the functions from which it was made, those of the coresets included, by one hash.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np
from compare_lists import Floats, costs_on

from planish.core import content_hash
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.modules.space import Lists, Passes, drawn_list, shipped_lists, within_modules
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.train.background import HELD_OUT
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row
from planish.train.cost_tables import read_costs
from planish.train.labeling.choice import greedy_cover

OBJECTIVE = "text_bytes"
SIZE, DRAWN, JOINED, CHANGED, CHANGES = 24, 72, 6, 8, 10
"""Lists that are chosen, and drawn; of how many each two are joined; how many are changed, how often each."""
KEPT, MOST_MORE = 0.8, 2
LABELS = Path(__file__).parents[1] / "labels"


def training() -> list[Row]:
    """Return the functions on which lists are run."""
    return [row for row in read_corpus() if row.split == "train" and row.package not in HELD_OUT]


def identities() -> list[str]:
    """Return the hashes of these functions, and of those by which the coresets were chosen."""
    tables = (read_costs(LABELS / name) for name in ("joined-lists.npz", "functions.npz"))
    known = (identity for table in tables for identity in table.split("train").identities.tolist())
    return sorted({*known, *(row.identity for row in training())})


def first_candidates(known: Lists) -> Iterator[Passes]:
    """Yield -Oz's own simplification of a function, the coresets, and drawn lists."""
    yield known.simplify
    for name in ("instructions", OBJECTIVE):
        yield from map(within_modules, load_coreset(name))
    yield from (drawn_list(Random(number)) for number in range(DRAWN))


def more_candidates(known: Lists, lists: Sequence[Passes], costs: Floats) -> Iterator[Passes]:
    """Yield joins of the lists that are chosen first, and changes of those that are best alone."""
    chosen = [passes for passes, _ in ordered(lists, costs)][:JOINED]
    yield from ((*one, *other) for one in chosen for other in chosen)
    random = Random(0)
    for index in costs.sum(axis=0).argsort(kind="stable")[:CHANGED]:
        for _ in range(CHANGES):
            passes = [text for text in lists[index] if random.random() < KEPT]
            for _ in range(random.randint(0, MOST_MORE)):
                passes.insert(random.randint(0, len(passes)), random.choice([*known.more, *known.simplify]))
            yield tuple(passes)


def ordered(lists: Sequence[Passes], costs: Floats) -> list[tuple[Passes, float]]:
    """Return the usual list, then others by greedy cover, each with the share that it saves in addition."""
    usual = int(costs.sum(axis=0).argmin())
    least = costs[:, usual].copy()
    whole, found = least.sum(), [(lists[usual], 1e-5)]
    for index in greedy_cover(costs, least, SIZE):
        before, least = least.sum(), np.minimum(least, costs[:, index])
        found.append((lists[index], round(float((before - least.sum()) / whole), 6)))
    return found


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("-o", "--output", type=Path, required=True)
    asked = given.parse_args()
    known, rows = shipped_lists(), training()
    lists = [*dict.fromkeys(filter(None, first_candidates(known)))]
    costs = costs_on(rows, lists, OBJECTIVE)
    more = [*dict.fromkeys(each for each in more_candidates(known, lists, costs) if each not in {*lists, ()})]
    # The first list says which functions are measured at all, so it is the same in both rounds.
    costs = np.concatenate([costs, costs_on(rows, [lists[0], *more], OBJECTIVE)[:, 1:]], axis=1)
    lists += more
    first = ordered(lists, costs)
    about = {
        "llvm": open_bindings().version,
        "learned": content_hash("\n".join(identities())),
        "simplify": known.simplify,
        "more": known.more,
        "first": [{"passes": passes, "saves": saves} for passes, saves in first],
    }
    asked.output.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    whole, usual = costs[:, 0].sum(), costs[:, lists.index(first[0][0])].sum()
    least = costs[:, [lists.index(passes) for passes, _ in first]].min(axis=1).sum()
    print(f"{len(rows)} functions, {len(lists)} lists. Over -Oz's own simplification,")
    print(f"the usual list saves {1 - usual / whole:.2%}, all {len(first)} {1 - least / whole:.2%}.")


if __name__ == "__main__":
    main()
