"""The thesis's 440 test matmuls, each tuned for at most a second, beside NumPy and torch (figure 3.11).

Every matmul is tuned anew in an empty store, and scheduled by LoopTune's policy without a measurement. Then
both, NumPy and torch (if installed) are timed alternately, each called from Python on preallocated arrays, on
one core. Prints geometric means, the share of the measured peak, and the performance profile: in how many
cases each is within a factor of the best. It takes about ten minutes: `python benchmarks/matmuls.py`.

With `--peers N`, TVM's MetaSchedule (64 trials) and Halide's autoscheduler, where they are installed, join
for the first N matmuls; TVM takes about half a minute to tune each.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import peer_halide
import peer_tvm
from planish.levels.loops.backends import compile_with, this_machine, tree_of
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsEvaluatorSpec, LoopsLevel
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.roofline import measured_peak
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.space.cursor import CursorSpace
from planish.levels.loops.workloads import matmul, thesis_split
from planish.measure.executors import LocalExecutor
from planish.models.named_policies import NetworkPolicy
from planish.models.policy_files import policy_for
from planish.search.policies import best_rollout
from planish.store import Store, open_store
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget, Settings
from side_by_side import geomean, interleaved, use_one_core

FACTORS = (1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0)
PEERS = {"tvm": peer_tvm, "halide": peer_halide}
Arrays = Mapping[str, np.ndarray[Any, Any]]
Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """How a matmul went.

    Args:
        rates: name to GFLOPS.
        seconds: name to the seconds that tuning took.
        peak: GFLOPS that the core could do meanwhile.
    """

    rates: dict[str, float]
    seconds: dict[str, float]
    peak: float


def torch_call(arrays: Arrays) -> Call | None:
    """Make torch's matmul on the same arrays; None where torch is not installed."""
    try:
        torch: Any = import_module("torch")
    except ImportError:
        return None
    torch.set_num_threads(1)
    a, b, c = (torch.from_numpy(arrays[n]) for n in "ABC")
    return partial(torch.mm, a, b, out=c)


def policy_kernel(program: Program, backend: str) -> tuple[Kernel, float]:
    """Schedule a matmul as `--searcher policy` does, and generate code; give the seconds, too."""
    start = time.perf_counter()
    space = CursorSpace(program)
    (end,) = best_rollout(NetworkPolicy(policy_for(space, "auto")), space)
    tree = tree_of(program, end)
    kernel = Kernel(program, tree, compile_with(backend, tree))
    return kernel, time.perf_counter() - start


def peer_calls(arrays: Arrays, seconds: dict[str, float]) -> dict[str, Call]:
    """Let the peers tune a matmul, and check each once; the seconds that each took are added."""
    (m, k), n = arrays["A"].shape, arrays["B"].shape[1]
    calls: dict[str, Call] = {}
    for name, peer in PEERS.items():
        if peer.load() is None:
            continue
        start = time.perf_counter()
        call = peer.call(m, n, k, arrays)
        seconds[name] = time.perf_counter() - start
        if call is not None:
            arrays["C"].fill(np.nan)
            call()
            # Exact: the inputs are small multiples of 1/16.
            np.testing.assert_array_equal(arrays["C"], arrays["A"] @ arrays["B"], name)
            calls[name] = call
    return calls


def measure(
    program: Program, store: Store, executor: LocalExecutor, settings: Settings, budget: Budget, peers: bool
) -> Case:
    """Tune a matmul, then time everybody."""
    from planish.levels.loops.reference.numpy_baseline import numpy_callable

    start = time.perf_counter()
    result = tune_program(
        LoopsLevel(),
        program,
        budget=budget,
        settings=settings,
        store=store,
        executor=executor,
        compares=False,
    )
    seconds = {"planish": time.perf_counter() - start}
    arrays = {**make_inputs(program), "C": aligned(program.type["C"])}
    inputs, outputs = {n: arrays[n] for n in "AB"}, {"C": arrays["C"]}
    tree = tree_of(program, result.exported)
    backend = this_machine(1).toolchain["backend"]
    calls: dict[str, Call] = {
        "planish": Kernel(program, tree, compile_with(backend, tree)).bind(inputs, outputs)
    }
    kernel, seconds["policy"] = policy_kernel(program, backend)
    calls["policy"] = kernel.bind(inputs, outputs)
    calls["numpy"] = numpy_callable(program, arrays)
    torch = torch_call(arrays)
    if torch is not None:
        calls["torch"] = torch
    if peers:
        calls |= peer_calls(arrays, seconds)
    rates = {n: program.flops / s / 1e9 for n, s in interleaved(calls, 0.08).items()}
    return Case(rates, seconds, measured_peak(backend))


