"""What it costs that a cursor's actions leave vectors, unrolling and packing to the back end.

    python experiments/looptune/spaces.py [--cases 10] [--seconds 5]

For test matmuls of the thesis and convolutions of ResNet-18: the best that searches find in three spaces,
each in so many seconds: LoopTune's, the one whose actions include those decisions, and AutoTVM's, by knobs.
What is chosen is timed again, alternately; the table has GFLOPS, and shares of the best.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cases import Case, searched

from planish.core import Candidate, Space
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.space.cursor import AnnotationSpace, CursorSpace
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.workloads import matmul, thesis_split, workload

TURNS = 5
WAYS: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]] = {
    "steps": (("policy", {"improve": True}), ("beam-bfs", {})),
    "marked-steps": (("greedy2", {}), ("beam-bfs", {}), ("random", {})),
    "template": (("genetic", {}),),
}
CONVOLUTIONS = ("C2", "C6", "C8", "C9")


def programs(cases: int) -> Iterator[tuple[str, Program]]:
    """Name the programs."""
    for m, n, k in thesis_split()[1][:cases]:
        yield f"{m} by {n} by {k}", matmul(m, n, k)
    for name in CONVOLUTIONS:
        yield name, workload(name)


def measured(program: Program, seconds: float) -> dict[str, float]:
    """Search each space, half of the seconds or less by each of its ways; give GFLOPS."""
    target = LoopsLevel().target(program, 1)
    spaces: Mapping[str, Space] = {
        "steps": CursorSpace(program),
        "marked-steps": AnnotationSpace(program),
        "template": TemplateSpace(program, target),
    }
    case, chosen = Case(program), dict[str, Candidate]()
    for name, ways in WAYS.items():
        share = seconds / len(ways)
        found = [searched(case, *way, (share, share), spaces[name])[1] for way in ways]
        chosen[name] = max(found, key=case.rate)
    rates = [{name: case.rate_anew(one) for name, one in chosen.items()} for _ in range(TURNS)]
    return {name: statistics.median(turn[name] for turn in rates) for name in chosen}


def main() -> None:
    """Measure and print."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--cases", type=int, default=10)
    given.add_argument("--seconds", type=float, default=5.0)
    asked = given.parse_args()
    rows = list[dict[str, float]]()
    print(f"| program | {' | '.join(WAYS)} |\n|---|{'--:|' * len(WAYS)}")
    for name, program in programs(asked.cases):
        rows.append(measured(program, asked.seconds))
        print(f"| {name} | {' | '.join(f'{rows[-1][way]:.1f}' for way in WAYS)} |", flush=True)
    means = [statistics.geometric_mean(row[way] / max(row.values()) for row in rows) for way in WAYS]
    print(f"| share of the best | {' | '.join(f'{mean:.3f}' for mean in means)} |")


if __name__ == "__main__":
    main()
