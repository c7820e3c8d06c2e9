"""Milliseconds to mutate a StableHLO module: draw an edit, repair, verify and print.

Target: a median of at most 10 ms. Times are the processor's, so that other load does not count; the wall
clock's median stands beside. `python benchmarks/hlo_mutate.py`
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

from planish.core import Candidate, rng
from planish.levels.hlo import read_program
from planish.levels.hlo.patch import replay
from planish.levels.hlo.space import PatchSpace

FOLDER = Path(__file__).parents[1] / "examples" / "hlo"
MODULES = ("2fcnet", "mobilenet", "mobilenet_original")


def main() -> None:
    """Mutate each module, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=200)
    parser.add_argument("--longest", type=int, default=6, help="edits of a patch, before it begins anew")
    options = parser.parse_args()
    print(f"{'module':<20}{'operations':>11}{'mutate':>9}{'90 %':>8}{'wall':>8}{'replay':>8}{'hash':>8}   ms")
    for name in MODULES:
        measure(name, options.mutations, options.longest)


def measure(name: str, mutations: int, longest: int) -> None:
    program = read_program(FOLDER / f"{name}.mlir")
    space, candidate = PatchSpace(program), Candidate()
    times: dict[str, list[float]] = {"mutate": [], "wall": [], "replay": [], "hash": []}
    kinds: Counter[str] = Counter()
    count = len(space.module(candidate).infos)
    for index in range(mutations):
        candidate = Candidate() if len(candidate.steps) >= longest else candidate
        start, wall = time.process_time(), time.perf_counter()
        candidate = space.mutate(candidate, rng(1, index))
        space.module(candidate).text()
        times["wall"].append(time.perf_counter() - wall)
        times["mutate"].append(time.process_time() - start)
        start = time.process_time()
        replay(program, candidate)
        times["replay"].append(time.process_time() - start)
        start = time.process_time()
        space.state_key(candidate)
        times["hash"].append(time.process_time() - start)
        kinds[type(candidate.steps[-1]).__name__] += 1
    ms = {key: median(values) * 1e3 for key, values in times.items()}
    slow = quantiles(times["mutate"], n=10)[-1] * 1e3
    parts = (slow, ms["wall"], ms["replay"], ms["hash"])
    print(f"{name:<20}{count:>11}{ms['mutate']:>9.2f}" + "".join(f"{part:>8.2f}" for part in parts))
    print("  " + ", ".join(f"{kind} {drawn}" for kind, drawn in kinds.most_common()))


if __name__ == "__main__":
    main()
