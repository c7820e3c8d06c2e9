"""The decision on an einsum, as the store keeps it: no later process tunes or times again."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planish.core import Candidate, Task
from planish.einsum.backends import Contraction, Way, compile_kernel
from planish.einsum.selection import Choice
from planish.levels.loops.build import Library, library_of
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
"""Where so often no kernel could be measured within the budget, what was the fastest is kept for good."""
COMPARISONS = 10
"""Where so many comparisons were disturbed, what the last one said is kept."""


@dataclass(frozen=True)
class Known:
    """What the store knows of a task.

    Args:
        decision: what was chosen, with the `call`; None where nothing was.
        tuned: the best finalist of the user's own runs; None where there is none.
    """

    decision: ResultRow | None = None
    tuned: ResultRow | None = None

    @property
    def call(self) -> Mapping[str, Any]:
        """Return what is kept of the decision; empty where there is none."""
        return self.decision.data["call"] if self.decision else {}

    @property
    def is_final(self) -> bool:
        """Return whether the decision is kept, and no run has found another best kernel since."""
        return is_final(self.call) and (self.tuned is None or _named(self.tuned) == self.call.get("tuned"))

    @property
    def kernels(self) -> Sequence[Candidate]:
        """The kernels to compare with NumPy's ways, which were decided on (not guessed) or tuned since."""
        rows = [self.decision] if self.call.get("kernels") else []
        found = (row.candidate for row in (*rows, *([] if self.is_final else [self.tuned])) if row)
        return [*dict.fromkeys(candidate for candidate in found if library_of(candidate) is None)]


def known_of(store: Reader, task: Task) -> Known:
    """Look up what the store knows of a task: the newest decision, and the best that was tuned."""
    rows, began = (
        store.best_results(task, LoopsLevel().steps),
        {r.id: r.started for r in store.runs(task.key)},
    )
    decisions = [row for row in rows if isinstance(row.data.get("call"), Mapping)]
    newest = max(decisions, key=lambda row: began.get(row.run_id, 0.0), default=None)
    return Known(newest, next((row for row in rows if "call" not in row.data and row.ratio > 0), None))


def decided(known: Known, contraction: Contraction, task: Task, ways: Sequence[Way]) -> Way | None:
    """Return the way that an earlier process chose; None where the store knows none that is possible here."""
    call = known.call
    if known.decision is None or not known.is_final:
        return None
    if call.get("way") != "kernel":
        return next((way for way in ways if way.name == call.get("way")), None)
    cores, chosen = min(int(call.get("cores", 1)), task.target.cores), known.decision.candidate
    compiled = compile_kernel(contraction, chosen, LoopsLevel().target(contraction.program, cores))
    return Way("kernel", compiled, cores, chosen)


def is_final(call: Mapping[str, Any]) -> bool:
    """Return whether a decision is kept; another process, or a later call, decides again where it is not."""
    attempts = call.get("attempts", 0)
    if not call.get("kernels"):
        return attempts >= ATTEMPTS
    return not call.get("disturbed") or attempts >= COMPARISONS


def record(store: Store, task: Task, choice: Choice, kernels: int, known: Known) -> bool:
    """Store the decision as the result of a run of its own, and tell whether it is kept.

    What the user's own runs found stays as it is.

    Args:
        store: open.
        task: of the contraction.
        choice: what was chosen.
        kernels: how many there were to choose from, guesses apart.
        known: what the store had.
    """
    way, samples = choice.way, choice.samples
    compared = [
        {"way": w.name, "cores": w.cores, "seconds": statistics.median(t)} for w, t in samples.items()
    ]
    call = {
        "way": way.name,
        "cores": way.cores,
        "kernels": kernels,
        "attempts": 1 + known.call.get("attempts", 0),
        "tuned": _named(known.tuned),
        "compared": compared,
        **({} if choice.sure else {"disturbed": True}),
    }
    row = _row(task, way, samples)
    run = next((run.id for run in store.runs(task.key) if run.options == OF_CALLS), None)
    try:
        if run is None:
            run = store.begin_run(task, searcher=MODEL_SEARCHER, space="template", seed=0, options=OF_CALLS)
        else:
            store.resume_run(run)
    except HeldError:  # another process stores what it decided just now
        return False
    store.save_result(run, [replace(row, data={**row.data, "call": call})])
    store.finish_run(run)
    return is_final(call)


def _named(row: ResultRow | None) -> str | None:
    return row.candidate.hash if row else None


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
