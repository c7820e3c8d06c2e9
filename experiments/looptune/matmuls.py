"""A policy beside the thesis' searches on its test matmuls, in one space (figures 3.8 and 3.9).

    python experiments/looptune/matmuls.py [--cases 25] [--seconds 1] [--long 10] [--policy auto]

For each of the first test matmuls: what the policy's end computes a second, without any other measurement;
the best of 16 samples (Priority Sampling); and what each search has found after so many seconds, and after
long; the last of them goes on from the policy's way. All states are built, verified and timed alike, in this
process, on one core, and what each way chose is timed again, alternately. The table has geometric means over
the cases, as shares of the best that any of the ways chose.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from cases import SAMPLES, SEARCHES, Case, beside, remeasured, searched

from planish.levels.loops.workloads import matmul, thesis_split
from planish.models.named_policies import NetworkPolicy
from planish.models.policy_files import policy_for
from planish.search.decoding import priority_samples
from planish.search.policies import best_rollout, new_programs

IMPROVED = "policy, improved"


def measured(size: tuple[int, int, int], policy: str, moments: tuple[float, float]) -> dict[str, float]:
    """Measure one case: way to GFLOPS, and seconds of the policy's walk."""
    case = Case(matmul(*size))
    walker = NetworkPolicy(policy_for(case.space, policy))
    begun = time.perf_counter()
    (end,) = best_rollout(walker, case.space)
    walk = time.perf_counter() - begun
    chosen = {"unscheduled": case.space.start(), "policy": end}
    for title, by in (("by Algorithm 1", "last"), ("by whole ways", "whole")):
        sampled = priority_samples(walker, case.space, by=by)
        samples = new_programs(case.space, sampled)
        chosen[f"policy, {SAMPLES} samples {title}"] = max(islice(samples, SAMPLES), key=case.rate)
    ways = {**SEARCHES, IMPROVED: ("policy", {"policy": policy, "improve": True})}
    for title, (name, options) in ways.items():
        soon, late = searched(case, name, options, moments)
        chosen |= {f"{title}, {moments[0]:g} s": soon, f"{title}, {moments[1]:g} s": late}
    return {"walk_s": walk, **remeasured(case, chosen)}


def table(rows: list[dict[str, float]], moments: Sequence[str]) -> str:
    """Write the table, and below it how the policy compares with the best search of each moment."""
    ways = [way for way in rows[0] if way != "walk_s"]
    best = [max(row[way] for way in ways) for row in rows]
    lines = ["| way | of the best | least | best in |", "|---|--:|--:|--:|"]
    for way in ways:
        shares = [row[way] / most for row, most in zip(rows, best, strict=True)]
        first = sum(share > 0.99 for share in shares)
        lines.append(f"| {way} | {statistics.geometric_mean(shares):.3f} | {min(shares):.3f} | {first} |")
    alone = [way for way in ways if way.startswith("policy") and not way.startswith(IMPROVED)]
    for moment in moments:
        searches = [way for way in ways if way.endswith(f", {moment}") and not way.startswith(IMPROVED)]
        lines += ["", *(beside(rows, way, searches, f"the best search of {moment}") for way in alone)]
    walk = 1e3 * statistics.median(row["walk_s"] for row in rows)
    lines.append(f"\nThe policy's walk takes {walk:.1f} ms.")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--cases", type=int, default=25)
    given.add_argument("--seconds", type=float, default=1.0)
    given.add_argument("--long", type=float, default=10.0)
    given.add_argument("--policy", default="auto")
    given.add_argument("--save", type=Path, help="rows as JSON lines; those that are there are kept")
    asked = given.parse_args()
    rows = list[dict[str, float]]()
    if asked.save and asked.save.exists():
        rows = [json.loads(line) for line in asked.save.read_text().splitlines()]
    for size in thesis_split()[1][len(rows) : asked.cases]:
        rows.append(measured(size, asked.policy, (asked.seconds, asked.long)))
        if asked.save:
            with asked.save.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    print(table(rows, [f"{each:g} s" for each in (asked.seconds, asked.long)]))


if __name__ == "__main__":
    main()
