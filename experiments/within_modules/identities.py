"""Names the functions that a target's lists were chosen by, and those that they were compared on, by hash.

    python experiments/within_modules/identities.py thumb thumb.jsonl.gz --functions 400

It writes `experiments/labels/functions-thumb.json`, from which `experiments/held_out.py` shows that none is
in both. It refuses functions that the shipped lists were not chosen by.
"""

from __future__ import annotations

import argparse
import json
from importlib.resources import files
from pathlib import Path
from random import Random

from find_lists import LABELS, identities, training

from planish.core import content_hash
from planish.train.background import HELD_OUT
from planish.train.corpus.reader import read_corpus

COMPARED = {"validation": 150, "test": 40, "held back": 200}
"""Functions on which the lists were compared, by `compare_lists.py`: the split, or packages held back."""


def main() -> None:
    """Write the file."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("target", choices=("thumb", "riscv32"))
    given.add_argument("corpus", type=Path)
    given.add_argument("--functions", type=int, required=True)
    asked = given.parse_args()
    rows = training(asked.corpus, asked.functions)
    shipped = json.loads(
        (files("planish.levels.llvm.modules") / f"lists-{asked.target}.json").read_text(encoding="utf-8")
    )
    if content_hash("\n".join(identities(rows))) != shipped["learned"]:
        raise SystemExit("the shipped lists were chosen by other functions")
    found = {"learned": sorted(row.identity for row in rows)}
    for name, count in COMPARED.items():
        split = None if name == "held back" else name
        held = [
            row for row in read_corpus(asked.corpus, split) if (row.package in HELD_OUT) == (split is None)
        ]
        found[name] = sorted(row.identity for row in Random(0).sample(held, min(count, len(held))))
    path = LABELS / f"functions-{asked.target}.json"
    path.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    print({name: len(each) for name, each in found.items()})


if __name__ == "__main__":
    main()
