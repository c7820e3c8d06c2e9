"""Code generation: the x86-64 generator beside LLVM, on the workloads of the thesis's table 3.1.

Prints, for each workload, milliseconds from a schedule to a callable kernel with both, the rate of the
kernels that come out, and the ratios. The schedule is the template space's start. What the generator makes
once in a process's life is not timed: how an instruction is encoded, and the code that pads inputs, which is
the same for all schedules of a program. The targets: a median of at most 1 ms, and 30 times faster than LLVM.
Run it on a quiet machine: `python benchmarks/codegen.py`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial

from planish.loops.build import compile_with, schedule_of
from planish.loops.inputs import aligned, make_inputs
from planish.loops.lowering import lower
from planish.loops.program import Program
from planish.loops.runtime import Kernel
from planish.loops.schedule import Schedule
from planish.loops.spaces import TemplateSpace
from planish.loops.target import this_machine
from planish.loops.workloads import THESIS
from side_by_side import geomean, interleaved


def milliseconds(schedule: Schedule, backend: str, times: int) -> float:
    """Give the median time from a schedule to a kernel."""
    samples: list[float] = []
    for _ in range(times):
        fresh = Schedule(
            schedule.graph,
            schedule.orders,
            schedule.unrolled,
            schedule.parallel,
            schedule.packs,
            schedule.staged,
        )
        start = time.perf_counter()
        tree = lower(fresh)
        Kernel(schedule.program, tree, compile_with(backend, tree))
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e3


def rates(program: Program, schedule: Schedule, backends: tuple[str, ...]) -> dict[str, float]:
    """Give the GFLOPS of the kernels, timed by turns."""
    inputs = make_inputs(program)
    calls = {}
    for backend in backends:
        tree = lower(schedule)
        outputs = {name: aligned(program.type[name]) for name in program.outputs}
        bound = Kernel(program, tree, compile_with(backend, tree)).bind(inputs, outputs)
        calls[backend] = partial(bound.repeat, 1)
    return {b: program.flops / s / 1e9 for b, s in interleaved(calls, 0.1).items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=51, help="kernels generated for each figure")
    times = parser.parse_args().times
    backend = this_machine(1).toolchain["backend"]
    titles = f"{'LLVM ms':>10}{'ratio':>8}{'GFLOPS':>9}{'LLVM':>8}{'ratio':>7}"
    print(f"{'workload':<10}{backend + ' ms':>16}{titles}")
    ours: list[float] = []
    ratios: list[float] = []
    for name, make in THESIS.items():
        program = make()
        schedule = schedule_of(program, TemplateSpace(program, this_machine(1)).start())
        milliseconds(schedule, backend, 2)  # what is encoded once in a process's life
        direct, llvm = milliseconds(schedule, backend, times), milliseconds(schedule, "portable", 3)
        rate = rates(program, schedule, (backend, "portable"))
        ours.append(direct)
        ratios.append(llvm / direct)
        fast, other = rate[backend], rate["portable"]
        times_ms = f"{direct:>16.2f}{llvm:>10.1f}{llvm / direct:>8.1f}"
        print(f"{name:<10}{times_ms}{fast:>9.0f}{other:>8.0f}{fast / other:>7.2f}")
    print(f"median {statistics.median(ours):.2f} ms; LLVM takes {geomean(ratios):.1f} times as long")


if __name__ == "__main__":
    main()