def show(sizes: tuple[int, int, int], case: Case) -> None:
    """Print one matmul's line, and what tuning took the peers."""
    rates = "  ".join(f"{name} {rate:.0f}" for name, rate in case.rates.items())
    took = "".join(f"  {name} tuned in {s:.2f} s" for name, s in case.seconds.items() if name in PEERS)
    print("{:>4} {:>4} {:>4}".format(*sizes), f" {rates}  peak {case.peak:.0f}{took}", flush=True)


def report(cases: list[Case]) -> None:
    """Print what came out: over all matmuls, and over those that the peers joined for."""
    seconds = [case.seconds["planish"] for case in cases]
    policy = [case.seconds["policy"] for case in cases]
    ours = geomean([case.rates["planish"] for case in cases])
    share = geomean([case.rates["planish"] / case.peak for case in cases])
    print(
        f"\n{len(cases)} matmuls tuned in {statistics.fmean(seconds):.2f} s each, {max(seconds):.2f} at most"
    )
    print(f"by the policy in {1e3 * statistics.median(policy):.1f} ms, reading it from its file included")
    print(f"planish: {ours:.0f} GFLOPS (geometric mean), {share:.2f} of the peak measured meanwhile")
    everywhere = [name for name in cases[0].rates if all(name in case.rates for case in cases)]
    compare(cases, everywhere)
    joined = [case for case in cases if len(case.rates) > len(everywhere)]
    if joined:
        print(f"\nthe {len(joined)} matmuls that the peers joined for")
        compare(joined, list(joined[0].rates))


def compare(cases: list[Case], names: list[str]) -> None:
    """Print planish's ratio to the others, and the performance profile."""
    for name in names[1:]:
        ratio = [case.rates["planish"] / case.rates[name] for case in cases]
        spread = f"worst {min(ratio):.2f}, best {max(ratio):.2f}"
        took = [case.seconds[name] for case in cases if name in case.seconds]
        tuned = f"; tuned in {statistics.fmean(took):.2f} s each" if took else ""
        print(
            f"against {name}: {geomean(ratio):.2f} times ({spread}), wins {sum(r > 1 for r in ratio)}{tuned}"
        )
    print("\nperformance profile: share of cases within a factor of the best")
    print(f"{'':<10}" + "".join(f"{f:>8.2f}" for f in FACTORS))
    best = [max(case.rates[name] for name in names) for case in cases]
    for name in names:
        slower = [b / case.rates[name] for b, case in zip(best, cases, strict=True)]
        within = [sum(s <= f for s in slower) / len(cases) for f in FACTORS]
        print(f"{name:<10}" + "".join(f"{w:>8.0%}" for w in within))


def read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=440, help="how many of the test matmuls")
    parser.add_argument("--seconds", type=float, default=0.8, help="search budget; workers are used again")
    parser.add_argument("--searcher", default="", help="default: the level's")
    parser.add_argument("--peers", type=int, default=0, help="for how many matmuls TVM and Halide join")
    return parser.parse_args()


def main() -> None:
    """Tune, time and print."""
    use_one_core()
    options = read_options()
    settings = Settings(searcher=options.searcher)
    cases: list[Case] = []
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "bench.db") as store:
        executor = LocalExecutor(LoopsEvaluatorSpec(matmul(8, 8, 8), this_machine(1)), workers=2)
        for i, sizes in enumerate(thesis_split()[1][: options.count]):
            if i % 10 == 0:
                measured_peak.cache_clear()
            budget = Budget(seconds=options.seconds)
            cases.append(measure(matmul(*sizes), store, executor, settings, budget, i < options.peers))
            show(sizes, cases[-1])
        executor.close()
    report(cases)


if __name__ == "__main__":
    main()
