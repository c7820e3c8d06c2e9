"""The decision on an einsum, as the store keeps it: no later process tunes or times again."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planish.core import Candidate, Task
from planish.einsum.contraction import Contraction
from planish.einsum.deciding import Choice
from planish.einsum.ways import Way, compile_kernel
from planish.loops.level import LoopsLevel
from planish.loops.library import Library
from planish.measure.interval import ratio
from planish.results.codec import encode
from planish.results.comparison import Compared, Comparison, Finalist, Measurement
from planish.store import ResultRow, Store

NUMPY = Candidate((Library("numpy"),))
ATTEMPTS = 3
"""Where so often no kernel could be measured within the budget, what was the fastest is kept for good."""
COMPARISONS = 10
"""Where so many comparisons were disturbed, what the last one said is kept."""


def decided(known: ResultRow | None, contraction: Contraction, task: Task, ways: Sequence[Way]) -> Way | None:
    """Give the way that an earlier process chose; None where the store knows none that is possible here."""
    call = known.data.get("call") if known else None
    if known is None or not isinstance(call, Mapping) or not is_final(call):
        return None
    if call.get("way") != "kernel":
        return next((way for way in ways if way.name == call.get("way")), None)
    cores = min(int(call.get("cores", 1)), task.target.cores)
    compiled = compile_kernel(contraction, known.candidate, LoopsLevel().target(contraction.program, cores))
    return Way("kernel", compiled, cores, known.candidate)


def was_measured(known: ResultRow) -> bool:
    """Whether the kernel that was chosen is one of those that were tuned, and not a guess."""
    return bool(known.data.get("call", {"kernels": 1}).get("kernels", 1))


def is_final(call: Mapping[str, Any]) -> bool:
    """Whether a decision is kept; another process, or a later call, decides again where it is not."""
    attempts = call.get("attempts", 0)
    if not call.get("kernels"):
        return attempts >= ATTEMPTS
    return not call.get("disturbed") or attempts >= COMPARISONS


def record(store: Store, task: Task, choice: Choice, kernels: int, known: ResultRow | None) -> bool:
    """Store the decision as the result of the task's newest run, and tell whether it is kept.

    Args:
        store: open.
        task: of the contraction.
        choice: what was chosen.
        kernels: how many there were to choose from, guesses apart.
        known: what the store had.
    """
    way, samples = choice.way, choice.samples
    run = next(iter(store.runs(task.key, limit=1)), None)
    if run is None or run.status == "running":
        return False
    attempts = 1 + (known.data.get("call", {}).get("attempts", 0) if known else 0)
    compared = [
        {"way": w.name, "cores": w.cores, "seconds": statistics.median(t)} for w, t in samples.items()
    ]
    call = {
        "way": way.name,
        "cores": way.cores,
        "kernels": kernels,
        "attempts": attempts,
        "compared": compared,
        **({} if choice.sure else {"disturbed": True}),
    }
    row = _row(task, way, samples)
    store.resume_run(run.id)
    store.save_result(run.id, [replace(row, data={**row.data, "call": call})])
    store.finish_run(run.id, "finished" if run.status == "interrupted" else run.status, run.seconds)
    return is_final(call)


def _row(task: Task, way: Way, samples: Mapping[Way, Sequence[float]]) -> ResultRow:
    """Judge what was chosen beside the best of NumPy's ways, as at the end of any run."""
    objective = task.objectives[0]
    numpys = min((w for w in samples if w.name != "kernel"), key=lambda w: statistics.median(samples[w]))
    own, theirs = samples[way], samples[numpys]
    rounds = min(len(own), len(theirs))
    over = ratio([own[:rounds]], [theirs[:rounds]])
    base = Measurement(objective, statistics.median(theirs), samples=tuple(theirs))
    found = replace(
        base, median=statistics.median(own), ratio=over, verdict=over.verdict(objective), samples=tuple(own)
    )
    chosen = Finalist(candidate=way.candidate or NUMPY, measured={objective.name: found})
    (row,) = encode(Comparison((chosen,), Compared(name="baseline", measured={objective.name: base})))
    return row
