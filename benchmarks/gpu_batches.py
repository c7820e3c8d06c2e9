"""Batches of GPU kernels for known workloads, compiled here and measured where the GPU is.

`python benchmarks/gpu_batches.py DIR --target cuda:sm_90a` writes a folder for each workload, and needs no
GPU: the convolutions C1 to C12 of ResNet-18 and products (figure 10 of AutoTVM's paper has that of 1024),
products in float16 and TF32 for tensor cores, small, odd, batched and fused ones, those of attention, four
convolutions by Winograd's algorithm, and sums.
On the machine with the GPU, `planish measure DIR/*` verifies and times them. `--list` names the workloads.

`python benchmarks/gpu_batches.py --check 3` verifies a small program of each kind instead: the default
schedule and three that are drawn for the GPU are executed on PoCL, in OpenCL. The exit code is 1 where one is
wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from planish.core import Candidate, Failed, ScheduleError, Task, evaluate, rng
from planish.levels.loops.gpu.batch import write_batch
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import RESNET18, convolution, matmul, winograd
from planish.measure.executors import LocalExecutor
from planish.sandbox import Limits

PRODUCTS = (256, 512, 1024, 2048, 4096, 8192)
TYPES = ("float16", "tf32")
"""Of products for tensor cores."""
NARROW = TYPES[0]
HEADS, DEPTH = 16, 64
"""Of attention."""
WINOGRAD = ("C2", "C6", "C9", "C12")
"""Convolutions that are computed by Winograd's algorithm, too."""
MATMUL = "C[m,n] += A[m,k] * B[k,n]"
OTHERS: Mapping[str, tuple[str, Mapping[str, int], Mapping[str, int]]] = {
    "small": (MATMUL, {"m": 64, "n": 64, "k": 64}, {"m": 40, "n": 24, "k": 64}),
    "odd": (MATMUL, {"m": 1000, "n": 1111, "k": 777}, {"m": 33, "n": 29, "k": 35}),
    "batched": (
        "C[b,m,n] += A[b,m,k] * B[b,k,n]",
        {"b": 96, "m": 128, "n": 128, "k": 128},
        {"b": 3, "m": 40, "n": 24, "k": 64},
    ),
    "fused": (
        f"{MATMUL}; D[m,n] = relu(C[m,n] + v[n])",
        {"m": 1024, "n": 1024, "k": 1024},
        {"m": 40, "n": 24, "k": 64},
    ),
}
"""Products that libraries are less made for, with their sizes, and smaller ones for `--check`."""
BACKEND = "opencl:portable"
GPU = Gpu(units=132, block_size=512, shared=96 << 10, tensor=True, groups=True)
"""The device whose schedules are checked: as an H100, with blocks that PoCL executes in a short time."""
LIMITS = Limits(build=120, verify=120)
"""What is repeated much takes PoCL long to compile."""


@dataclass(frozen=True)
class Workload:
    """A program, and a smaller one of the same kind.

    Args:
        program: makes it.
        small: makes the smaller one.
    """

    program: Callable[[], Program]
    small: Callable[[], Program]


