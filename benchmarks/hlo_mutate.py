"""Milliseconds to mutate a StableHLO module: draw an edit, repair, verify and print.

Target: a median of at most 10 ms. `python benchmarks/hlo_mutate.py`
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles

from planish.core import Candidate, rng
from planish.hlo import read_program
from planish.hlo.patch import replay
from planish.hlo.space import PatchSpace

FOLDER = Path(__file__).parents[1] / "examples" / "hlo"
MODULES = ("2fcnet", "mobilenet", "mobilenet_original")


def main() -> None:
    """Mutate each module, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=200)
    parser.add_argument("--longest", type=int, default=6, help="edits of a patch, before it begins anew")
    options = parser.parse_args()
    print(
        f"{'module':<20}{'operations':>12}{'mutate + print':>16}{'90 %':>10}{'replay':>10}{'hash':>10}   ms"
    )
    for name in MODULES:
        measure(name, options.mutations, options.longest)


def measure(name: str, mutations: int, longest: int) -> None:
    program = read_program(FOLDER / f"{name}.mlir")
    space, candidate = PatchSpace(program), Candidate()
    times: dict[str, list[float]] = {"mutate": [], "replay": [], "hash": []}
    kinds: Counter[str] = Counter()
    space.draft(candidate)
    for index in range(mutations):
        candidate = Candidate() if len(candidate.steps) >= longest else candidate
        start = time.perf_counter()
        candidate = space.mutate(candidate, rng(1, index))
        space.draft(candidate).text()
        times["mutate"].append(time.perf_counter() - start)
        start = time.perf_counter()
        replay(program, candidate)
        times["replay"].append(time.perf_counter() - start)
        start = time.perf_counter()
        space.state(candidate)
        times["hash"].append(time.perf_counter() - start)
        kinds[type(candidate.steps[-1]).__name__] += 1
    ms = {key: median(values) * 1e3 for key, values in times.items()}
    slow = quantiles(times["mutate"], n=10)[-1] * 1e3
    count = len(space.draft(Candidate()).mirror.facts)
    print(f"{name:<20}{count:>12}{ms['mutate']:>16.2f}{slow:>10.2f}{ms['replay']:>10.2f}{ms['hash']:>10.2f}")
    print(f"  {dict(kinds)}")


if __name__ == "__main__":
    main()
