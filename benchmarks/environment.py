"""Steps a second of LoopTune's environment by random legal actions, among new states and known ones.

    python benchmarks/environment.py [--steps 400] [--rounds 3]

Each round walks the same episodes three times: with an empty store, so that every state is built, verified
and timed; with the store that this left, read anew; and in the same environment again, from memory.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from planish.levels.loops.workloads import thesis_split
from planish.train.environment import StepEnvironment, make_environment


def main() -> None:
    """Walk and print medians."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--steps", type=int, default=400)
    given.add_argument("--rounds", type=int, default=3)
    asked = given.parse_args()
    rows = [walked(asked.steps, number) for number in range(asked.rounds)]
    print("| states | steps a second |\n|---|--:|")
    for name in rows[0]:
        print(f"| {name} | {statistics.median(row[name] for row in rows):,.0f} |")


def walked(steps: int, number: int) -> dict[str, float]:
    """Walk with no state known, with all in the store, and with all in memory; give steps a second."""
    sizes = thesis_split()[0][number * 4 :][:4]
    programs = [f"C[m,n] += A[m,k] * B[k,n] | m={m},n={n},k={k}" for m, n, k in sizes]
    found = dict[str, float]()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "s.db"
        with closing(make_environment(programs, store=store)) as environment:
            found["new"] = rate(environment, steps, number)
        with closing(make_environment(programs, store=store)) as environment:
            found["in the store"] = rate(environment, steps, number)
            found["in memory"] = rate(environment, steps, number)
    return found


def rate(environment: StepEnvironment, steps: int, number: int) -> float:
    """Walk by random legal actions; give steps a second, once the worker has started."""
    for task in range(environment.task_count):
        environment.reset(options={"task": task})
    drawn = np.random.default_rng(number)
    begun = time.perf_counter()
    for episode in range(steps // environment.steps):
        _, info = environment.reset(options={"task": episode % environment.task_count})
        for _ in range(environment.steps):
            action = drawn.choice(np.flatnonzero(info["action_mask"]))
            *_, info = environment.step(np.int64(action))
    return steps / (time.perf_counter() - begun)


if __name__ == "__main__":
    main()
