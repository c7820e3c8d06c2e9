"""`planish batch` and `planish measure`: kernels that are compiled here, and measured where the GPU is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planish.core import Candidate, Executor, Outcome
    from planish.levels.loops.gpu.batch import Batch

_RESULTS, _CLOCKS = "results.jsonl.gz", "clocks.jsonl"
_SAVED = 50
"""Candidates after which results are saved."""
FINALISTS, ROUNDS = 5, 7
"""Candidates that are measured again, and how often."""


@given.grouped
def batch(
    program: given.Source,
    *,
    reading: given.ProgramOptions,
    count: Annotated[
        int, typer.Option("--trials", metavar="N", min=1, help="How many candidates to draw.")
    ] = 200,
    seed: given.Seed = 0,
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where the batch is written.")
    ],
) -> None:
    """Draw schedules of a program for a GPU, compile them, and write them to be measured elsewhere.

    Kernels that spill registers are left out. No GPU is needed.

        planish batch "C[m,n] += A[m,k] * B[k,n]" --size m=1024,n=1024,k=1024 --target cuda:sm_90 -o DIR
    """
    from planish.cli.output import say
    from planish.cli.request import level_options
    from planish.core import PlanishError
    from planish.levels.loops.backends import is_gpu
    from planish.levels.loops.gpu.batch import write_batch
    from planish.levels.loops.level import LoopsLevel
    from planish.tuning.api import task_of
    from planish.tuning.settings import Settings

    level = LoopsLevel()
    read = level.load(program, level_options(reading))
    if not is_gpu(read.backend):
        raise PlanishError("a batch is for a GPU", "Add --target cuda:sm_90, or another target.")
    found = write_batch(task_of(level, read, Settings()), count, seed, folder)
    left_out = f"{found.spilled} that spill registers and {found.refused} that the compiler refuses left out"
    say(f"wrote {found.kept} candidates to {folder}; {left_out}")
    say(f"\nplanish measure {folder}")


def measure(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders that planish batch wrote.")
    ],
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", help="For all of them, in equal parts.")
    ] = None,
) -> None:
    """Verify and time the candidates of batches on this machine's GPU, and record the results.

    A candidate that crashes or hangs ends its worker alone. The same command resumes. The best are measured
    again at the end, interleaved with the untuned kernel, and with cuBLAS or cuDNN and Triton where PyTorch
    is installed. Results are in DIR/results.jsonl.gz, clocks in DIR/clocks.jsonl.
    """
    import time

    from planish.levels.loops.gpu.batch import read_batch
    from planish.levels.loops.gpu.evaluator import require_device

    end = None if seconds is None else time.monotonic() + seconds
    batches = [read_batch(folder) for folder in folders]
    for number, found in enumerate(batches):
        require_device(found.target)
        now = time.monotonic()
        # An equal part of what is left: a batch that is done early leaves its own to the others.
        _measure(found, None if end is None else now + (end - now) / (len(batches) - number))


def _measure(found: Batch, end: float | None) -> None:
    import math

    from planish.cli.output import say
    from planish.core import Failed, Task, evaluate
    from planish.core.recording import Recording, load_recording, save_recording
    from planish.levels.loops.gpu.clocks import record_clocks
    from planish.levels.loops.gpu.evaluator import GpuEvaluatorSpec
    from planish.levels.loops.level import LoopsLevel
    from planish.measure.executors import LocalExecutor
    from planish.sandbox import Limits

    level = LoopsLevel()
    objective = level.objectives["time_s"]
    task = Task(found.program, found.target, (objective,), level.version)
    path = found.folder / _RESULTS
    known = load_recording(path) if path.is_file() else Recording(task.text, level.spaces[0], objective, {})
    outcomes: dict[str, Outcome] = dict(known.outcomes)
    taken = {name: dict(spent) for name, spent in known.seconds.items()}

    def save() -> None:
        save_recording(Recording(task.text, level.spaces[0], objective, outcomes, taken), path)

    spec = GpuEvaluatorSpec(found.program, found.target, folder=found.folder.resolve())
    libraries = _libraries(found)
    record_clocks(found.folder / _CLOCKS, found.target)

    def complete(executor: LocalExecutor, candidates: Iterable[Candidate]) -> None:
        left = [candidate for candidate in candidates if candidate.hash not in outcomes]
        for number, each in enumerate(evaluate(executor, left, math.inf if end is None else end), 1):
            outcomes[each.candidate.hash] = each.outcome
            taken[each.candidate.hash] = dict(each.seconds)
            if number % _SAVED == 0:
                save()
        save()

    with LocalExecutor(spec, workers=1) as executor:
        complete(executor, found.candidates)
    _summarize(found, outcomes)
    # PyTorch is imported, and Triton tries its variants, within the limits of an evaluation.
    with LocalExecutor(spec, workers=1, limits=Limits(build=120, verify=120, run=60)) as executor:
        complete(executor, libraries.values())
        for name, candidate in libraries.items():
            if isinstance(outcome := outcomes.get(candidate.hash), Failed):
                say(f"  {name} is not compared: {outcome.detail}")
        executor.serve(GpuEvaluatorSpec(found.program, found.target, True, found.folder.resolve()))
        _compare(found, libraries, outcomes, executor)
    for line in record_clocks(found.folder / _CLOCKS, found.target):
        say(f"  {line}")


def _summarize(found: Batch, outcomes: Mapping[str, Outcome]) -> None:
    """Print how many candidates were measured, and why others were not."""
    from planish.cli.output import say
    from planish.core import Measured

    known = [outcomes[candidate.hash] for candidate in found.candidates if candidate.hash in outcomes]
    failed = Counter(each.reason for each in known if not isinstance(each, Measured))
    reasons = "".join(f"; {count} {reason}" for reason, count in failed.most_common())
    say(f"{found.folder}: {found.program.text.partition(' | ')[0]} on {found.target.processor}")
    say(f"  {len(known)} of {len(found.candidates)} candidates measured{reasons}")


def _libraries(found: Batch) -> dict[str, Candidate]:
    """Return the libraries that compute the program on this machine: name to candidate."""
    from planish.core import Candidate
    from planish.levels.loops.backends import Library
    from planish.levels.loops.gpu.devices import kind_and_name
    from planish.levels.loops.gpu.libraries import LIBRARIES, has_library, library_call

    if kind_and_name(found.target)[0] != "cuda" or library_call(found.program) is None:
        return {}
    return {name: Candidate((Library(name),)) for name in LIBRARIES if has_library(name)}


def _compare(
    found: Batch, libraries: dict[str, Candidate], outcomes: dict[str, Outcome], executor: Executor
) -> None:
    """Measure the best again, interleaved with the untuned kernel and libraries, and print them."""
    from statistics import median

    from planish.cli.output import say, table
    from planish.core import Measured
    from planish.core.wording import amount
    from planish.measure.comparison import PairedMeasurement

    times = {
        c: o.values["time_s"] for c in found.candidates if isinstance(o := outcomes.get(c.hash), Measured)
    }
    untuned = found.candidates[0]
    best = sorted((c for c in times if c != untuned), key=times.__getitem__)[:FINALISTS]
    if not best or untuned not in times:
        say("  nothing to compare: the untuned kernel, or all others, could not be measured")
        return
    right = {n: c for n, c in libraries.items() if isinstance(outcomes.get(c.hash), Measured)}
    names = ["untuned", *(f"#{number}" for number in range(1, len(best) + 1)), *right]
    again = PairedMeasurement(executor).measure([untuned, *best, *right.values()], ROUNDS)
    samples = [[o.values["time_s"] for o in rounds if isinstance(o, Measured)] for rounds in again]
    rows: list[list[str]] = []
    for name, own in zip(names, samples, strict=True):
        if own and samples[0]:
            time, ratio = median(own), median(a / b for a, b in zip(samples[0], own, strict=False))
            rows.append([name, amount(time, "s"), f"{found.program.flops / time / 1e9:.0f}", f"{ratio:.2f}"])
    table(["candidate", "time", "GFLOPS", "gain"], rows, ["time", "GFLOPS", "gain"])

    for number, candidate in enumerate(best, 1):
        say(f"#{number}: {candidate}")
