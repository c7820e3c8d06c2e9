"""Trials of matmuls and convolutions that are in none of the tests and experiments, for the shipped model.

    python experiments/autotvm/collect.py [--store build/autotvm.db] [--programs 240] [--trials 160]

It goes on where it was stopped, as `planish learn` does, which has other programs. The model is fitted by
`planish models fit --level loops --store build/autotvm.db`.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

from planish.levels.loops.level import LoopsLevel
from planish.store import open_store
from planish.train.background import LOOPS
from planish.train.cost_models import SHIPPED, random_programs
from planish.tuning.batch import record_programs


def main() -> None:
    """Read the command line, and record."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--store", type=Path, default=Path("build/autotvm.db"))
    given.add_argument("--programs", type=int, default=240)
    given.add_argument("--first", type=int, default=0, help="so many are passed over")
    given.add_argument("--trials", type=int, default=160)
    asked = given.parse_args()
    programs = islice(random_programs(SHIPPED), asked.first, asked.programs)
    with open_store(asked.store) as store:
        for one in record_programs(LoopsLevel(), programs, LOOPS, asked.trials, store):
            print(one.programs, one.trials, one.program.text, flush=True)


if __name__ == "__main__":
    main()
