"""Code generation: the x86-64 generator beside LLVM, on the workloads of the thesis's table 3.1.

Prints, for each workload, milliseconds from a schedule to a callable kernel, twice: for the template space's
start, and for random schedules of the space, as a tuner meets them: all different, each generated once, after
a first one. LLVM takes a few of the same. Then the rate of the start's kernels.

LLVM runs in two ways, both on the module that the portable back end writes. "plain" is that back end as it
is: no passes before code generation, which the module needs none of. It is the harder comparison. "O3" is
LLVM as Halide calls it, and so what table 3.1 compares with: the passes of level 3 without those that
vectorize, interleave and unroll loops, and the most thorough code generator.

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
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import llvmlite.binding as llvm

from planish.core.hashing import rng
from planish.levels.loops.backends import compile_with, schedule_of, this_machine
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.llvm.compile import annotated_for, module
from planish.levels.loops.codegen.llvm.jit import host_machine
from planish.levels.loops.ir.schedule import Schedule
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.workloads import THESIS
from side_by_side import geomean, interleaved

SEED = 0
LLVM_TIMES = 5
"""How many of the different schedules LLVM takes too, and how often it takes the start."""
LLVM = ("plain", "O3")

Compile = Callable[[LoopTree], object]


def optimized(tree: LoopTree) -> object:
    """Generate code with LLVM as Halide calls it: `CodeGen_LLVM::optimize_module`, at its defaults."""
    machine = host_machine()
    text, names = module(annotated_for(tree, machine), machine, "planish")
    made = jit.target_machine(machine, 3, jit=True)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_interleaving = tuning.loop_vectorization = tuning.loop_unrolling = False
    tuning.slp_vectorization = True
    parsed = llvm.parse_assembly(text)
    passes = llvm.create_pass_builder(made, tuning)
    passes.getModulePassManager().run(parsed, passes)
    engine = llvm.create_mcjit_compiler(parsed, made)
    engine.finalize_object()
    return engine, [engine.get_function_address(name) for group in names for name in group]


def milliseconds(schedule: Schedule, generate: Compile) -> float:
    """Time once from a schedule that nothing has looked at yet to a kernel."""
    fresh = replace(schedule)
    start = time.thread_time()
    generate(lower(fresh))
    return (time.thread_time() - start) * 1e3


def generators(program: Program) -> dict[str, Compile]:
    """Name what is compared; the first is ours."""

    def kernel(backend: str, tree: LoopTree) -> Kernel:
        return Kernel(program, tree, compile_with(backend, tree))

    ours = partial(kernel, this_machine(1).toolchain["backend"])
    return {"ours": ours, "plain": partial(kernel, "portable"), "O3": optimized}


def of_start(schedule: Schedule, compilers: dict[str, Compile], times: int) -> dict[str, float]:
    """Give the median times of all for one schedule, again and again, alternately."""
    for _ in range(2):
        milliseconds(schedule, compilers["ours"])  # what is encoded once in a process's life
    found: dict[str, list[float]] = {name: [] for name in compilers}
    for _ in range(LLVM_TIMES):
        for name, generate in compilers.items():
            count = 1 if name in LLVM else -(-times // LLVM_TIMES)
            found[name] += [milliseconds(schedule, generate) for _ in range(count)]
    return {name: statistics.median(values) for name, values in found.items()}


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


def of_different(schedules: Sequence[Schedule], compilers: dict[str, Compile]) -> dict[str, list[float]]:
    """Give the times of all for schedules after the first; LLVM takes the first few of them."""
    first, *others = schedules
    milliseconds(first, compilers["ours"])
    counts = {"ours": len(others), **dict.fromkeys(LLVM, LLVM_TIMES)}
    return {
        name: [milliseconds(schedule, generate) for schedule in others[: counts[name]]]
        for name, generate in compilers.items()
    }


def ratios(times: dict[str, list[float]]) -> list[float]:
    """Give the mean ratio of each LLVM to ours, on the same schedules."""
    return [
        geomean([slow / fast for slow, fast in zip(times[name], times["ours"], strict=False)])
        for name in LLVM
    ]


def rates(program: Program, schedule: Schedule, backends: tuple[str, ...]) -> dict[str, float]:
    """Give the GFLOPS of the kernels, timed alternately."""
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
    titles = (f"{'ms':>7}" + "".join(f"{name:>7}" for name in LLVM) + f"{'ratios':>13}") * 2
    print(f"{'':<10}{'start':>34}{'different schedules':>34}{'GFLOPS of the start':>27}")
    print(f"{'workload':<10}{titles}{'ours':>11}{'plain':>8}{'ratio':>8}")
    rows: dict[str, list[list[float]]] = {"start": [], "different schedules": []}
    for name, make in THESIS.items():
        program = make()
        schedule = schedule_of(program, TemplateSpace(program, this_machine(1)).start())
        compilers = generators(program)
        random = of_different(different(program, arguments.different), compilers)
        start = of_start(schedule, compilers, arguments.times)
        rate = rates(program, schedule, (backend, "portable"))
        rows["start"].append([*start.values(), *(start[n] / start["ours"] for n in LLVM)])
        rows["different schedules"].append([*map(statistics.median, random.values()), *ratios(random)])
        fast, other = rate[backend], rate["portable"]
        times = "".join(_cells(table[-1]) for table in rows.values())
        print(f"{name:<10}{times}{fast:>11.0f}{other:>8.0f}{fast / other:>8.2f}")
    for title, table in rows.items():
        median, (*_, plain, o3) = statistics.median([r[0] for r in table]), zip(*table, strict=True)
        print(
            f"{title}: median {median:.2f} ms; LLVM without passes takes {geomean(plain):.1f} times as long, "
            f"with those of O3 {geomean(o3):.1f} times"
        )


def _cells(row: Sequence[float]) -> str:
    ms, plain, o3, *ratio = row
    return f"{ms:>7.2f}{plain:>7.1f}{o3:>7.1f}" + "".join(f"{value:>6.1f}" for value in ratio) + " "


if __name__ == "__main__":
    main()
