"""Policies alone beside each other, without searches: test matmuls, and programs of other kinds.

    python experiments/looptune/alone.py POLICY... [--cases 25] [--unseen]

For each program what the greedy way's end computes, the most hopeful of eight ends, and the best of 16
samples, as shares of the best of all those; what was chosen is timed again, alternately.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from itertools import islice

from cases import SAMPLES, Case, remeasured
from unseen import PROGRAMS

from planish.levels.loops.lang.program import Program
from planish.levels.loops.workloads import matmul, thesis_split
from planish.models.named_policies import NetworkPolicy
from planish.models.policy_files import policy_for
from planish.search.decoding import priority_samples
from planish.search.policies import best_rollout, greedy_rollout, new_programs


def measured(program: Program, policies: Sequence[str]) -> dict[str, float]:
    """Measure a program: way to GFLOPS."""
    case = Case(program)
    chosen = {}
    for name in policies:
        walker = NetworkPolicy(policy_for(case.space, name))
        (chosen[f"{name}, greedy"],) = greedy_rollout(walker, case.space)
        (chosen[f"{name}, hopeful"],) = best_rollout(walker, case.space)
        samples = new_programs(case.space, priority_samples(walker, case.space, by="whole"))
        chosen[f"{name}, {SAMPLES} samples"] = max(islice(samples, SAMPLES), key=case.rate)
    return remeasured(case, chosen)


def main() -> None:
    """Measure and print."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("policies", nargs="+", metavar="POLICY")
    given.add_argument("--cases", type=int, default=25)
    given.add_argument("--unseen", action="store_true", help="programs of other kinds, in place of matmuls")
    asked = given.parse_args()
    sizes = thesis_split()[1][: asked.cases]
    matmuls = {" by ".join(map(str, size)): matmul(*size) for size in sizes}
    programs: Mapping[str, Program] = PROGRAMS if asked.unseen else matmuls
    rows = {name: measured(program, asked.policies) for name, program in programs.items()}
    shares = {
        name: {way: rate / max(row.values()) for way, rate in row.items()} for name, row in rows.items()
    }
    ways = list(next(iter(shares.values())))
    print(f"| program | best, GFLOPS | {' | '.join(ways)} |\n|---|--:{'|--:' * len(ways)}|")
    for name, row in shares.items():
        print(
            f"| {name} | {max(rows[name].values()):.0f} | {' | '.join(f'{row[way]:.2f}' for way in ways)} |"
        )
    for title, of in (("mean", statistics.geometric_mean), ("least", min)):
        cells = [f"{of([row[way] for row in shares.values()]):.3f}" for way in ways]
        print(f"| {title} | | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
