"""Fuzzer of GPU schedules: random programs, random schedules, and an independent answer.

`PYTHONPATH=tools python tools/fuzz_gpu.py --device portable --pairs 20000` executes the kernels on PoCL, in a
child process that is replaced when a kernel ends it; `--device oclgrind` on the simulator, which reports
races and accesses outside buffers; `--device interpreter` by planish's own interpreter, with the same checks.
The kernels of several pairs are compiled together, equal ones once. On PoCL, 15 of 16 batches are compiled
without its optimizer, which takes most of the time. The simulator's own optimizer takes longer than it saves.
`--kind` chooses products whose schedules have one kind of step.
Prints each failure, and each pair that takes too long, with the numbers that give the pair again (`--first`),
and a line of counts; the exit code is 1 where anything failed. With `--state FILE` the same command continues
an interrupted campaign.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from campaign import State
from fuzz.answer import Inexact
from fuzz.case import differences, points, prepared
from fuzz.draw import draw_program
from planish.core import Candidate, PlanishError, ScheduleError, Step, Target, rng
from planish.levels.loops.gpu.devices import Gpu
from planish.levels.loops.gpu.dialect import OPENCL
from planish.levels.loops.gpu.kernels import GpuProgram, require_fit
from planish.levels.loops.gpu.source import kernel_source
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.gpu.steps import BulkCopies, RasterOrder, ReduceTile, SharedTile, TensorTile
from planish.levels.loops.gpu.tensor import GROUP, GROUP_WARPS
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.testing.gpu_interpreter import execute
from planish.levels.loops.testing.interpreter import TreeFault

if TYPE_CHECKING:
    from planish.levels.loops.gpu.opencl import OpenClDevice

Arrays = Mapping[str, NDArray[Any]]
OF_PROGRAM = 4
"""Schedules that are tried of each program: the untuned one, the default, and drawn ones."""
MOST_POINTS = {"interpreter": 4000, "oclgrind": 4000}
"""Programs of more points take too long there."""
PATIENCE_S = 120
"""Processor time of one pair: PoCL takes long to compile what is unrolled much."""
BATCH = 16
"""Pairs whose kernels are compiled together."""
SLOWLY = 16
"""Each so manieth batch is optimized by PoCL, so that pointers declared `restrict` are used as such."""
INTERPRETER = "interpreter"
KINDS: Mapping[str, Sequence[str]] = {
    "bulk": ("float16", "bfloat16"),
    "swizzle": ("float32", "float16", "bfloat16", "tf32"),
    "tf32": ("tf32",),
}
"""Kind of steps to the types of products that have them."""
TURNS = 40
"""Draws of a schedule until it has a kind of step."""


def main() -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--device", default="portable", help="a part of a device's name, or 'interpreter'")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=1e6, help="when to end in any case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first pair")
    parser.add_argument("--state", type=Path, help="file of counts: the same command continues from there")
    parser.add_argument("--kind", choices=sorted(KINDS), default="", help="of steps that every schedule has")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, default=BATCH, help=argparse.SUPPRESS)
    options = parser.parse_args()
    asked = Asked(options.device, options.seed, options.kind)
    if options.worker:
        work(asked, options.first, options.batch)
        return 0
    name = " ".join(filter(None, (asked.device, str(asked.seed), asked.kind)))
    state = State(options.state, name, options.first)
    counts = state.counts
    end = time.monotonic() + options.minutes * 60
    for number, verdict, message in tried(asked, state.first):
        counts[verdict] += 1
        state.save(number + 1)
        if verdict in ("wrong", "crashed", "slow"):
            kind = f" --kind {asked.kind}" if asked.kind else ""
            print(f"{verdict}: --seed {asked.seed}{kind} --first {number}: {message}", flush=True)
        if counts.total() - counts["large"] >= options.pairs or time.monotonic() > end:
            break
    done = counts.total() - counts["large"]
    listed = ", ".join(f"{counts[name]} {name}" for name in ("right", "wrong", "crashed", "refused", "slow"))
    kind = f" with {asked.kind}" if asked.kind else ""
    print(f"{asked.device}: {done} pairs of programs and schedules{kind}: {listed}")
    return int(bool(counts["wrong"] or counts["crashed"]))


def tried(asked: Asked, first: int) -> Iterator[tuple[int, str, str]]:
    """Yield the number, verdict and message of each pair; a worker that a kernel ends is replaced."""
    batch = BATCH
    while True:
        words = [sys.executable, __file__, "--worker", f"--device={asked.device}", f"--seed={asked.seed}"]
        words += [f"--kind={asked.kind}"] * bool(asked.kind) + [f"--first={first}", f"--batch={batch}"]
        begun = first - 1
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            try:
                for line in worker.stdout:
                    begun, *found = json.loads(line)
                    if found:
                        first = begun + 1
                        yield begun, found[0], found[1]
            finally:
                worker.kill()
        if begun < first:
            # While a batch was compiled: what ends the compiler is found when pairs are compiled alone.
            batch = 1
            continue
        batch, first = BATCH, begun + 1
        slow = worker.returncode == -signal.SIGPROF
        yield begun, "slow" if slow else "crashed", f"the process ended with code {worker.returncode}"


def work(asked: Asked, first: int, batch: int) -> None:
    """Try pairs from one on, in batches, until one has a race; a line is written before and after each.

    A batch of one pair is followed by whole ones: it is for a pair that ends the compiler.
    """
    log = Path(tempfile.mkdtemp(prefix="fuzz-gpu-")) / "races"
    os.environ |= {"OCLGRIND_DATA_RACES": "1", "OCLGRIND_LOG": str(log)}
    end = first + BATCH
    while True:
        if batch == 1:
            say(first)
        signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)
        numbers = range(first, first + batch)
        verdicts = run_batch(asked, numbers)
        for number in numbers:
            say(number)
            signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)
            verdict, message = next(verdicts)
            signal.setitimer(signal.ITIMER_PROF, 0)
            if log.exists() and (text := log.read_text(errors="replace").strip()):
                # The simulator reports a thousand errors and then no more: a new process follows.
                say(number, "wrong", f"{text.splitlines()[0]} ... {message}")
                return
            say(number, verdict, message)
        first += batch
        batch = BATCH if first >= end else batch


def say(*words: object) -> None:
    """Write a line for the parent."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


