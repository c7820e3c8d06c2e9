"""Comparison of `planish.einsum` with `numpy.einsum` on random calls.

`PYTHONPATH=tests python tools/fuzz_einsum.py --calls 10000` takes some minutes. Every kind of operand and
argument takes part; see `tests/einsum/calls.py`. What a kernel can compute is computed by kernels and NumPy's
backends in turn, untuned. Prints each difference with the seed that gives the call again, and how many calls
each backend took; the exit code is 1 if there was a difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from einsum.calls import call
from einsum.sameness import difference
from einsum.untuned import InTurn
from planish.einsum.call import Dispatcher
from planish.store import open_store


def main() -> int:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description="Compare einsum with NumPy's.")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first call; the others follow")
    options = parser.parse_args()
    wrong, started = 0, time.monotonic()
    turns = InTurn()
    einsum = Dispatcher(turns.planner)
    with TemporaryDirectory() as folder, open_store(Path(folder) / "a.db") as store:
        for seed in range(options.seed, options.seed + options.calls):
            found = difference(partial(einsum, store=store), seed)
            if found:
                wrong += 1
                print(f"seed {seed}: {call(seed)}\n    {found}", flush=True)
            if seed % 1000 == 999:
                einsum.clear()
    backends = ", ".join(f"{name} {count}" for name, count in sorted(turns.taken.items()))
    seconds = time.monotonic() - started
    print(f"{options.calls} calls in {seconds:.0f} s, {wrong} differ; selected backends: {backends}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
