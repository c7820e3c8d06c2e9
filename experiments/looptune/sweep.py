"""Which learning rate, discount, exploration, width and depth suit an algorithm (thesis 3.8.1).

    python experiments/looptune/sweep.py [--algorithms dqn ppo] [--draws 8] [--minutes 5] [--programs 40]
        [--seed 0] [--folder build/sweep]

Each draw takes one of `OFFERED` for each, and is trained by `planish policy train` on the same matmuls of the
thesis' part for training, with one store: what one has measured the next ones know. A draw that was
interrupted goes on. Printed are all, the one whose best policy is the fastest on held-back programs first.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from numpy.random import Generator
from rewards import trained, write_programs

from planish.core import rng
from planish.train.reinforcement import ALGORITHMS

OFFERED: Mapping[str, tuple[float, ...]] = {
    "rate": (1e-5, 1e-4, 5e-4, 2e-3),
    "discount": (0.9, 0.95, 0.99, 1.0),
    "exploration": (0.0, 0.01, 0.05, 0.1),
    "width": (64, 256, 1000),
    "depth": (2, 3, 5, 10),
}
"""The thesis' winner has 0.95, a width of 1,000 and a depth of 10, and says nothing of the others' range."""


def drawn(random: Generator) -> dict[str, str]:
    """Draw one of what is offered for each option."""
    return {name: str(values[int(random.integers(len(values)))]) for name, values in OFFERED.items()}


def main() -> None:
    """Train by each, and print."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--algorithms", nargs="+", choices=[*ALGORITHMS], default=["dqn", "ppo"])
    given.add_argument("--draws", type=int, default=8, help="for each algorithm; all have the same")
    given.add_argument("--minutes", type=float, default=5.0, help="for each draw")
    given.add_argument("--programs", type=int, default=40)
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--folder", type=Path, default=Path("build/sweep"))
    asked = given.parse_args()
    write_programs(asked.folder, asked.programs)
    rows = list[tuple[float, list[str]]]()
    for number in range(asked.draws):
        options = drawn(rng(asked.seed, number))
        for algorithm in asked.algorithms:
            name = "-".join((algorithm, *options.values()))
            records = trained(algorithm, asked.minutes, asked.folder, name, options)
            best = max(record.held for record in records)
            rows.append((best, [algorithm, *options.values(), f"{records[-1].steps:,}", f"{best:.3f}"]))
    print(f"| {' | '.join(['algorithm', *OFFERED, 'steps', 'best of held-back programs'])} |")
    print(f"|---|{'--:|' * (len(OFFERED) + 2)}")
    for _, cells in sorted(rows, key=lambda row: -row[0]):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
