"""Stored selections of einsum backends, so that no later process tunes or times again."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planish.core import Candidate, Task
from planish.einsum.backends import Contraction, EinsumBackend, compile_kernel
from planish.einsum.selection import Selection
from planish.levels.loops.backends import Library, library_of
from planish.levels.loops.level import LoopsLevel
from planish.measure.intervals import ratio
from planish.store import HeldError, Reader, ResultRow, Store
from planish.tuning.comparison import Compared, Comparison, Finalist, Measurement
from planish.tuning.comparison_codec import encode
from planish.tuning.result import OF_CALLS

NUMPY = Candidate((Library("numpy"),))
MODEL_SEARCHER = "model-guided"
"""The searcher that has a model."""
ATTEMPTS = 3
"""After so many in which no kernel could be measured within the budget, the last selection is kept."""
COMPARISONS = 10
"""After so many that others disturbed, the last selection is kept."""


@dataclass(frozen=True)
class TaskHistory:
    """Contents of the store on a task.

    Args:
        decision: the newest selection, with the `call`; None where there is none.
        tuned: the best finalist of the user's own runs; None where there is none.
    """

    decision: ResultRow | None = None
    tuned: ResultRow | None = None

    @property
    def call(self) -> Mapping[str, Any]:
        """Return the data of the selection; empty where there is none."""
        return self.decision.data["call"] if self.decision else {}

    @property
    def is_final(self) -> bool:
        """Return whether the selection is kept, and no run has found another best kernel since."""
        return is_final(self.call) and (self.tuned is None or _named(self.tuned) == self.call.get("tuned"))

    @property
    def kernels(self) -> Sequence[Candidate]:
        """The kernels to compare with NumPy's backends: what was measured and selected, or tuned since."""
        rows = [self.decision] if self.call.get("kernels") else []
        found = (row.candidate for row in (*rows, *([] if self.is_final else [self.tuned])) if row)
        return [*dict.fromkeys(candidate for candidate in found if library_of(candidate) is None)]


def read_history(store: Reader, task: Task) -> TaskHistory:
    """Read the newest selection for a task, and the best kernel that was tuned."""
    rows, began = (
        store.best_results(task, LoopsLevel().steps),
        {r.id: r.started for r in store.runs(task.key)},
    )
    decisions = [row for row in rows if isinstance(row.data.get("call"), Mapping)]
    newest = max(decisions, key=lambda row: began.get(row.run_id, 0.0), default=None)
    return TaskHistory(newest, next((row for row in rows if "call" not in row.data and row.ratio > 0), None))


def stored_backend(
    history: TaskHistory, contraction: Contraction, task: Task, backends: Sequence[EinsumBackend]
) -> EinsumBackend | None:
    """Return the backend that an earlier process selected; None where the store has none for this machine."""
    call = history.call
    if history.decision is None or not history.is_final:
        return None
    if call.get("backend") != "kernel":
        return next((backend for backend in backends if backend.name == call.get("backend")), None)
    cores, chosen = min(int(call.get("cores", 1)), task.target.cores), history.decision.candidate
    compiled = compile_kernel(contraction, chosen, LoopsLevel().target(contraction.program, cores))
    return EinsumBackend("kernel", compiled, cores, chosen)


def is_final(call: Mapping[str, Any]) -> bool:
    """Return whether a selection is kept; another process, or a later call, selects again where it is not."""
    attempts = call.get("attempts", 0)
    if not call.get("kernels"):
        return attempts >= ATTEMPTS
    return not call.get("disturbed") or attempts >= COMPARISONS


def record(store: Store, task: Task, selection: Selection, kernels: int, history: TaskHistory) -> bool:
    """Store a selection as the result of a run of its own; return whether it is kept from now on.

    What the user's own runs found stays as it is.

    Args:
        store: open.
        task: of the contraction.
        selection: the backend and its times.
        kernels: how many there were to choose from, guesses apart.
        history: what the store had before.
    """
    backend, samples = selection.backend, selection.samples
    compared = [
        {"backend": w.name, "cores": w.cores, "seconds": statistics.median(t)} for w, t in samples.items()
    ]
    call = {
        "backend": backend.name,
        "cores": backend.cores,
        "kernels": kernels,
        "attempts": 1 + history.call.get("attempts", 0),
        "tuned": _named(history.tuned),
        "compared": compared,
        **({} if selection.conclusive else {"disturbed": True}),
    }
    row = _row(task, backend, samples)
    run = next((run.id for run in store.runs(task.key) if run.options == OF_CALLS), None)
    try:
        if run is None:
            run = store.begin_run(task, searcher=MODEL_SEARCHER, space="template", seed=0, options=OF_CALLS)
        else:
            store.resume_run(run)
    except HeldError:  # another process stores its selection just now
        return False
    store.save_result(run, [replace(row, data={**row.data, "call": call})])
    store.finish_run(run)
    return is_final(call)


def _named(row: ResultRow | None) -> str | None:
    return row.candidate.hash if row else None


def _row(task: Task, backend: EinsumBackend, samples: Mapping[EinsumBackend, Sequence[float]]) -> ResultRow:
    """Compare the selection with the best of NumPy's backends, as at the end of any run."""
    objective = task.objectives[0]
    numpys = min((w for w in samples if w.name != "kernel"), key=lambda w: statistics.median(samples[w]))
    own, theirs = samples[backend], samples[numpys]
    rounds = min(len(own), len(theirs))
    over = ratio([own[:rounds]], [theirs[:rounds]])
    base = Measurement(objective, statistics.median(theirs), samples=tuple(theirs))
    found = replace(
        base, median=statistics.median(own), ratio=over, verdict=over.verdict(objective), samples=tuple(own)
    )
    chosen = Finalist(candidate=backend.candidate or NUMPY, measured={objective.name: found})
    (row,) = encode(Comparison((chosen,), Compared(name="baseline", measured={objective.name: base})))
    return row
