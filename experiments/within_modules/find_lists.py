"""Chooses lists for the search within modules, by functions for training.

    python experiments/within_modules/find_lists.py -o lists.json
    python experiments/within_modules/compare_lists.py --beside lists.json
    python experiments/within_modules/find_lists.py --corpus thumb.jsonl.gz -o thumb.json

Candidates are the coresets of single functions and drawn lists; in a second round, joins of those that were
chosen first and changes of those that are best alone. Each is run on the sample's functions for training,
after the initial pipeline. The usual list, which functions have that have none of their own, leaves the
fewest bytes of all; the others follow by greedy cover, each with the share that it saves in addition. The
file names the functions from which it was made, those of the coresets included, by one hash.

With a corpus of a target's functions (`target_functions.py`) the lists are an order for this target: the
usual list stays the shipped one, and the shipped lists are candidates, too.
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
from planish.train.corpus.reader import SAMPLE, read_corpus
from planish.train.corpus.shards import Row
from planish.train.cost_tables import read_costs
from planish.train.labeling.choice import greedy_cover

OBJECTIVE = "text_bytes"
SIZE, DRAWN, JOINED, CHANGED, CHANGES = 24, 72, 6, 8, 10
"""Lists that are chosen, and drawn; of how many each two are joined; how many are changed, how often each."""
KEPT, MOST_MORE = 0.8, 2
LABELS = Path(__file__).parents[1] / "labels"


def training(corpus: Path, functions: int) -> list[Row]:
    """Return the functions on which lists are run, at most so many."""
    rows = [row for row in read_corpus(corpus) if row.split == "train" and row.package not in HELD_OUT]
    return Random(0).sample(rows, min(functions, len(rows)))


def identities(rows: Sequence[Row]) -> list[str]:
    """Return the hashes of these functions, and of those by which the coresets were chosen."""
    tables = (read_costs(LABELS / name) for name in ("joined-lists.npz", "functions.npz"))
    known = (identity for table in tables for identity in table.split("train").identities.tolist())
    return sorted({*known, *(row.identity for row in rows)})


def first_candidates(known: Lists, *, with_shipped: bool) -> Iterator[Passes]:
    """Yield -Oz's own simplification of a function, the coresets, and drawn lists."""
    yield known.simplify
    if with_shipped:
        yield from (passes for passes, _ in known.first)
    for name in ("instructions", OBJECTIVE):
        yield from map(within_modules, load_coreset(name))
    yield from (drawn_list(Random(number)) for number in range(DRAWN))


def more_candidates(known: Lists, lists: Sequence[Passes], costs: Floats) -> Iterator[Passes]:
    """Yield joins of the lists that are chosen first, and changes of those that are best alone."""
    chosen = [passes for passes, _ in ordered(lists, costs, None)][:JOINED]
    yield from ((*one, *other) for one in chosen for other in chosen)
    random = Random(0)
    for index in costs.sum(axis=0).argsort(kind="stable")[:CHANGED]:
        for _ in range(CHANGES):
            passes = [text for text in lists[index] if random.random() < KEPT]
            for _ in range(random.randint(0, MOST_MORE)):
                passes.insert(random.randint(0, len(passes)), random.choice([*known.more, *known.simplify]))
            yield tuple(passes)


def ordered(lists: Sequence[Passes], costs: Floats, usual: Passes | None) -> list[tuple[Passes, float]]:
    """Return the usual list, then others by greedy cover, each with the share that it saves in addition.

    Args:
        lists, costs: of the candidates.
        usual: the usual list; None: the one that leaves the fewest bytes.
    """
    first = int(costs.sum(axis=0).argmin()) if usual is None else lists.index(usual)
    least = costs[:, first].copy()
    whole, found = least.sum(), [(lists[first], 1e-5)]
    for index in greedy_cover(costs, least, SIZE):
        before, least = least.sum(), np.minimum(least, costs[:, index])
        found.append((lists[index], round(float((before - least.sum()) / whole), 6)))
    return found


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("-o", "--output", type=Path, required=True)
    given.add_argument("--corpus", type=Path, help="of a target's functions; else the sample of planish")
    given.add_argument("--functions", type=int, default=1_000_000, help="at most")
    given.add_argument("--state", type=Path, help="file of costs: the same command continues from there")
    asked = given.parse_args()
    known, rows = shipped_lists(), training(asked.corpus or SAMPLE, asked.functions)
    usual = known.first[0][0] if asked.corpus else None
    lists = [*dict.fromkeys(filter(None, first_candidates(known, with_shipped=asked.corpus is not None)))]
    costs = costs_on(rows, lists, OBJECTIVE, asked.state)[0]
    more = [*dict.fromkeys(each for each in more_candidates(known, lists, costs) if each not in {*lists, ()})]
    # The first list says which functions are measured at all, so it is the same in both rounds.
    costs = np.concatenate(
        [costs, costs_on(rows, [lists[0], *more], OBJECTIVE, asked.state)[0][:, 1:]], axis=1
    )
    lists += more
    first = ordered(lists, costs, usual)
    about = {
        "llvm": open_bindings().version,
        "learned": content_hash("\n".join(identities(rows))),
        **({} if asked.corpus else {"simplify": known.simplify, "more": known.more}),
        "first": [{"passes": passes, "saves": saves} for passes, saves in first],
    }
    asked.output.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    whole, after = costs[:, 0].sum(), costs[:, lists.index(first[0][0])].sum()
    least = costs[:, [lists.index(passes) for passes, _ in first]].min(axis=1).sum()
    print(f"{len(rows)} functions, {len(lists)} lists. Over -Oz's own simplification,")
    print(f"the usual list saves {1 - after / whole:.2%}, all {len(first)} {1 - least / whole:.2%}.")


if __name__ == "__main__":
    main()
