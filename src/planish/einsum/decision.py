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
from planish.measure.standing import Standing
from planish.results.result import Ranked
from planish.store import Finalist, Store
from planish.tuning.final.state import FinalState
from planish.tuning.final.storing import stored_finalist

NUMPY = Candidate((Library("numpy"),))
ATTEMPTS = 3
"""Where so often no kernel could be measured within the budget, it is NumPy's for good."""
COMPARISONS = 10
"""Where so many comparisons were disturbed, what the last one said is kept."""


def decided(known: Finalist | None, contraction: Contraction, task: Task, ways: Sequence[Way]) -> Way | None:
    """Give the way that an earlier process chose; None where the store knows none that is possible here."""
    call = known.data.get("call") if known else None
    if known is None or not isinstance(call, Mapping) or not is_final(call):
        return None
    if call.get("way") != "kernel":
        return next((way for way in ways if way.name == call.get("way")), None)
    cores = min(int(call.get("cores", 1)), task.target.cores)
    compiled = compile_kernel(contraction, known.candidate, LoopsLevel().target(contraction.program, cores))
    return Way("kernel", compiled, cores, known.candidate)


def is_final(call: Mapping[str, Any]) -> bool:
    """Whether a decision is kept; another process, or a later call, decides again where it is not."""
    attempts = call.get("attempts", 0)
    if not call.get("kernels"):
        return attempts >= ATTEMPTS
    return not call.get("disturbed") or attempts >= COMPARISONS


def record(store: Store, task: Task, choice: Choice, kernels: int, known: Finalist | None) -> bool:
    """Store the decision as the result of the task's newest run, and tell whether it is kept.

    Args:
        store: open.
        task: of the contraction.
        choice: what was chosen.
        kernels: how many there were to choose from.
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
    finalist = _finalist(task, way, samples)
    store.resume_run(run.id)
    store.save_result(run.id, [replace(finalist, data={**finalist.data, "call": call})])
    store.finish_run(run.id, "finished" if run.status == "interrupted" else run.status, run.seconds)
    return is_final(call)


def _finalist(task: Task, way: Way, samples: Mapping[Way, Sequence[float]]) -> Finalist:
    """Judge what was chosen beside the best of NumPy's ways, as at the end of any run."""
    objective = task.objectives[0]
    numpys = min((w for w in samples if w.name != "kernel"), key=lambda w: statistics.median(samples[w]))
    own, theirs = samples[way], samples[numpys]
    rounds = min(len(own), len(theirs))
    over = ratio([own[:rounds]], [theirs[:rounds]])
    base = Standing("baseline", (tuple(theirs),), tuple(theirs), (), None, "no difference")
    standing = Standing("#1", (tuple(own),), tuple(own), (), over, over.verdict(objective))
    member = Ranked(way.candidate or NUMPY, standing, {objective.name: standing})
    return stored_finalist(member, FinalState(baseline={objective.name: base}), task)
