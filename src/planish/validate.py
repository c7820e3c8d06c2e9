"""Does a stored result still hold? Replay, answer and value are judged apart."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planish.core import Measured, MismatchError, ProgramError
from planish.measure import Entrant, Plan, Standing, remeasure
from planish.store import Reader, open_store
from planish.stored import Gain, StoredResult, stored_result

LUCK = 0.1
"""How far apart two honest measurements may be, beyond their intervals: clocks, neighbours, memory."""


@dataclass(frozen=True)
class Check:
    """One question asked of a result.

    Args:
        name: the question.
        verdict: "not done" where an earlier question was answered with no.
        detail: what was found.
    """

    name: Literal["replay", "answer", "value"]
    verdict: Literal["holds", "differs", "not done"]
    detail: str


@dataclass(frozen=True)
class Validation:
    """What became of the three questions.

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
        """Whether all three hold."""
        return all(check.verdict == "holds" for check in self.checks)

    def require(self) -> None:
        """Raise MismatchError unless the result holds."""
        for check in self.checks:
            if check.verdict != "holds":
                what = f"run {self.run_id} does not reproduce: {check.name}: {check.detail}"
                raise MismatchError(what, "See what changed: processor, versions, or code.")


@dataclass(frozen=True)
class _Span:
    """A quantity between two ends, which noise alone explains."""

    low: float
    high: float

    def meets(self, other: _Span, luck: float) -> bool:
        return self.low <= other.high * (1 + luck) and other.low <= self.high * (1 + luck)

    def __str__(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g}"


def validate(run_id: str, *, store: Reader | str | Path | None = None) -> Validation:
    """Try the winner of a run again.

    Args:
        run_id: the run's id, or a unique beginning of it.
        store: an open store, or where it is; None for the user's own.

    Returns:
        The three checks; `require` raises where one fails.

    Raises:
        PlanishError: there is no such run, it has no result, or the baseline fails.
        TargetError: this machine has fewer cores than the run used.
    """
    if not isinstance(store, Reader):
        with open_store(store, read_only=True) as opened:
            return validate(run_id, store=opened)
    run = store.run(run_id)
    try:
        result = stored_result(store, run.id)
    except ProgramError as error:
        return _not_replayed(run.id, str(error))
    if result.task.key != run.task_key:
        return _not_replayed(run.id, "the stored program reads back as another")
    if not _is_recorded(result, store):
        return _not_replayed(run.id, "the stored candidate reads back as another")
    return _judged(result, _measured(result))


def _is_recorded(result: StoredResult, store: Reader) -> bool:
    """Whether the winner as read back has the hash that it was stored with."""
    candidate = result.candidate
    if result.finalists:
        return result.finalists[0].data["hash"] == candidate.hash
    return bool(store.known(result.run.task_key, [candidate]))


def _measured(result: StoredResult) -> Standing:
    """Measure the winner beside the baseline, as at the end of a run."""
    result.level.target(result.task.target.cores)  # raises where there are not so many
    factory = result.level.evaluator(result.task, final=True)
    baseline = Entrant("baseline", result.level.baseline(result.task), factory)
    winner = Entrant("winner", result.candidate, factory)
    return remeasure(baseline, [winner], result.objective, Plan(seed=result.run.seed))[1]


def _judged(result: StoredResult, standing: Standing) -> Validation:
    steps = (
        f"{len(result.candidate.steps)} steps of level {result.task.level}, version {result.level_version}"
    )
    replay = Check("replay", "holds", steps)
    if not standing.failures:
        answer = Check("answer", "holds", "built, verified against the reference")
        return Validation(result.run.id, replay, answer, _value(result, standing))
    failure = standing.failures[0]
    what = f"{failure.stage}: {failure.reason}: {failure.detail}"
    if failure.stage == "transform":
        return _not_replayed(result.run.id, what)
    skipped = Check("value", "not done", "nothing to measure")
    return Validation(result.run.id, replay, Check("answer", "differs", what), skipped)


def _not_replayed(run_id: str, why: str) -> Validation:
    skipped = Check("answer", "not done", "nothing to run"), Check("value", "not done", "nothing to measure")
    return Validation(run_id, Check("replay", "differs", why), *skipped)


def _value(result: StoredResult, standing: Standing) -> Check:
    then, now, what = _spans(result, standing)
    if then.meets(now, 0.0 if result.objective.exact else LUCK):
        return Check("value", "holds", f"{what}: {now} now, {then} recorded")
    return Check("value", "differs", f"{what}: {now} now, {then} recorded{_changes(result)}")


def _spans(result: StoredResult, standing: Standing) -> tuple[_Span, _Span, str]:
    """Give the value as recorded and as measured now, and what it is.

    The ratio to a baseline of the same minutes is what can be compared between days; without a
    comparison on record, the samples themselves must do.
    """
    if result.finalists:
        assert standing.ratio is not None
        now = standing.ratio.value, standing.ratio.low, standing.ratio.high
        then, new = (Gain.of(ratio, result.objective) for ratio in (result.finalists[0].data["ratio"], now))
        return _Span(then.low, then.high), _Span(new.low, new.high), "times better than the baseline"
    assert result.best is not None
    assert isinstance(result.best.outcome, Measured)
    name, value = result.objective.name, result.value or 0.0
    recorded = result.best.outcome.samples.get(name) or (value,)
    rows = [statistics.median(row) for row in standing.values]
    return _Span(min(recorded), max(recorded)), _Span(min(rows), max(rows)), name


def _changes(result: StoredResult) -> str:
    """Say how this machine is not the one of the record; empty where it is."""
    then, now = result.task.target, result.level.target(result.task.target.cores)
    changed = [] if then.processor == now.processor else [f"{then.processor} then, {now.processor} now"]
    tools = sorted({*then.toolchain, *now.toolchain})
    for tool in tools:
        old, new = (target.toolchain.get(tool, "none") for target in (then, now))
        changed += [f"{tool} {old} then, {new} now"] if old != new else []
    if result.level.version != result.level_version:
        changed.append(f"level version {result.level_version} then, {result.level.version} now")
    return f" ({'; '.join(changed)})" if changed else ""
