"""What the shipped coreset saves beside the one before it, and what its lists take.

    python experiments/coresets.py [--corpus DIR --functions 200]

Costs are those of a table that has the lists of both (`planish corpus costs --widen`): nothing is run. Lists
are taken in their order; -Oz stands behind all, and its own evaluation is not counted. Intervals of the
difference are bootstrapped over packages. With a corpus, some of its functions for validation are run
through both: processor time of a list on a function, parsing and counting apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np

from gate import interval, matrix, row, static
from planish.corpus import read_corpus
from planish.learn.cost_table import CostTable, read_costs
from planish.llvm.backend import open_backend
from planish.llvm.functions.attributes import for_size
from planish.llvm.passes import load_coreset, print_pipeline

EVALUATIONS = (1, 2, 3, 5, 10, 20, 40)
LABELS = Path(__file__).parent / "labels"
TABLE, BEFORE = LABELS / "joined-lists.npz", LABELS / "instructions.npz"
OBJECTIVE = "instructions"
Lists = Sequence[tuple[str, ...]]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--corpus", type=Path)
    given.add_argument("--functions", type=int, default=200)
    asked = given.parse_args()
    # The columns of the older table are the older coreset, in its order.
    before, after = read_costs(BEFORE).columns.lists, load_coreset(OBJECTIVE)
    table = read_costs(TABLE)
    for split in ("train", "validation", "test"):
        show(split, table.split(split), before, after)
    if asked.corpus:
        show_times(asked.corpus, asked.functions, before, after)


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


def show_times(corpus: Path, functions: int, before: Lists, after: Lists) -> None:
    backend, rows = open_backend(), list(read_corpus(corpus, "validation"))
    texts = [each.ir for each in islice(rows, 0, None, max(1, len(rows) // functions))]
    print(f"| milliseconds of a list, over {len(texts)} functions | the first | first five | all |")
    print("|---|---|---|---|")
    for name, lists in (("the coreset before", before), ("the coreset", after)):
        spent = np.zeros((len(lists), len(texts)))
        for at, text in enumerate(texts):
            with closing(backend.parse(for_size(text))) as module:
                for place, passes in enumerate(lists):
                    with closing(module.clone()) as copy:
                        start = time.process_time()
                        copy.run(print_pipeline(passes))
                        spent[place, at] = 1e3 * (time.process_time() - start)
        means = [spent[:count].mean() for count in (1, 5, len(lists))]
        row(name, [f"{each:.2f}" for each in means])


if __name__ == "__main__":
    main()
