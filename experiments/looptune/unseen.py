"""Policies that learnt from matmuls, on programs of other shapes and kinds.

    python experiments/looptune/unseen.py [--seconds 4] [--policy auto NAME ...] [--resnet18]

For each program: the best that anything found in GFLOPS, and as shares of it what each policy's end
computes without a measurement, the best of 16 samples, and what searches of the same space found in so many
seconds. With `--resnet18` they are that network's twelve convolutions.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import islice

from cases import SAMPLES, Case, beside, remeasured, searched

from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.workloads import RESNET18, convolution, matmul
from planish.models.named_policies import NetworkPolicy
from planish.models.policy_files import policy_for
from planish.search.decoding import priority_samples
from planish.search.policies import best_rollout, new_programs

PROGRAMS: Mapping[str, Program] = {
    "100 by 300 by 50": matmul(100, 300, 50),
    "333 by 77 by 501": matmul(333, 77, 501),
    "600 by 440 by 360": matmul(600, 440, 360),
    "192, B transposed": parse("C[m,n] += A[m,k] * B[n,k]", {"m": 192, "n": 192, "k": 192}),
    "8 times 64": parse("C[b,m,n] += A[b,m,k] * B[b,k,n]", {"b": 8, "m": 64, "n": 64, "k": 64}),
    "3x3, 64 at 28": convolution(28, 64, 64, 3, 1),
    "1x1, 128 to 256 at 14": convolution(14, 128, 256, 1, 1),
}
SEARCHES = ("greedy2", "beam-bfs", "random")


def measured(program: Program, policies: Sequence[str], seconds: float) -> dict[str, float]:
    """Measure a program: way to GFLOPS."""
    case = Case(program)
    chosen = {"unscheduled": case.space.start()}
    for name in policies:
        walker = NetworkPolicy(policy_for(case.space, name))
        (chosen[name],) = best_rollout(walker, case.space)
        samples = new_programs(case.space, priority_samples(walker, case.space, by="whole"))
        chosen[f"{name}, {SAMPLES}"] = max(islice(samples, SAMPLES), key=case.rate)
        improving = "policy", {"policy": name, "improve": True}
        chosen[f"{name}, improved"] = searched(case, *improving, (seconds, seconds))[1]
    for name in SEARCHES:
        chosen[f"{name}, {seconds:g} s"] = searched(case, name, {}, (seconds, seconds))[1]
    return remeasured(case, chosen)


def main() -> None:
    """Measure and print."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--seconds", type=float, default=4.0)
    given.add_argument("--policy", nargs="+", default=["auto"])
    given.add_argument("--resnet18", action="store_true")
    asked = given.parse_args()
    rows = list[dict[str, float]]()
    convolutions = {name: convolution(*shape) for name, shape in RESNET18.items()}
    for number, (name, program) in enumerate((convolutions if asked.resnet18 else PROGRAMS).items()):
        row = measured(program, asked.policy, asked.seconds)
        rows.append(row)
        best = max(row.values())
        if not number:
            print(f"| program | best | {' | '.join(row)} |\n|---|--:{'|--:' * len(row)}|")
        print(
            f"| {name} | {best:.1f} | {' | '.join(f'{rate / best:.2f}' for rate in row.values())} |",
            flush=True,
        )
    searches = [f"{name}, {asked.seconds:g} s" for name in SEARCHES]
    for name in asked.policy:
        print(beside(rows, name, searches, "the best search"))


if __name__ == "__main__":
    main()
