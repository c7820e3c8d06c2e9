"""The thesis's figures 4.3 (the data set) and 4.5 (its autotuner's row), on a corpus and its labels.

    python experiments/thesis_ch4/tables.py CORPUS LABELS

The thesis has 1,000,000 training functions of which 610,000 are written by hand, counts Llama 2's tokens,
and reports 5.8 % over -Oz on its training set and 5.03 % on 100,000 test functions, by LLVM 10 and 37,424
compilations a function. Here sizes are in characters, LLVM is a current one, and -Oz is what clang means by
it (`minsize optsize` on every function), which is 1.8 points stronger.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from planish.train.corpus.reader import read_corpus
from planish.train.labeling.label_plan import read_labels
from planish.train.labeling.run import HEADS, cells, read_label_card


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("labels", type=Path)
    arguments = given.parse_args()
    dataset(arguments.corpus, arguments.labels)
    autotuner(arguments.labels)


def dataset(corpus: Path, labels: Path) -> None:
    labeled = {label.identity: label for label in read_labels(labels)}
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0] * 4)
    packages: defaultdict[str, set[str]] = defaultdict(set)
    for row in read_corpus(corpus):
        label = labeled.get(row.identity)
        if label is not None:
            counts = (1, label.unoptimized, label.baseline, row.chars)
            sums[row.split] = [a + b for a, b in zip(sums[row.split], counts, strict=True)]
            packages[row.split].add(row.package)
    print("Figure 4.3: the data set\n")
    print("| split | packages | functions | unoptimized | -Oz | characters |")
    print("|---|---|---|---|---|---|")
    for split, counts in sums.items():
        cells_of = " | ".join(f"{count:,}" for count in counts)
        print(f"| {split} | {len(packages[split]):,} | {cells_of} |")


def autotuner(labels: Path) -> None:
    card = read_label_card(labels)
    each = card["evaluations"] / max(1, card["functions"])
    print(f"\nFigures 4.5 and 4.6: the autotuner, {each:.0f} compilations a function, LLVM {card['llvm']}\n")
    print(f"| split | -Oz backup | {' | '.join(HEADS)} |")
    print("|---" * (len(HEADS) + 2) + "|")
    for row in card["rows"]:
        for kind, key in (("no", "without_backup"), ("yes", "with_backup")):
            print(f"| {row['split']} | {kind} | {' | '.join(cells(row[key]))} |")


if __name__ == "__main__":
    main()
