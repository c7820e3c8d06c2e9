"""Fuzzer of GPU schedules: random programs, random schedules, and an independent answer.

`PYTHONPATH=tools python tools/fuzz_gpu.py --device portable --pairs 20000` executes the kernels on PoCL, in a
child process that is replaced when a kernel ends it; `--device oclgrind` on the simulator, which reports
races and accesses outside buffers; `--device interpreter` by planish's own interpreter, with the same checks.
Prints each failure with the numbers that give the pair again (`--first`), and a line of counts; the exit code
is 1 where anything failed. With `--state FILE` the same command continues an interrupted campaign.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from campaign import State
from fuzz.case import differences, points, prepared
from fuzz.draw import draw_program
from planish.core import Candidate, PlanishError, ScheduleError, Target, rng
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.dialect import OPENCL
from planish.levels.loops.gpu.kernels import GpuProgram
from planish.levels.loops.gpu.source import kernel_source
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.testing.gpu_interpreter import execute
from planish.levels.loops.testing.interpreter import TreeFault

Arrays = Mapping[str, NDArray[Any]]
OF_PROGRAM = 4
"""Schedules that are tried of each program: the untuned one, the default, and drawn ones."""
MOST_POINTS = {"interpreter": 4000, "oclgrind": 4000}
"""Programs of more points take too long there."""
PATIENCE_S = 120
"""Of one pair: PoCL takes long to compile what is unrolled much."""
INTERPRETER = "interpreter"


def main() -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--device", default="portable", help="a part of a device's name, or 'interpreter'")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=1e6, help="when to end in any case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first pair")
    parser.add_argument("--state", type=Path, help="file of counts: the same command continues from there")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.device, options.seed, options.first)
    state = State(options.state, f"{options.device} {options.seed}", options.first)
    counts = state.counts
    end = time.monotonic() + options.minutes * 60
    for number, verdict, message in tried(options.device, options.seed, state.first):
        counts[verdict] += 1
        state.save(number + 1)
        if verdict in ("wrong", "crashed"):
            print(f"{verdict}: --seed {options.seed} --first {number}: {message}", flush=True)
        if counts.total() - counts["large"] >= options.pairs or time.monotonic() > end:
            break
    done = counts.total() - counts["large"]
    listed = ", ".join(f"{counts[name]} {name}" for name in ("right", "wrong", "crashed", "refused", "slow"))
    print(f"{options.device}: {done} pairs of programs and schedules: {listed}")
    return int(bool(counts["wrong"] or counts["crashed"]))


def tried(device: str, seed: int, first: int) -> Iterator[tuple[int, str, str]]:
    """Yield the number, verdict and message of each pair; a worker that a kernel ends is replaced."""
    while True:
        words = [
            sys.executable,
            __file__,
            "--worker",
            "--device",
            device,
            f"--seed={seed}",
            f"--first={first}",
        ]
        number = first
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            try:
                for line in worker.stdout:
                    number, *found = json.loads(line)
                    if found:
                        yield number, found[0], found[1]
            finally:
                worker.kill()
        first = number + 1
        slow = worker.returncode == -signal.SIGALRM
        message = f"the process ended with code {worker.returncode}"
        yield number, "slow" if slow else "crashed", message


def work(device: str, seed: int, first: int) -> None:
    """Try pairs from one on, for ever; a line is written before and after each."""
    log = Path(tempfile.mkdtemp(prefix="fuzz-gpu-")) / "races"
    os.environ |= {"OCLGRIND_DATA_RACES": "1", "OCLGRIND_LOG": str(log)}
    number = first
    while True:
        say(number)
        signal.alarm(PATIENCE_S)
        verdict, message = judge(device, seed, number)
        signal.alarm(0)
        if log.exists() and (text := log.read_text(errors="replace").strip()):
            verdict, message = "wrong", f"{text.splitlines()[0]} ... {message}"
            log.write_text("")
        say(number, verdict, message)
        number += 1


def say(*words: object) -> None:
    """Write a line for the parent."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def judge(device: str, seed: int, number: int) -> tuple[str, str]:
    """Try a pair."""
    program = _program(rng(seed, number // OF_PROGRAM), number // OF_PROGRAM)
    if points(program) > MOST_POINTS.get(device, 200_000) and not _is_product(number // OF_PROGRAM):
        return "large", ""
    special = number % 2 == 1
    _, inputs, expected = prepared(program.text, special, seed)
    space = GpuSpace(program, Target("fuzzed", _gpu(number).features))
    try:
        candidate = _candidate(space, number, seed)
        kernels = space.kernels(candidate)
    except ScheduleError as error:
        return "refused", str(error)
    run: Callable[[Program, GpuProgram, Arrays], Arrays]
    run = (lambda _, made, arrays: execute(made, arrays)) if device == INTERPRETER else _on(device)
    try:
        message = differences(run(program, kernels, inputs), expected)
    except (PlanishError, TreeFault) as error:
        message = str(error)
    return ("wrong", f"{message}\n  {program.text}\n  {candidate}") if message else ("right", "")


PRODUCTS = (
    "C[m,n] += A[m,k] * B[k,n]",
    "C[m,n] += A[m,k] * B[n,k]",
    "C[m,n] += A[k,m] * B[k,n]",
    "C[n,m] += A[k,m] * B[n,k]",
    "C[b,m,n] += A[b,m,k] * B[b,k,n]",
    "C[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(C[m,n] + v[n])",
    "C[m,n] += A[k,m] * pad(I[k, n + r - 1], 0)",
)
"""What tensor cores compute, if the types are narrow."""


def _is_product(which: int) -> bool:
    """Return whether a program is one of `PRODUCTS`: each fourth, for a GPU with tensor cores."""
    return which % 4 == 0


def _program(drawn: np.random.Generator, which: int) -> Program:
    if not _is_product(which):
        return draw_program(drawn)
    text, dtype = drawn.choice(PRODUCTS), str(drawn.choice(["float16", "bfloat16"]))
    most = 40 if which % 8 else 80
    m, n, k = int(drawn.integers(9, most)), int(drawn.integers(7, 28)), 16 * int(drawn.integers(2, 5))
    sizes = {"m": m, "n": n, "k": k, "b": int(drawn.integers(1, 3)), "r": 3}
    used = {name: size for name, size in sizes.items() if re.search(rf"\b{name}\b", text)}
    return parse(text, used, {"I": (k, n)} if "I[" in text else {}, dtype)


def _gpu(number: int) -> Gpu:
    which = number // OF_PROGRAM
    tensor = _is_product(which)
    groups = tensor and which % 8 == 0
    return Gpu(
        block_size=256, shared=24 << 10, lanes=8, processor=which % 2 == 1, tensor=tensor, groups=groups
    )


def _candidate(space: GpuSpace, number: int, seed: int) -> Candidate:
    which = number % OF_PROGRAM
    usual = {0: Candidate, 1: space.start}
    return usual[which]() if which in usual else space.sample(rng(seed, number, 1))


def _on(device: str) -> Callable[[Program, GpuProgram, Arrays], Arrays]:
    from planish.levels.loops.gpu.opencl import OpenClDevice
    from planish.levels.loops.gpu.running import CompiledKernels

    def run(program: Program, kernels: GpuProgram, inputs: Arrays) -> Arrays:
        types = program.type
        outputs = {n: np.empty(types[n].shape, numpy_type(types[n].dtype)) for n in program.outputs}
        for array in outputs.values():
            array.reshape(-1).view(np.uint8)[...] = 0x7B
        given = {name: array.copy() for name, array in inputs.items()}
        made = OpenClDevice(kernel_source(kernels, OPENCL), device)
        bound = CompiledKernels(program, kernels, made).bind(given, outputs)
        bound.poison(0xFF)
        bound.repeat(1)
        for name, array in inputs.items():
            if given[name].tobytes() != array.tobytes():
                raise TreeFault(f"input {name} is changed")
        return outputs

    return run


if __name__ == "__main__":
    sys.exit(main())
