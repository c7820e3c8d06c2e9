"""The thesis's 440 test matmuls, each tuned for at most a second, beside NumPy and torch (figure 3.11).

Every matmul is tuned anew in an empty store; then the winner, NumPy and torch (if installed) are timed by
turns, each called from Python on preallocated arrays, on one core. Prints geometric means, the share of the
measured peak, and the performance profile: in how many cases each is within a factor of the best. It takes
about ten minutes: `python benchmarks/matmuls.py`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from planish.budget import Budget
from planish.loops.build import compile_with, tree_of
from planish.loops.evaluator import LoopsEvaluator
from planish.loops.inputs import aligned, make_inputs
from planish.loops.peak import measured_peak
from planish.loops.program import Program
from planish.loops.runtime import Kernel
from planish.loops.target import this_machine
from planish.loops.workloads import matmul, thesis_split
from planish.measure import LocalExecutor
from planish.settings import Settings
from planish.store import Store, open_store
from planish.tune import tune
from side_by_side import geomean, interleaved, use_one_core

FACTORS = (1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0)
Rates = dict[str, float]


def torch_call(arrays: Mapping[str, object]) -> Callable[[], object] | None:
    """Make torch's matmul on the same arrays; None where torch is not installed."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return None
    torch.set_num_threads(1)
    a, b, c = (torch.from_numpy(arrays[n]) for n in "ABC")
    return partial(torch.mm, a, b, out=c)


def rates(
    program: Program, store: Store, executor: LocalExecutor, seconds: float, searcher: str
) -> tuple[Rates, float]:
    """Tune a matmul, then time everybody; gives GFLOPS by name, and the seconds that tuning took."""
    from planish.loops.numpy_baseline import numpy_callable

    settings = Settings(finalists=0, searcher=searcher)
    start = time.perf_counter()
    result = tune(program, budget=Budget(seconds=seconds), settings=settings, store=store, executor=executor)
    took = time.perf_counter() - start
    arrays = {**make_inputs(program), "C": aligned(program.type["C"])}
    inputs, outputs = {n: arrays[n] for n in "AB"}, {"C": arrays["C"]}
    tree = tree_of(program, result.candidate)
    code = compile_with(this_machine(1).toolchain["backend"], tree)
    calls: dict[str, Callable[[], object]] = {"planish": Kernel(program, tree, code).bind(inputs, outputs)}
    calls["numpy"] = numpy_callable(program, arrays)
    torch = torch_call(arrays)
    if torch is not None:
        calls["torch"] = torch
    return {n: program.flops / s / 1e9 for n, s in interleaved(calls, 0.08).items()}, took


def report(table: list[Rates], peaks: list[float], took: list[float]) -> None:
    """Print what came out."""
    names = list(table[0])
    ours = [row["planish"] for row in table]
    print(f"\n{len(table)} matmuls tuned in {sum(took) / len(took):.2f} s each, {max(took):.2f} at most")
    share = geomean([g / p for g, p in zip(ours, peaks, strict=True)])
    print(f"planish: {geomean(ours):.0f} GFLOPS (geometric mean), {share:.2f} of the peak measured meanwhile")
    for name in names[1:]:
        ratio = [row["planish"] / row[name] for row in table]
        wins = sum(r > 1 for r in ratio)
        spread = f"worst {min(ratio):.2f}, best {max(ratio):.2f}"
        print(f"against {name}: {geomean(ratio):.2f} times ({spread}), wins {wins}")
    print("\nperformance profile: share of cases within a factor of the best")
    print(f"{'':<10}" + "".join(f"{f:>8.2f}" for f in FACTORS))
    for name in names:
        within = [sum(max(row.values()) <= f * row[name] for row in table) / len(table) for f in FACTORS]
        print(f"{name:<10}" + "".join(f"{w:>8.0%}" for w in within))


def main() -> None:
    """Tune, time and print."""
    use_one_core()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=440, help="how many of the test matmuls")
    parser.add_argument("--seconds", type=float, default=0.95, help="search budget; workers are used again")
    parser.add_argument("--searcher", default="", help="default: the level's")
    options = parser.parse_args()
    _, sizes = thesis_split()
    backend = this_machine(1).toolchain["backend"]
    table: list[Rates] = []
    peaks: list[float] = []
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "bench.db") as store:
        executor = LocalExecutor(LoopsEvaluator(matmul(8, 8, 8), this_machine(1)), workers=2)
        for i, (m, n, k) in enumerate(sizes[: options.count]):
            row, seconds = rates(matmul(m, n, k), store, executor, options.seconds, options.searcher)
            if i % 10 == 0:
                measured_peak.cache_clear()
            table.append(row)
            took.append(seconds)
            peaks.append(measured_peak(backend))
            shown = "  ".join(f"{name} {rate:.0f}" for name, rate in row.items())
            print(f"{m:>4} {n:>4} {k:>4}  {shown}  peak {peaks[-1]:.0f}", flush=True)
        executor.close()
    report(table, peaks, took)


if __name__ == "__main__":
    main()
