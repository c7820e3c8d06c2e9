"""Validation of stored results: replay, answer and value are each checked again."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from planish.core import (
    ExecutorFactory,
    LostError,
    Measured,
    MismatchError,
    MissingFileError,
    Objective,
    PlanishError,
    ProgramError,
)
from planish.core.arguments import check_paths, check_type, check_whole_number, wrong_argument
from planish.core.capabilities import executors_for
from planish.core.files import StrPath
from planish.measure import PairedSamples, Plan, Variant
from planish.measure.comparison import remeasure_all
from planish.measure.executors import LocalExecutor
from planish.store import Reader, open_store
from planish.tuning.result import A_STORE, EINSUM, STORES, Result, read_result

LUCK = 0.1
"""Ratio by which two honest measurements may differ, beyond their intervals: clocks, neighbors, memory."""


@dataclass(frozen=True)
class Check:
    """One question asked of a result.

    Args:
        name: the question.
        verdict: "undecided" where the interval is too wide; "not done" where an earlier question was
            answered with no, or nothing can be compared.
        detail: what was found.
    """

    name: Literal["replay", "answer", "value"]
    verdict: Literal["holds", "differs", "undecided", "not done"]
    detail: str


@dataclass(frozen=True)
class Validation:
    """Answers to the three questions of a validation.

    Args:
        run_id: the run whose winner was tried.
        replay: do the stored texts read back as the same program and candidate, and can its steps be applied?
        answer: does it build, and is what it computes right?
        value: is its value within the noise of the recorded one?
    """

    run_id: str
    replay: Check
    answer: Check
    value: Check

    @property
    def checks(self) -> tuple[Check, Check, Check]:
        """All three, in the order asked."""
        return self.replay, self.answer, self.value

    @property
    def holds(self) -> bool:
        """Return whether none differs."""
        return all(check.verdict != "differs" for check in self.checks)

    def require(self) -> None:
        """Raise MismatchError unless the result holds."""
        for check in self.checks:
            if check.verdict == "differs":
                what = f"run {self.run_id} does not reproduce: {check.name}: {check.detail}"
                raise MismatchError(what, "See what changed: processor, versions, or code.")


@dataclass(frozen=True)
class _Span:
    """A quantity between two ends, which noise alone explains."""

    low: float
    high: float

    def meets(self, other: _Span, luck: float) -> bool:
        return self.low <= other.high * (1 + luck) and other.low <= self.high * (1 + luck)

    def is_wide(self) -> bool:
        """Return whether it says less than that two honest measurements may differ."""
        return self.high > self.low * (1 + LUCK) ** 2

    def __str__(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g}"


PLAN = Plan()
"""The usual measurement."""


def validate(
    run_id: str,
    *,
    pick: int | None = None,
    run: bool = False,
    files: Iterable[StrPath] = (),
    store: Reader | StrPath | None = None,
    processes: int = 5,
    start: ExecutorFactory = LocalExecutor,
) -> Validation:
    """Try the winner of a run again.

    Args:
        run_id: the run's id, or a unique beginning of it.
        pick: which of the finalists, from 1, in the order that they are shown; None for the best one apart
            from the baseline, which may be the result.
        run: whether code may be run that stands in the store, with this user's rights.
        files: as `planish.tuning.result.read_result` takes them.
        store: an open store, or where it is; None for the user's own.
        processes: fresh processes that measure at most, until it is decided.
        start: starts the workers.

    Returns:
        The three checks; `require` raises where one fails.

    Raises:
        PlanishError: there is no such run or finalist, it has no result, or the baseline fails; to validate
            it is to run code of the store, and `run` is not set.
        LostError: processes are killed from outside.
        TargetError: this machine has fewer cores than the run used.
        ArgumentError: an argument has a wrong type.

    Examples:
        >>> import planish
        >>> run = planish.tune("C[m] += A[m,k]", size={"m": 8, "k": 8}, trials=2, store="planish.db").run
        >>> planish.validate(run.id, store="planish.db").run_id == run.id
        True
    """
    check_type("run_id", run_id, str, "the id of a run")
    check_type("store", store, (Reader, *STORES), A_STORE)
    check_whole_number("processes", processes, 1)
    if pick is not None:
        check_whole_number("pick", pick)
    check_type("run", run, bool, "True or False")
    check_paths("files", files)
    if not callable(start):
        raise wrong_argument("start", start, "a factory of executors, as planish.RayCluster(...)")
    if not isinstance(store, Reader):
        with open_store(store, read_only=True) as opened:
            return validate(
                run_id, pick=pick, run=run, files=files, store=opened, processes=processes, start=start
            )
    record = store.run(run_id)
    try:
        result = read_result(store, record.id, pick or 1, files)
        task = result.task
    except MissingFileError:  # it says nothing of the result
        raise
    except ProgramError as error:
        return _not_replayed(record.id, str(error))
    if pick is None and result.contender != result.candidate:
        numbers = [each.candidate for each in result.finalists]
        result = replace(result, pick=1 + numbers.index(result.contender)).at_hand(task=task)
    if task.key != record.task_key:
        return _not_replayed(record.id, "the stored program reads back differently")
    if not _is_recorded(result, store):
        return _not_replayed(record.id, "the stored candidate reads back differently")
    if not run and result.level.runs_user_code(task):
        what = f"to validate run {record.id} is to run the program that stands in the store"
        raise PlanishError(what, "If you trust its author, add run=True.")
    return _judged(result, _measured(result, processes, start))


def _is_recorded(result: Result, store: Reader) -> bool:
    """Return whether the winner as read back has the hash that it was stored with."""
    if result.finalist is not None:
        return result.finalist.hash_ok
    return bool(store.known(result.run.task_key, [result.candidate]))


def _measured(result: Result, processes: int, start: ExecutorFactory) -> Mapping[str, PairedSamples]:
    """Measure the winner beside the baseline, as at the end of a run; return its samples by objective."""
    result.level.target(result.task.program, result.task.target.cores)  # raises where there are fewer
    spec = result.level.evaluator(result.task, final=True)
    baseline = Variant("baseline", result.level.baseline(result.task), spec)
    winner = Variant("winner", result.candidate, spec)
    plan = replace(PLAN, seed=result.run.seed, most=max(processes, PLAN.processes))
    start = executors_for(start, result.level, result.task)
    return remeasure_all(baseline, [winner], result.task.objectives, start, plan)[1]


def _judged(result: Result, paired: Mapping[str, PairedSamples]) -> Validation:
    sampled = paired[result.objective.name]
    if sampled.lost:
        raise LostError(f"could not measure run {result.run.id}: {sampled.why}", "Run the command again.")
    task = result.task
    steps = f"{len(result.candidate.steps)} steps of level {task.level}, version {task.level_version}"
    replay = Check("replay", "holds", steps)
    if not sampled.failures:
        how = result.describe().get("verified", "against the reference").replace("\n", " ")
        answer = Check("answer", "holds", f"built, verified {how}")
        return Validation(result.run.id, replay, answer, _values(result, paired))
    failure = sampled.failures[0]
    what = f"{failure.stage}: {failure.reason}: {failure.detail}"
    if failure.stage == "transform":
        return _not_replayed(result.run.id, what)
    skipped = Check("value", "not done", "nothing to measure")
    return Validation(result.run.id, replay, Check("answer", "differs", what), skipped)


def _not_replayed(run_id: str, why: str) -> Validation:
    skipped = Check("answer", "not done", "nothing to run"), Check("value", "not done", "nothing to measure")
    return Validation(run_id, Check("replay", "differs", why), *skipped)


def _values(result: Result, paired: Mapping[str, PairedSamples]) -> Check:
    """Compare every objective that is on record."""
    if result.run.searcher == EINSUM:
        return Check("value", "not done", "whole calls of einsum were timed, and this is the kernel alone")
    pairs = [
        (objective, _spans(result, objective, paired[objective.name])) for objective in result.task.objectives
    ]
    known = [(objective, spans) for objective, spans in pairs if spans is not None]
    spans = "; ".join(f"{what}: {now} now, {then} recorded" for _, (then, now, what) in known)
    if not all(then.meets(now, 0.0 if objective.exact else LUCK) for objective, (then, now, _) in known):
        return Check("value", "differs", f"{spans}{_changes(result)}")
    is_wide = any(now.is_wide() and not objective.exact for objective, (_, now, _) in known)
    return Check("value", "undecided" if is_wide else "holds", spans)


def _spans(result: Result, objective: Objective, sampled: PairedSamples) -> tuple[_Span, _Span, str] | None:
    """Return a value as recorded and as measured now, and what it is; None where it is not on record.

    The ratio to a baseline of the same minutes is what can be compared between days; without a
    comparison on record, the samples themselves must do.
    """
    name, ratio = objective.name, sampled.ratio
    assert ratio is not None
    if result.finalist is None:
        return _beside_trial(result, objective, sampled)
    then, now = result.finalist.measured[name].gain, ratio.gain(objective)
    what = "times better than the baseline"
    what = f"{name}, {what}" if len(result.task.objectives) > 1 else what
    return _Span(then.low, then.high), _Span(now.low, now.high), what


def _beside_trial(
    result: Result, objective: Objective, sampled: PairedSamples
) -> tuple[_Span, _Span, str] | None:
    assert isinstance(result.best.outcome, Measured)
    value = result.best.outcome.values.get(objective.name)
    if value is None:
        return None
    recorded = result.best.outcome.samples.get(objective.name) or (value,)
    rows = [statistics.median(row) for row in sampled.values]
    return _Span(min(recorded), max(recorded)), _Span(min(rows), max(rows)), objective.name


def _changes(result: Result) -> str:
    """Return how this machine is not the one of the record; empty where it is."""
    then = result.task.target
    now = result.level.target(result.task.program, then.cores)
    changed = [] if then.processor == now.processor else [f"{then.processor} then, {now.processor} now"]
    tools = sorted({*then.toolchain, *now.toolchain})
    for tool in tools:
        old, new = (target.toolchain.get(tool, "none") for target in (then, now))
        changed += [f"{tool} {old} then, {new} now"] if old != new else []
    if result.level.version != result.task.level_version:
        changed.append(f"level version {result.task.level_version} then, {result.level.version} now")
    return f" ({'; '.join(changed)})" if changed else ""
