"""What the shipped coreset saves beside the one before it, and what its lists take.

    python experiments/coresets.py [--corpus DIR --functions 200] [--output FILE]

Costs are those of a table that has the lists of both (`planish corpus costs --widen`): nothing is run. Lists
are taken in their order; -Oz stands behind all, and its own evaluation is not counted. Intervals of the
difference are bootstrapped over packages. With a corpus, some of its functions for validation are run
through both: processor time of a list on a function, parsing and counting apart. With an
output, the coreset is chosen anew: the table's lists that save most for their effort on training functions.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gate import interval, matrix, row, static
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.passes.catalogue import load_coreset
from planish.levels.llvm.passes.pipeline import print_pipeline
from planish.train.corpus.reader import read_corpus
from planish.train.cost_tables import CostTable, read_costs
from planish.train.labeling.choice import lists_of_table

EVALUATIONS = (1, 2, 3, 5, 10, 20, 40)
LABELS = Path(__file__).parent / "labels"
TABLE, BEFORE = LABELS / "joined-lists.npz", LABELS / "instructions.npz"
OBJECTIVE, SIZE = "instructions", 40
MILLISECONDS = (1, 2, 4, 8, 12, 20, 30)
Lists = Sequence[tuple[str, ...]]
Coresets = Mapping[str, Lists]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--corpus", type=Path)
    given.add_argument("--functions", type=int, default=200)
    given.add_argument("--output", type=Path)
    asked = given.parse_args()
    # The columns of the older table are the older coreset, in its order.
    before, after = read_costs(BEFORE).columns.lists, load_coreset(OBJECTIVE)
    table = read_costs(TABLE)
    if asked.output:
        after = write_coreset(table, asked.output)
    for split in ("train", "validation", "test"):
        show(split, table.split(split), before, after)
    if asked.corpus:
        coresets = {"the coreset before": before, "the coreset": after}
        show_times(asked.corpus, asked.functions, table.split("validation"), coresets)


def write_coreset(table: CostTable, file: Path) -> Lists:
    lists = lists_of_table(table.split("train"), OBJECTIVE, SIZE, by_effort=True)
    about = {"llvm": table.columns.llvm, "objective": OBJECTIVE, "lists": lists}
    file.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return lists


def show(split: str, table: CostTable, before: Lists, after: Lists) -> None:
    baseline = table.baseline[:, 0]
    print(f"## {split}: {len(table):,} functions of {len(set(table.packages.tolist()))} packages\n")
    print(f"| % saved over -Oz, evaluations a function | {' | '.join(map(str, EVALUATIONS))} |")
    print("|---" * (len(EVALUATIONS) + 1) + "|")
    older, newer = (static(matrix(table, OBJECTIVE, lists), EVALUATIONS) for lists in (before, after))
    for name, spent in (("the coreset before", older), ("the coreset", newer)):
        row(name, [f"{each.sum() / baseline.sum():.2%}" for each in spent])
    pairs = zip(newer, older, strict=True)
    row("difference", [interval(a - b, baseline, table.packages) for a, b in pairs])
    print()


def show_times(corpus: Path, functions: int, table: CostTable, coresets: Coresets) -> None:
    rows = list(read_corpus(corpus, "validation"))
    texts = [each.ir for each in islice(rows, 0, None, max(1, len(rows) // functions))]
    baseline = table.baseline[:, 0].sum()
    print(f"A list's milliseconds are a mean over {len(texts)} functions for validation.\n")
    print(f"| % saved over -Oz, milliseconds a function | {' | '.join(map(str, MILLISECONDS))} |")
    print("|---" * (len(MILLISECONDS) + 1) + "|")
    for name, lists in coresets.items():
        saved = [
            0.0,
            *(each.sum() for each in static(matrix(table, OBJECTIVE, lists), range(1, len(lists) + 1))),
        ]
        taken = np.cumsum(times(lists, texts))
        row(name, [f"{saved[int((taken <= most).sum())] / baseline:.2%}" for most in MILLISECONDS])


def times(lists: Lists, texts: Sequence[str]) -> NDArray[np.float64]:
    """Measure the processor time of each list on a function, in milliseconds."""
    bindings, spent = open_bindings(), np.zeros((len(lists), len(texts)))
    for at, text in enumerate(texts):
        with closing(bindings.parse(for_size(text))) as module:
            for place, passes in enumerate(lists):
                with closing(module.clone()) as copy:
                    start = time.process_time()
                    copy.run(print_pipeline(passes))
                    spent[place, at] = 1e3 * (time.process_time() - start)
    return spent.mean(axis=1)


if __name__ == "__main__":
    main()