class Asked(NamedTuple):
    """What is tried.

    Args:
        device: a part of a device's name, or `INTERPRETER`.
        seed: of all draws.
        kind: of steps, one of `KINDS`; empty for any.
    """

    device: str
    seed: int
    kind: str


@dataclass(frozen=True)
class Pair:
    """A program with kernels.

    Args:
        program: what is computed.
        candidate: the schedule.
        kernels: how; only equal kernels have equal names.
        sources: their texts, one by one, after that of their functions.
        inputs: of the program.
        expected: its outputs.
    """

    program: Program
    candidate: Candidate
    kernels: GpuProgram
    sources: Sequence[str]
    inputs: Arrays
    expected: Mapping[str, Inexact]


def run_batch(asked: Asked, numbers: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Compile the kernels of pairs together, then return the verdict and message of each."""
    pairs = [draw_pair(asked, number) for number in numbers]
    made = [pair for pair in pairs if isinstance(pair, Pair)]
    quick = numbers[0] // BATCH % SLOWLY > 0
    built = compiled(asked.device, made, quick=quick) if made and asked.device != INTERPRETER else None
    return (judge(pair, built) if isinstance(pair, Pair) else pair for pair in pairs)


def draw_pair(asked: Asked, number: int) -> Pair | tuple[str, str]:
    """Draw a pair, or return the verdict and message that there is none."""
    device, seed, kind = asked
    which = number // OF_PROGRAM
    program = _product_with(kind, rng(seed, which)) if kind else _program(rng(seed, which), which)
    if points(program) > MOST_POINTS.get(device, 200_000) and not (kind or _is_product(which)):
        return "large", ""
    special = number % 2 == 1
    _, inputs, expected = prepared(program.text, special, seed)
    gpu = Gpu(block_size=256, shared=24 << 10, tensor=True, groups=kind == "bulk") if kind else _gpu(number)
    space = GpuSpace(program, Target("fuzzed", gpu.features))
    try:
        candidate = (
            _candidate_with(kind, space, program.size, number, seed)
            if kind
            else _candidate(space, number, seed)
        )
        if candidate is None:
            return "large", ""
        kernels = space.kernels(candidate)
    except ScheduleError as error:
        return "refused", str(error)
    return Pair(program, candidate, *named_by_text(kernels), inputs, expected)


def named_by_text(kernels: GpuProgram) -> tuple[GpuProgram, list[str]]:
    """Name kernels and functions by their text, so that those of several pairs are one OpenCL program.

    Two of five kernels are those of another schedule of the same program, and PoCL compiles and links each by
    itself.
    """
    functions, *texts = re.split(r"^(?=__kernel)", kernel_source(kernels, OPENCL), flags=re.MULTILINE)
    mark, names = _digest(functions), dict[str, str]()
    sources = [re.sub(r"\bp_\w+", rf"\g<0>_{mark}", text) for text in (functions, *texts)]
    for i, kernel in enumerate((*kernels.ahead, *kernels.kernels), 1):
        own_name = re.compile(rf"\b{kernel.name}\b")
        names[kernel.name] = f"run_{_digest(own_name.sub('', sources[i]))}"
        sources[i] = own_name.sub(names[kernel.name], sources[i])
    ahead, launched = (
        tuple(replace(kernel, name=names[kernel.name]) for kernel in found)
        for found in (kernels.ahead, kernels.kernels)
    )
    return replace(kernels, ahead=ahead, kernels=launched), sources


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def compiled(device: str, pairs: Sequence[Pair], *, quick: bool) -> dict[int, OpenClDevice | PlanishError]:
    """Compile kernels together, or each pair's where that fails; return what has those of each pair."""
    from planish.levels.loops.gpu.opencl import OpenClDevice

    os.environ["PYOPENCL_BUILD_OPTIONS"] = "-cl-opt-disable" if quick and device == "portable" else ""
    sources = dict.fromkeys(source for pair in pairs for source in pair.sources)
    try:
        whole = OpenClDevice("\n".join(sources), device)
        return dict.fromkeys(map(id, pairs), whole)
    except PlanishError:
        return {id(pair): _alone("\n".join(pair.sources), device) for pair in pairs}


def _alone(text: str, device: str) -> OpenClDevice | PlanishError:
    from planish.levels.loops.gpu.opencl import OpenClDevice

    try:
        return OpenClDevice(text, device)
    except PlanishError as error:
        return error


def judge(pair: Pair, built: Mapping[int, OpenClDevice | PlanishError] | None) -> tuple[str, str]:
    """Execute a pair, on a device or by the interpreter, and compare its outputs with the answer."""
    try:
        outputs = execute(pair.kernels, pair.inputs) if built is None else launched(pair, built[id(pair)])
        message = differences(outputs, pair.expected)
    except (PlanishError, TreeFault) as error:
        message = str(error)
    return ("wrong", f"{message}\n  {pair.program.text}\n  {pair.candidate}") if message else ("right", "")


PRODUCTS = (
    "C[m,n] += A[m,k] * B[k,n]",
    "C[m,n] += A[m,k] * B[n,k]",
    "C[m,n] += A[k,m] * B[k,n]",
    "C[n,m] += A[k,m] * B[n,k]",
    "C[b,m,n] += A[b,m,k] * B[b,k,n]",
    "C[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(C[m,n] + v[n])",
    "C[m,n] += A[k,m] * pad(I[k, n + r - 1], 0)",
    "C[m,n] += A[m,k] * B[k,n]; D[m,p] += C[m,n] * E[n,p]",
)
"""What tensor cores compute, if the types are narrow."""


def _is_product(which: int) -> bool:
    """Return whether a program is one of `PRODUCTS`: each fourth, for a GPU with tensor cores."""
    return which % 4 == 0


def _product_with(kind: str, drawn: np.random.Generator) -> Program:
    """Draw a product in whose schedules a kind of step is likely: rows of powers of two, or of 16 bytes."""
    dtype = str(drawn.choice(KINDS[kind]))
    text = str(drawn.choice(PRODUCTS[:6]))
    # Small ones, as a product of 64 x 32 x 48 takes a second on the simulator; groups of warps have 64 rows.
    m = 8 * int(drawn.integers(8, 13) if kind == "bulk" else drawn.integers(2, 6))
    n, k = 8 * int(drawn.integers(2, 6)), 16 * int(drawn.integers(2, 5))
    sizes = {"m": m, "n": n, "k": k, "b": int(drawn.integers(1, 3))}
    if drawn.random() < 0.5:
        sizes |= {"m": n, "n": m}
    used = {name: size for name, size in sizes.items() if re.search(rf"\b{name}\b", text)}
    return parse(text, used, {}, dtype)


def _candidate_with(
    kind: str, space: GpuSpace, size: Mapping[str, int], number: int, seed: int
) -> Candidate | None:
    """Draw a schedule with a kind of step; None where none of some has it."""

    def has(step: Step) -> bool:
        if kind == "swizzle":
            return isinstance(step, SharedTile) and step.swizzle
        return isinstance(step, BulkCopies if kind == "bulk" else TensorTile)

    for turn in range(TURNS):
        drawn = rng(seed, number, 2, turn)
        with suppress(PlanishError):
            found = _with_bulk_copies(drawn, size) if kind == "bulk" else space.sample(drawn)
            if any(map(has, found.steps)):
                require_fit(space.kernels(found), 1024, 30 << 10)
                return found
    return None


def _with_bulk_copies(drawn: np.random.Generator, size: Mapping[str, int]) -> Candidate:
    """Draw a schedule of a product by groups of warps with bulk copies, which few that a space draws have.

    Tiles are not much larger than the product: beyond its edges there is more to simulate, and nothing to
    check.
    """

    def one_of(*options: int) -> int:
        return int(drawn.choice(options))

    def tile(units: int, fragments: Sequence[int]) -> tuple[int, int]:
        fit = [(warps, n) for warps in (1, 2) for n in fragments if warps * n <= units]
        return fit[int(drawn.integers(len(fit)))]

    rows, columns = ("m", "n") if size["m"] >= size["n"] else ("n", "m")
    groups, row_fragments = tile(-(-size[rows] // 64), (1, 2))
    column_warps, column_fragments = tile(-(-size[columns] // 8) * 3 // 2, (1, 2, 4, 8))
    stages = one_of(2, 3, 4, 5)
    sizes = row_fragments, column_fragments
    steps = [
        ReduceTile("k", one_of(*(n for n in (16, 32) if n < size["k"]))),
        *(SharedTile("A"), SharedTile("B")),
        TensorTile(rows, columns, "k", GROUP_WARPS * groups, column_warps, *sizes, GROUP),
        BulkCopies(stages, one_of(0, min(1, stages - 2))),
    ]
    return Candidate((*steps, *[RasterOrder(2)] * one_of(0, 1)))


def _program(drawn: np.random.Generator, which: int) -> Program:
    if not _is_product(which):
        return draw_program(drawn)
    text, dtype = drawn.choice(PRODUCTS), str(drawn.choice(["float16", "bfloat16", "tf32"]))
    most = 40 if which % 8 else 80
    m, n, k = int(drawn.integers(9, most)), int(drawn.integers(7, 28)), 16 * int(drawn.integers(2, 5))
    sizes = {"m": m, "n": n, "k": k, "b": int(drawn.integers(1, 3)), "r": 3, "p": 11}
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


def launched(pair: Pair, device: OpenClDevice | PlanishError) -> Arrays:
    """Execute a pair on a device; raises TreeFault where an input is changed."""
    from planish.levels.loops.gpu.running import CompiledKernels

    if isinstance(device, PlanishError):
        raise device
    program, types = pair.program, pair.program.type
    outputs = {n: np.empty(types[n].shape, numpy_type(types[n].dtype)) for n in program.outputs}
    for array in outputs.values():
        array.reshape(-1).view(np.uint8)[...] = 0x7B
    given = {name: array.copy() for name, array in pair.inputs.items()}
    bound = CompiledKernels(program, pair.kernels, device).bind(given, outputs)
    bound.poison(0xFF)
    bound.repeat(1)
    bound.close()
    for name, array in pair.inputs.items():
        if given[name].tobytes() != array.tobytes():
            raise TreeFault(f"input {name} is changed")
    return outputs


if __name__ == "__main__":
    sys.exit(main())