def workloads() -> Mapping[str, Workload]:
    """Return the workloads by name."""
    found: dict[str, Workload] = {}
    for name, (size, inputs, _, kernel, stride) in RESNET18.items():
        small = partial(convolution, min(size, 9), min(inputs, 6), 12, kernel, stride)
        found[name] = Workload(partial(convolution, *RESNET18[name]), small)
    for n in PRODUCTS:
        for dtype in ("float32", *TYPES):
            name = f"matmul-{n}" if dtype == "float32" else f"matmul-{n}-{dtype}"
            found[name] = Workload(partial(matmul, n, n, n, dtype), partial(matmul, 136, 40, 80, dtype))
    for kind, (text, sizes, few) in OTHERS.items():
        for dtype in ("float32", NARROW):
            name = f"matmul-{kind}" if dtype == "float32" else f"matmul-{kind}-{dtype}"
            found[name] = Workload(*(partial(parse, text, each, dtype=dtype) for each in (sizes, few)))
    scores, values = "S[h,q,k] += Q[h,q,d] * K[h,k,d]", "O[h,q,d] += P[h,q,k] * V[h,k,d]"
    few = {"h": 2, "q": 40, "k": 64, "d": 64}
    for n in (512, 2048):
        sizes = {"h": HEADS, "q": n, "k": n, "d": DEPTH}
        for name, text in (("scores", scores), ("values", values)):
            made = [partial(parse, text, each, dtype=NARROW) for each in (sizes, few)]
            found[f"attention-{name}-{n}"] = Workload(*made)
    for name in WINOGRAD:
        found[f"winograd-{name}"] = Workload(
            partial(winograd, *RESNET18[name][:3]), partial(winograd, 6, 3, 5)
        )
    for name, text in (
        ("row-sums", "S[m] += X[m,n]"),
        ("column-sums", "S[n] += X[m,n]"),
        ("softmax", "S[m] += exp(X[m,n]); Y[m,n] = exp(X[m,n]) / S[m]"),
    ):
        made = [partial(parse, text, each) for each in ({"m": 4096, "n": 4096}, {"m": 33, "n": 40})]
        found[name] = Workload(*made)
    return found


def main() -> int:
    """Write the batches; return the exit code."""
    known = workloads()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--trials", type=int, default=200, help="candidates of each workload")
    parser.add_argument("--only", action="append", choices=sorted(known), metavar="NAME", help="workloads")
    parser.add_argument("--list", action="store_true", help="name the workloads, and write nothing")
    parser.add_argument("--check", type=int, metavar="N", help="verify N drawn schedules of small programs")
    options = parser.parse_args()
    names = options.only or [*known]
    if options.check is not None:
        return check(distinct(known, names), options.check)
    if options.list or options.folder is None:
        print("\n".join(known))
        return 0
    for name in names:
        start = time.monotonic()
        task = task_of(known[name].program(), options.target)
        found = write_batch(task, options.trials, 0, options.folder / name)
        seconds = time.monotonic() - start
        print(
            f"{name}: {found.kept} kept, {found.spilled} spill, {found.refused} refused, {seconds:.0f} s",
            flush=True,
        )
    return 0


def task_of(program: Program, backend: str) -> Task[Program]:
    """Make the task of a program on a device."""
    level, program = LoopsLevel(), replace(program, backend=backend)
    return Task(program, level.target(program, 1), (level.objectives["time_s"],), level.version)


def distinct(known: Mapping[str, Workload], names: Sequence[str]) -> Mapping[str, Program]:
    """Return the small programs, each once, by the first of its names."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(known[name].small().text, name)
    return {name: known[name].small() for name in found.values()}


def check(programs: Mapping[str, Program], count: int) -> int:
    """Verify the default schedule and drawn ones of programs on PoCL, and print a line for each program."""
    failures, total = 0, Counter[str]()
    for name, program in programs.items():
        task = task_of(program, BACKEND)
        task = replace(task, target=replace(task.target, features=GPU.features | {"opencl"}))
        candidates = drawn(GpuSpace(task.program, task.target), count)
        with LocalExecutor(LoopsLevel().evaluator(task, final=False), workers=1, limits=LIMITS) as executor:
            found = [*evaluate(executor, candidates)]
        steps = Counter(type(step).__name__ for each in candidates for step in each.steps)
        wrong = [each for each in found if isinstance(each.outcome, Failed)]
        print(f"{name}: {len(found) - len(wrong)} of {len(candidates)} verified", flush=True)
        for each in wrong:
            print(f"  {each.outcome}: {each.candidate}", flush=True)
        failures += len(candidates) - len(found) + len(wrong)
        total += steps
    listed = ", ".join(f"{n} {name}" for name, n in sorted(total.items()))
    print(f"{len(programs)} programs, {failures} failures; steps: {listed}")
    return int(failures > 0)


def drawn(space: GpuSpace, count: int) -> Sequence[Candidate]:
    """Draw a number of schedules beside the untuned program and the default; equal ones count once."""
    found = {Candidate(): None, space.start(): None}
    for number in range(count):
        try:
            found[space.sample(rng(0, number))] = None
        except ScheduleError:
            continue
    return [*found]


if __name__ == "__main__":
    sys.exit(main())
