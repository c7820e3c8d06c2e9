"""OpenCL on a processor: tuned kernels by PoCL beside untuned ones and the portable back end, on one core.

    python benchmarks/opencl_processor.py [--seconds 8] [--only matmul-512]

Each program is tuned for both, in so many seconds each. Then the best kernel of either, and OpenCL's untuned
one, are called alternately on the same arrays. PoCL's times are those of the device's events, the portable
back end's those of the host's clock. Prints GFLOPS and ratios; the exit code is 1 where a tuned kernel of
OpenCL is not 3 times as fast as its untuned one, or slower than half of the portable back end's, in the
geometric mean. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from planish.core import Candidate, Target
from planish.levels.loops.backends import executable_of, tree_of
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.evaluator import compiled_for, source_for
from planish.levels.loops.gpu.running import KernelRun
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.workloads import RESNET18, convolution, matmul
from planish.measure import exclusive
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget
from side_by_side import geomean, use_one_core

LEVEL = LoopsLevel()
DEVICE, OTHER = "opencl:portable", "portable"
PROGRAMS: Mapping[str, Callable[[], Program]] = {
    "matmul-256": partial(matmul, 256, 256, 256),
    "matmul-512": partial(matmul, 512, 512, 512),
    **{name: partial(convolution, *RESNET18[name]) for name in ("C2", "C6", "C9", "C12")},
}
ROUNDS = 7
LEAST_GAIN, LEAST_SHARE = 3.0, 0.5


def tuned(program: Program, backend: str, seconds: float, store: Path) -> tuple[Program, Target, Candidate]:
    """Tune a program for a back end; return it with what was found."""
    chosen = replace(program, backend=backend)
    budget = Budget(seconds=seconds)
    found = tune_program(LEVEL, chosen, budget=budget, store=store, compares=False)
    return chosen, found.task.target, found.exported


def device_timer(program: Program, target: Target, candidate: Candidate) -> Callable[[], float]:
    """Compile a kernel for the device; return what calls it and gives the seconds by its events."""
    kernels = gpu_program_of(program, candidate, Gpu.of(target).flat_block_size)
    compiled = compiled_for(program, kernels, source_for(kernels, target), target)
    inputs, outputs = arrays(program)
    runs: KernelRun = compiled.bind(inputs, outputs)

    def call() -> float:
        before = runs.device_ns
        runs.repeat(1)
        return (runs.device_ns - before) / 1e9

    return call


def host_timer(program: Program, target: Target, candidate: Candidate) -> Callable[[], float]:
    """Compile a kernel by the portable back end; return what calls it and gives the seconds."""
    tree = tree_of(program, candidate)
    bound = executable_of(program, candidate, target, tree).bind(*arrays(program))
    bound.prepare()

    def call() -> float:
        start = time.perf_counter()
        bound.repeat(1)
        return time.perf_counter() - start

    return call


def arrays(program: Program) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Make inputs, and room for the outputs."""
    return make_inputs(program), {name: aligned(program.type[name]) for name in program.outputs}


def main() -> int:
    """Tune and compare; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each search")
    parser.add_argument("--only", action="append", choices=list(PROGRAMS), metavar="NAME")
    options = parser.parse_args()
    gains, shares = list[float](), list[float]()
    print("program, GFLOPS: untuned, tuned by OpenCL, portable; tuned to untuned, tuned to portable")
    for name in options.only or PROGRAMS:
        program = PROGRAMS[name]()
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "runs.db"
            on_device, target, best = tuned(program, DEVICE, options.seconds, store)
            on_host, host, other = tuned(program, OTHER, options.seconds, store)
        timers = {
            "untuned": device_timer(on_device, target, Candidate()),
            "tuned": device_timer(on_device, target, best),
            "portable": host_timer(on_host, host, other),
        }
        samples: dict[str, list[float]] = {way: [] for way in timers}
        with exclusive():
            for turn in range(1 + ROUNDS):
                for way, call in timers.items():
                    seconds = call()
                    if turn:  # the first one warms up
                        samples[way].append(seconds)
        rate = {way: program.flops / statistics.median(each) / 1e9 for way, each in samples.items()}
        gains.append(rate["tuned"] / rate["untuned"])
        shares.append(rate["tuned"] / rate["portable"])
        rates = ", ".join(f"{rate[way]:.1f}" for way in timers)
        print(f"{name}: {rates}; {gains[-1]:.2f}, {shares[-1]:.2f}", flush=True)
    gain, share = geomean(gains), geomean(shares)
    print(f"geometric mean: {gain:.2f} times untuned, {share:.2f} of portable")
    return int(gain < LEAST_GAIN or share < LEAST_SHARE)


if __name__ == "__main__":
    use_one_core()
    sys.exit(main())
