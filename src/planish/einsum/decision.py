"""The decision on an einsum, as the store keeps it: no later process tunes or times again."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from planish.core import Candidate, Task
from planish.einsum.contraction import Contraction
from planish.einsum.ways import Way, compile_kernel
from planish.loops.level import LoopsLevel
from planish.loops.library import Library
from planish.store import Finalist, Store

NUMPY = Candidate((Library("numpy"),))
ATTEMPTS = 3
"""Where so often no kernel could be measured within the budget, it is NumPy's for good."""


def decided(known: Finalist | None, contraction: Contraction, task: Task, ways: Sequence[Way]) -> Way | None:
    """Give the way that an earlier process chose; None where the store knows none that is possible here."""
    call = known.data.get("call") if known else None
    if known is None or not isinstance(call, Mapping):
        return None
    if not call.get("kernels") and call.get("attempts", 0) < ATTEMPTS:
        return None
    if call.get("way") != "kernel":
        return next((way for way in ways if way.name == call.get("way")), None)
    cores = min(int(call.get("cores", 1)), task.target.cores)
    compiled = compile_kernel(contraction, known.candidate, LoopsLevel().target(cores))
    return Way("kernel", compiled, cores, known.candidate)


def record(
    store: Store,
    task: Task,
    way: Way,
    kernels: int,
    samples: Mapping[Way, Sequence[float]],
    known: Finalist | None,
) -> None:
    """Store the decision as the result of the task's newest run.

    Args:
        store: open.
        task: of the contraction.
        way: what was chosen.
        kernels: how many there were to choose from.
        samples: seconds of whole calls, by way.
        known: what the store had.
    """
    medians = {known: statistics.median(times) for known, times in samples.items()}
    theirs = min((m for known, m in medians.items() if known.name != "kernel"), default=None)
    told = [{"way": w.name, "cores": w.cores, "seconds": m} for w, m in medians.items()]
    attempts = 1 + (known.data.get("call", {}).get("attempts", 0) if known else 0)
    call = {"way": way.name, "cores": way.cores, "kernels": kernels, "attempts": attempts, "compared": told}
    data: dict[str, Any] = {"call": call}
    taken = medians.get(way)
    if taken is not None:
        data |= {"median": taken, "samples": list(samples[way])}
    ratio = theirs / taken if theirs and taken else 1.0
    run = next(iter(store.runs(task.key, limit=1)), None)
    if run is None or run.status == "running":
        return
    store.resume_run(run.id)
    store.save_result(run.id, [Finalist(way.candidate or NUMPY, ratio, data)])
    store.finish_run(run.id, "finished" if run.status == "interrupted" else run.status, run.seconds)
