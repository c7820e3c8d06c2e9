"""The end of a run: the best few and the baseline, measured again side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from planish.core import Candidate, EvaluatorFactory, Executor, Level, Objective, PlanishError, Task, Trial
from planish.measure import Entrant, LocalExecutor, Plan, Standing, remeasure
from planish.progress import Listener, Progress
from planish.result import Ranked, Result
from planish.settings import Settings
from planish.store import Finalist, Store


@dataclass
class Searched:
    """A run whose search is over.

    Args:
        level: the task's level.
        task: what was tuned.
        settings: how.
        store: where the run is held for writing.
        progress: the run's state.
        trials: all that have an outcome.
        seconds: where the time went, by stage.
        stopped: whether the user ended the search.
        notes: what the evaluators have to tell the user.
        executor: live workers for a comparison that has no noise; None has fresh ones started.
    """

    level: Level
    task: Task
    settings: Settings
    store: Store
    progress: Progress
    trials: Sequence[Trial]
    seconds: dict[str, float]
    stopped: bool
    notes: tuple[str, ...] = ()
    executor: LocalExecutor | None = None


def finish(search: Searched, listener: Listener) -> Result:
    """Compare the best few with the baseline, store the result and give it.

    Ctrl-C leaves the comparison out; the result then is the search's best.

    Args:
        search: at least one of its trials is measured.
        listener: is told when the comparison begins.

    Raises:
        PlanishError: the baseline cannot be measured; the run is stored as finished, without a comparison.
    """
    task, progress, store = search.task, search.progress, search.store
    candidates: list[Candidate] = []
    standings: list[Standing] = []
    started = time.monotonic()
    try:
        candidates = _finalists(search.level, task, search.trials, search.settings.finalists)
        if candidates:
            listener.comparing(progress, len(candidates) + 1)
            standings = _compare(search, candidates)
    except KeyboardInterrupt:
        search.stopped = True
    except PlanishError:  # the baseline fails; what was searched is kept all the same
        store.finish_run(progress.run_id, "finished", search.seconds)
        raise
    search.seconds["compare"] = time.monotonic() - started
    baseline, ranked = _rank(task.objectives[0], candidates, standings)
    if ranked:  # a comparison that was left out must not erase an earlier one
        store.save_result(progress.run_id, [_finalist(r, baseline, task.objectives[0]) for r in ranked])
    store.finish_run(progress.run_id, "stopped" if search.stopped else "finished", search.seconds)
    return _result(search, baseline, ranked)


def _result(search: Searched, baseline: Standing | None, ranked: Sequence[Ranked]) -> Result:
    progress = search.progress
    assert progress.best is not None
    return Result(
        task=search.task,
        run_id=progress.run_id,
        best=progress.best,
        ranked=tuple(ranked),
        baseline=baseline,
        trials=progress.trials,
        failures=progress.failures,
        seconds=search.seconds,
        stopped=search.stopped,
        notes=search.notes,
    )


def _finalists(level: Level, task: Task, trials: Sequence[Trial], count: int) -> list[Candidate]:
    """The best distinct candidates, and the other ways to build the very best."""
    objective = task.objectives[0]
    measured = [(cost, t.index, t.candidate) for t in trials if (cost := t.cost(objective)) is not None]
    best = [candidate for _, _, candidate in sorted(measured, key=lambda m: m[:2])[:count]]
    others = level.variants(task, best[0]) if best else ()
    return list(dict.fromkeys((*best, *others)))


def _compare(search: Searched, candidates: Sequence[Candidate]) -> list[Standing]:
    level, task = search.level, search.task
    factory = level.evaluator(task, final=True)
    entrants = [Entrant(f"#{i}", c, factory) for i, c in enumerate(candidates, 1)]
    baseline = Entrant("baseline", level.baseline(task), factory)
    plan, objective = Plan(seed=search.settings.seed), task.objectives[0]
    if search.executor is None or not objective.exact:
        return remeasure(baseline, entrants, objective, plan)
    return remeasure(baseline, entrants, objective, plan, partial(_lent, search.executor))


def _lent(executor: LocalExecutor, factory: EvaluatorFactory) -> Executor:
    executor.restart_with(factory)
    return _Lent(executor)


class _Lent:
    """Somebody else's executor: it is not ours to close."""

    def __init__(self, executor: LocalExecutor) -> None:
        self.submit = executor.submit

    def close(self) -> None:
        """Do nothing."""


def _rank(
    objective: Objective, candidates: Sequence[Candidate], standings: Sequence[Standing]
) -> tuple[Standing | None, list[Ranked]]:
    """Sort those that did not fail, the best first."""
    if not standings:
        return None, []
    baseline, *others = standings
    ranked = [Ranked(c, s) for c, s in zip(candidates, others, strict=True) if s.ratio is not None]
    return baseline, sorted(ranked, key=lambda r: objective.cost(r.standing.median))


def _finalist(ranked: Ranked, baseline: Standing | None, objective: Objective) -> Finalist:
    standing, ratio = ranked.standing, ranked.standing.ratio
    assert ratio is not None
    assert baseline is not None
    better = 1 / ratio.value if objective.direction == "down" else ratio.value
    data: Mapping[str, Any] = {
        "hash": ranked.candidate.hash,
        "verdict": standing.verdict,
        "median": standing.median,
        "samples": list(standing.samples),
        "ratio": [ratio.value, ratio.low, ratio.high],
        "baseline": {"median": baseline.median, "samples": list(baseline.samples)},
    }
    return Finalist(ranked.candidate, better, data)
