"""Batches: candidates that are compiled on one machine, and measured on another.

A machine with a GPU may be available for minutes only. So kernels are compiled beforehand, those that spill
registers are left out, and a worker on that machine verifies and times the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from planish.core import (
    Candidate,
    PlanishError,
    ScheduleError,
    Target,
    Task,
    candidate_from_json,
    rng,
)
from planish.core.hashing import versioned
from planish.levels.loops.gpu.cuda import CompiledCuda, compile_all, cubin_path
from planish.levels.loops.gpu.devices import kind_and_name
from planish.levels.loops.gpu.evaluator import source_for
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.gpu.steps import GPU_STEPS
from planish.levels.loops.lang.parse import parse_canonical
from planish.levels.loops.lang.program import Program

_FILE = "batch.json"
_DRAWS = 20
"""Draws for each candidate that is wanted: in a small space many are equal."""


class BatchSummary(NamedTuple):
    """Counts of a batch that was written.

    Args:
        kept: candidates.
        spilled: those that were left out because their threads spill registers.
        refused: those that the compiler refused.
    """

    kept: int
    spilled: int
    refused: int


@dataclass(frozen=True)
class Batch:
    """Candidates of a program that can be measured.

    Args:
        program: what they compute.
        target: that they were made for.
        candidates: the untuned program first.
        folder: where their cubins are.
    """

    program: Program
    target: Target
    candidates: Sequence[Candidate]
    folder: Path


def write_batch(task: Task[Program], count: int, seed: int, folder: Path) -> BatchSummary:
    """Draw candidates, compile them for the task's GPU, and write both.

    Args:
        task: of a program, for a device.
        count: how many candidates are drawn, beside the untuned program and the default schedule.
        seed: of the draws.
        folder: where they are written; it is made if it is not there.

    Raises:
        PlanishError: nothing can be written there.
    """
    kind, arch = kind_and_name(task.target)
    space = GpuSpace(task.program, task.target)
    drawn = list(dict.fromkeys([Candidate(), space.start(), *_drawn(space, count, seed)]))
    chosen: dict[str, Candidate] = {}
    for candidate in drawn:
        # Different candidates may make the same kernels.
        chosen.setdefault(source_for(space.kernels(candidate), task.target), candidate)
    found = compile_all(chosen, arch) if kind == "cuda" else {}
    compiled = {source: made for source, made in found.items() if isinstance(made, CompiledCuda)}
    kept = chosen
    if kind == "cuda":
        kept = {s: chosen[s] for s, made in compiled.items() if not made.spills or not chosen[s].steps}
    _write(task, kept, compiled, folder)
    refused = len(found) - len(compiled)
    return BatchSummary(len(kept), len(chosen) - len(kept) - refused, refused)


def _drawn(space: GpuSpace, count: int, seed: int) -> Iterator[Candidate]:
    known: dict[Candidate, None] = {}
    for number in range(count * _DRAWS):
        if len(known) >= count:
            break
        try:
            known[space.sample(rng(seed, number))] = None
        except ScheduleError:
            continue
    return iter(known)


def _write(
    task: Task[Program], kept: Mapping[str, Candidate], compiled: Mapping[str, CompiledCuda], folder: Path
) -> None:
    """Write candidates, by their source, and what was compiled."""
    rows: list[dict[str, Any]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source, candidate in kept.items():
            row: dict[str, Any] = {"steps": [step.to_json() for step in candidate.steps]}
            if cuda := compiled.get(source):
                cubin_path(folder, source).write_bytes(cuda.cubin)
                row["statistics"] = {name: asdict(found) for name, found in cuda.statistics.items()}
            rows.append(row)
        record = {"program": task.program.text, "target": json.loads(task.target.text), "candidates": rows}
        (folder / _FILE).write_text(json.dumps(versioned(record)) + "\n")
    except OSError as error:
        raise PlanishError(
            f"cannot write to '{folder}': {error.strerror}", "Choose another folder."
        ) from error


def read_batch(folder: Path) -> Batch:
    """Read a batch back.

    Raises:
        PlanishError: there is none, or it cannot be read.
    """
    try:
        record = json.loads((folder / _FILE).read_text())
        found = Target.of_json(record["target"])
        candidates = [candidate_from_json(row["steps"], GPU_STEPS) for row in record["candidates"]]
        return Batch(parse_canonical(record["program"]), found, candidates, folder)
    except (OSError, ValueError, LookupError, TypeError) as error:
        what = f"'{folder}' holds no batch: {type(error).__name__}"
        raise PlanishError(what, "Write one: planish batch PROGRAM --target cuda:sm_90 -o DIR.") from error
