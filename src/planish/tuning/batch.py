"""Many programs, tuned one after the other, and their results on record for continuous integration.

The programs are the functions of a module or the files of a benchmark. Records are compared with new
results, and what has become worse is an error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from planish.core import (
    AllFailedError,
    Candidate,
    Executor,
    ExecutorFactory,
    Failed,
    Level,
    Lost,
    Measured,
    Objective,
    PlanishError,
    Program,
    StoppedError,
    Task,
    evaluate,
)
from planish.core.files import StrPath, replace_text
from planish.core.hashing import SCHEMA_VERSION, versioned
from planish.core.registry import load_program
from planish.core.trial import checked_for
from planish.measure.executors import LocalExecutor
from planish.store import Store, store_at
from planish.tuning.api import task_of, tune_program
from planish.tuning.engine import SharedWorkers
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings

DEFAULT_BUDGET = Budget(seconds=1)
"""For each part."""


@dataclass(frozen=True)
class Part:
    """Result of one part.

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
        """Return how much less the best is than the baseline; negative for a loss."""
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
    """Results of all parts: the columns of the thesis's figure 4.5.

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
    """Read a program; return its level, and its functions by name.

    Raises:
        PlanishError: it cannot be read, or programs of its level have no functions.
    """
    found, program = load_program(source, level, options)
    return found, found.functions(program)


def tune_parts(
    level: Level,
    parts: Mapping[str, Program],
    *,
    budget: Budget = DEFAULT_BUDGET,
    settings: Settings | None = None,
    store: Store | StrPath | None = None,
    executor: Executor | None = None,
    start: ExecutorFactory = LocalExecutor,
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
    with store_at(store) as opened, SharedWorkers(chosen, start, executor) as shared:
        for name, program in parts.items():
            task = task_of(level, program, chosen)
            _require_exact(task.objectives[0])
            workers = shared.serving(level.evaluator(task))
            found, stopped = _tuned(name, level, task, budget, chosen, opened, workers, start)
            yield found
            if stopped:
                raise StoppedError(f"stopped at {name}", "Run the same command to resume.")


def _tuned(
    name: str,
    level: Level,
    task: Task,
    budget: Budget,
    settings: Settings,
    store: Store,
    workers: Executor,
    start: ExecutorFactory,
) -> tuple[Part | Unmeasured, bool]:
    """Tune one program; return its result, and whether the user ended it."""
    ends = _ends(level, task, workers)
    if not isinstance(ends, tuple):
        return Unmeasured(name, f"{ends.stage}: {ends.reason}: {ends.detail}"), False
    try:
        result = tune_program(
            level, task.program, budget=budget, settings=settings, store=store, executor=workers, start=start
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
    unchanged, baseline = Candidate(), level.baseline(task)
    values: dict[Candidate, float] = {}
    for result in evaluate(workers, list(dict.fromkeys((unchanged, baseline)))):
        outcome = checked_for(result.outcome, task.objectives)
        if not isinstance(outcome, Measured):
            return outcome
        values[result.candidate] = outcome.values[task.objectives[0].name]
    return values[unchanged], values[baseline]


def _part(name: str, result: Result, start: float, baseline: float) -> Part:
    assert isinstance(result.best.outcome, Measured)
    value = result.best.outcome.values[result.objective.name]
    return Part(
        name,
        result.objective,
        result.run.id,
        start,
        baseline,
        value,
        result.best.candidate,
        result.run.trials,
    )


@dataclass(frozen=True)
class RecordedProgram:
    """A program that was recorded.

    Args:
        program: it.
        trials: of it.
        programs: recorded in the store by now, this one included.
    """

    program: Program
    trials: int
    programs: int


def record_programs(
    level: Level,
    programs: Iterable[Program],
    settings: Settings,
    trials: int,
    store: Store,
    seconds: float | None = None,
    start: ExecutorFactory = LocalExecutor,
) -> Iterator[RecordedProgram]:
    """Measure candidates of programs that are not yet in a store, with the same workers.

    Args:
        level: of the programs.
        programs: in order.
        settings: of each search.
        trials: of each program.
        store: where the trials go.
        seconds: after which it ends, in the middle of a program too, which is then resumed; None: no end.
        start: starts the workers.

    Yields:
        Each program when all its trials are stored.
    """
    end = inf if seconds is None else time.monotonic() + seconds
    whole = {run.task_key for run in store.runs() if run.status == "finished" and run.trials >= trials}
    # The store may have programs of other levels, and what an older version of this one measured.
    version = level.name, level.version
    done = {key for key in whole if (store.task(key).level, store.task(key).level_version) == version}
    with SharedWorkers(settings, start) as shared:
        for program in programs:
            task = task_of(level, program, settings)
            if task.key in done:
                continue
            if (left := end - time.monotonic()) <= 0:
                return
            found = tune_program(
                level,
                program,
                budget=Budget(trials=trials, seconds=None if seconds is None else left),
                settings=settings,
                store=store,
                executor=shared.serving(level.evaluator(task)),
                compares=False,
            )
            if found.stopped or time.monotonic() >= end:
                return
            done.add(task.key)
            yield RecordedProgram(program, found.run.trials, len(done))


class RegressionError(PlanishError):
    """A result is worse than the recorded one."""

    exit_code = 8


@dataclass(frozen=True)
class Record:
    """Best value of an earlier run.

    Args:
        objective: the name of what was improved.
        values: program to value, with the baseline as a backup.
    """

    objective: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Change:
    """A program's result beside the recorded one.

    Args:
        name: the program's.
        before: the recorded value.
        now: the new one.
        worse: whether it is worse.
    """

    name: str
    before: float
    now: float
    worse: bool


def load_files(
    files: Sequence[str], level: str, options: Mapping[str, str]
) -> tuple[Level, Mapping[str, Program], Sequence[Unmeasured]]:
    """Read programs of one level; each is named by its path as given.

    Returns:
        Their level, the programs, and the files that cannot be read, each with the reason.

    Raises:
        PlanishError: not one can be read, or they are of different levels.
    """
    loaded: dict[str, tuple[Level, Program]] = {}
    errors: dict[str, PlanishError] = {}
    for file in files:
        try:
            loaded[file] = load_program(file, level, options)
        except PlanishError as error:
            errors[file] = error
    if not loaded:
        raise next(iter(errors.values()), PlanishError("no files", "Name a file at least."))
    levels = {found.name: found for found, _ in loaded.values()}
    if len(levels) != 1:
        raise PlanishError(f"files of {len(levels)} levels: {', '.join(levels)}", "Name files of one level.")
    (found,) = levels.values()
    unread = [Unmeasured(file, str(error)) for file, error in errors.items()]
    return found, {file: program for file, (_, program) in loaded.items()}, unread


def write_record(path: Path, parts: Sequence[Part], about: Mapping[str, str]) -> None:
    """Write what was reached, for `read_record`.

    Args:
        path: the file.
        parts: one at least, all of one objective.
        about: what the results depend on, for people: versions and the like.

    Raises:
        OSError: it cannot be written.
    """
    results = {
        part.name: {
            "value": part.kept,
            "baseline": part.baseline,
            "passes": [str(step) for step in part.candidate.steps],
        }
        for part in parts
    }
    record = {"objective": parts[0].objective.name, "about": dict(about), "results": results}
    replace_text(path, json.dumps(versioned(record), indent=2) + "\n")


def read_record(path: Path) -> Record:
    """Read what was reached before.

    Raises:
        PlanishError: it cannot be read, or is no such record.
    """
    try:
        data: dict[str, Any] = json.loads(path.read_text())
        if (found := data["schema_version"]) != SCHEMA_VERSION:
            what = f"'{path}' is a record of schema version {found}, not {SCHEMA_VERSION}"
            raise PlanishError(what, "Record it anew.")
        values = {name: float(result["value"]) for name, result in data["results"].items()}
        return Record(data["objective"], values)
    except OSError as error:
        raise PlanishError(
            f"cannot read '{path}': {error.strerror}", "Make it by 'planish bench-passes --record FILE'."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlanishError(
            f"'{path}' is not a record of pass lists: {error!r}",
            "Make one by 'planish bench-passes --record FILE'.",
        ) from error


def changes(parts: Sequence[Part], record: Record) -> list[Change]:
    """Put results beside the recorded ones; those that are not on record are left out.

    Raises:
        PlanishError: the record is of another objective.
    """
    found: list[Change] = []
    for part in parts:
        if part.objective.name != record.objective:
            what = f"the record is of {record.objective}, these results are of {part.objective.name}"
            raise PlanishError(what, f'Ask for objective="{record.objective}".')
        if part.name in record.values:
            before, cost = record.values[part.name], part.objective.cost
            found.append(Change(part.name, before, part.kept, cost(part.kept) > cost(before)))
    return found


def require_no_loss(found: Sequence[Change]) -> None:
    """Raise RegressionError where a result is worse than the recorded one."""
    worse = [change for change in found if change.worse]
    if worse:
        first = f"{worse[0].name}: {worse[0].now:g}, recorded {worse[0].before:g}"
        others = f", and {len(worse) - 1} more" if worse[1:] else ""
        raise RegressionError(
            f"worse than recorded: {first}{others}",
            "Fix it, or record it again by 'planish bench-passes --record FILE'.",
        )
