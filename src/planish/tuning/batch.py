"""Tuning many programs one after the other: the functions of a module, the files of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from planish.budget import Budget
from planish.core import (
    AllFailedError,
    Candidate,
    Executor,
    Failed,
    Level,
    Lost,
    Measured,
    Objective,
    PlanishError,
    Program,
    Start,
    StoppedError,
    Task,
    evaluate,
)
from planish.core.checked_outcome import checked_for
from planish.executors import LocalExecutor
from planish.levels import load_program
from planish.results.result import Result
from planish.settings import Settings
from planish.store import Store, store_at
from planish.tuning.api import task_of, tune_program
from planish.tuning.run import count_workers

DEFAULT_BUDGET = Budget(seconds=1)
"""For each part."""


@dataclass(frozen=True)
class Part:
    """What came of one part.

    Args:
        name: the part's.
        objective: what was improved.
        run_id: its run in the store.
        start: the objective's value of the unchanged program.
        baseline: that of the baseline.
        best: that of the search's best candidate, which may be worse than the baseline.
        candidate: that candidate.
        trials: how many candidates were tried.
    """

    name: str
    objective: Objective
    run_id: str
    start: float
    baseline: float
    best: float
    candidate: Candidate
    trials: int

    @property
    def kept(self) -> float:
        """The value with the baseline as a backup: of the best, or of the baseline where that is better."""
        cost = self.objective.cost
        return min(self.best, self.baseline, key=cost)

    @property
    def saved(self) -> float:
        """How much less the best is than the baseline; negative for a loss."""
        return self.objective.cost(self.baseline) - self.objective.cost(self.best)


@dataclass(frozen=True)
class Unmeasured:
    """A part of which nothing can be measured.

    Args:
        name: the part's.
        reason: why.
    """

    name: str
    reason: str


@dataclass(frozen=True)
class Totals:
    """What came of all parts: the columns of the thesis's figure 4.5.

    Args:
        improved: parts that are better than the baseline.
        regressed: parts that are worse.
        saved: by how much the improved ones are better, in all.
        lost: by how much the others are worse, in all.
        baseline: the baseline's value, in all.
    """

    improved: int
    regressed: int
    saved: float
    lost: float
    baseline: float

    @property
    def overall(self) -> float:
        """The improvement over the baseline as a share of it; negative for a loss."""
        return (self.saved - self.lost) / self.baseline if self.baseline else 0.0


def totals(parts: Sequence[Part], *, backup: bool) -> Totals:
    """Add up what came of all parts.

    Args:
        parts: of one objective.
        backup: whether the baseline is taken where the search's best is worse; then nothing is lost.
    """
    gains = [max(0.0, part.saved) if backup else part.saved for part in parts]
    return Totals(
        improved=sum(gain > 0 for gain in gains),
        regressed=sum(gain < 0 for gain in gains),
        saved=sum(gain for gain in gains if gain > 0),
        lost=-sum(gain for gain in gains if gain < 0),
        baseline=sum(part.baseline for part in parts),
    )


def load_parts(source: str, level: str, options: Mapping[str, str]) -> tuple[Level, Mapping[str, Program]]:
    """Read a module of LLVM IR, and give its level, and its functions by name.

    Raises:
        PlanishError: it cannot be read, or is no module of LLVM IR.
    """
    from planish.llvm.backend import open_backend
    from planish.llvm.program import IRProgram
    from planish.llvm.source import functions_of

    found, program = load_program(source, level, options)
    if not isinstance(program, IRProgram):
        raise PlanishError(f"programs of level '{found.name}' have no functions", "Leave --per-function out.")
    return found, functions_of(program, open_backend(program.backend))


def tune_parts(
    level: Level,
    parts: Mapping[str, Program],
    *,
    budget: Budget = DEFAULT_BUDGET,
    settings: Settings | None = None,
    store: Store | str | Path | None = None,
    executor: Executor | None = None,
    start: Start = LocalExecutor,
) -> Iterator[Part | Unmeasured]:
    """Tune programs one after the other, each in a run of its own, with the same workers.

    Args:
        level: of all.
        parts: name to program.
        budget: of each.
        settings: of each.
        store: as for `tune`.
        executor: live workers; None starts some, and ends them.
        start: as for `tune`.

    Yields:
        What came of each, when it is known.

    Raises:
        PlanishError: as `tune`, but for what concerns one part alone; the objective has noise.
        StoppedError: the user ended it; what was found before is stored.
    """
    chosen = settings or Settings()
    with store_at(store) as opened, ExitStack() as stack:
        workers = executor
        for name, program in parts.items():
            task = task_of(level, program, chosen)
            _require_exact(task.objectives[0])
            spec = level.evaluator(task)
            if workers is None:
                workers = stack.enter_context(start(spec, workers=count_workers(chosen)))
            else:
                # The same processes for all parts: to start them takes longer than to tune a small function.
                workers.serve(spec)
            found, stopped = _tuned(name, level, task, budget, chosen, opened, workers, start)
            yield found
            if stopped:
                raise StoppedError(f"stopped at {name}", "The same command goes on.")


def _tuned(
    name: str,
    level: Level,
    task: Task,
    budget: Budget,
    settings: Settings,
    store: Store,
    workers: Executor,
    start: Start,
) -> tuple[Part | Unmeasured, bool]:
    """Tune one program; gives what came of it, and whether the user ended it."""
    ends = _ends(level, task, workers)
    if not isinstance(ends, tuple):
        return Unmeasured(name, f"{ends.stage}: {ends.reason}: {ends.detail}"), False
    try:
        result = tune_program(
            level,
            task.program,
            budget=budget,
            settings=settings,
            store=store,
            executor=workers,
            start=start,
        )
    except AllFailedError as error:
        return Unmeasured(name, str(error)), False
    return _part(name, result, *ends), result.stopped


def _require_exact(objective: Objective) -> None:
    if not objective.exact:
        what = f"{objective.name} has noise, and many programs are not compared by it"
        raise PlanishError(what, "Tune them one by one, or ask for another objective.")


def _ends(level: Level, task: Task, workers: Executor) -> tuple[float, float] | Failed | Lost:
    """Measure the unchanged program and the baseline."""
    ends = [Candidate(), level.baseline(task)]
    values: dict[int, float] = {}
    for answer in evaluate(workers, ends):
        outcome = checked_for(answer.outcome, task.objectives)
        if not isinstance(outcome, Measured):
            return outcome
        values[answer.position] = outcome.values[task.objectives[0].name]
    return values[0], values[1]


def _part(name: str, result: Result, start: float, baseline: float) -> Part:
    assert isinstance(result.best.outcome, Measured)
    value = result.best.outcome.values[result.objective.name]
    return Part(
        name, result.objective, result.run_id, start, baseline, value, result.best.candidate, result.trials
    )
