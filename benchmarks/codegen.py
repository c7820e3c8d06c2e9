"""Code generation: the x86-64 generator beside LLVM, on the workloads of the thesis's table 3.1.

Prints, for each workload, milliseconds from a schedule to a callable kernel with both, and the ratio, twice:
for the template space's start, and for random schedules of the space, as a tuner meets them: all different,
each generated once, after a first one. LLVM takes a few of the same. Then the rate of the start's kernels.

What the generator makes once in a process's life is not timed for the start: how an instruction is encoded,
and the code that pads inputs, which is the same for all schedules of a program. Among the random schedules,
what is new in each is timed. Times are the processor's, so that other work on the machine counts little.
The targets: a median of at most 1 ms, and 30 times faster than LLVM.
Run it on a quiet machine: `python benchmarks/codegen.py`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from planish.core.seeds import rng
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

SEED = 0
LLVM_TIMES = 5
"""How many of the different schedules LLVM takes too."""


def milliseconds(schedule: Schedule, backend: str) -> float:
    """Time once from a schedule that nothing has looked at yet to a kernel."""
    fresh = replace(schedule)
    start = time.thread_time()
    tree = lower(fresh)
    Kernel(schedule.program, tree, compile_with(backend, tree))
    return (time.thread_time() - start) * 1e3


def of_start(schedule: Schedule, backend: str, times: int) -> tuple[float, float]:
    """Give the median times of both for one schedule, again and again."""
    for _ in range(2):
        milliseconds(schedule, backend)  # what is encoded once in a process's life
    direct = statistics.median([milliseconds(schedule, backend) for _ in range(times)])
    return direct, statistics.median([milliseconds(schedule, "portable") for _ in range(3)])


def different(program: Program, count: int) -> list[Schedule]:
    """Draw random schedules, no two of them equal."""
    space, random = TemplateSpace(program, this_machine(1)), rng(SEED)
    found: dict[str, Schedule] = {}
    for _ in range(20 * count):
        schedule = schedule_of(program, space.sample(random))
        found.setdefault(schedule.text, schedule)
        if len(found) == count:
            break
    return list(found.values())


def of_different(schedules: Sequence[Schedule], backend: str) -> tuple[float, float, float]:
    """Give the median times of both for schedules after the first, and the mean ratio of the same ones."""
    first, *others = schedules
    milliseconds(first, backend)
    direct = [milliseconds(schedule, backend) for schedule in others]
    llvm = [milliseconds(schedule, "portable") for schedule in others[:LLVM_TIMES]]
    ratio = geomean([slow / fast for slow, fast in zip(llvm, direct, strict=False)])
    return statistics.median(direct), statistics.median(llvm), ratio


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
    parser.add_argument("--times", type=int, default=51, help="kernels generated of each start")
    parser.add_argument("--different", type=int, default=51, help="random schedules of each workload")
    arguments = parser.parse_args()
    backend = this_machine(1).toolchain["backend"]
    print(f"{'':<10}{'start':>24}{'different schedules':>26}{'GFLOPS of the start':>27}")
    print(
        f"{'workload':<10}" + f"{'ms':>8}{'LLVM':>8}{'ratio':>8}" * 2 + f"{'ours':>11}{'LLVM':>8}{'ratio':>8}"
    )
    rows: list[tuple[float, float, float, float]] = []
    for name, make in THESIS.items():
        program = make()
        schedule = schedule_of(program, TemplateSpace(program, this_machine(1)).start())
        random, slow, ratio = of_different(different(program, arguments.different), backend)
        direct, llvm = of_start(schedule, backend, arguments.times)
        rate = rates(program, schedule, (backend, "portable"))
        rows.append((direct, llvm / direct, random, ratio))
        times = f"{direct:>8.2f}{llvm:>8.1f}{llvm / direct:>8.1f}{random:>8.2f}{slow:>8.1f}{ratio:>8.1f}"
        fast, other = rate[backend], rate["portable"]
        print(f"{name:<10}{times}{fast:>11.0f}{other:>8.0f}{fast / other:>8.2f}")
    for title, ms, ratio in (("start", 0, 1), ("different schedules", 2, 3)):
        median, mean = statistics.median([r[ms] for r in rows]), geomean([r[ratio] for r in rows])
        print(f"{title}: median {median:.2f} ms; LLVM takes {mean:.1f} times as long")


if __name__ == "__main__":
    main()
