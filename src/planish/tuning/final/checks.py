"""What else is to be known of the finalists: what a level has methods for (`planish.core.capabilities`)."""

from __future__ import annotations

from dataclasses import replace

from planish.core import (
    Candidate,
    CanScore,
    CrossChecks,
    Failed,
    HasReference,
    Lost,
    Measured,
    Opinion,
    PlanishError,
)
from planish.measure import CutShortError
from planish.results.result import Referred
from planish.tuning.final.comparing import compare_reference
from planish.tuning.final.outcome import SearchOutcome
from planish.tuning.final.state import FinalState


def doubt(search: SearchOutcome, state: FinalState) -> None:
    """Ask for a second opinion on each finalist, and on the baseline."""
    level, task = search.level, search.task
    assert isinstance(level, CrossChecks)
    try:
        base, *opinions = level.second_opinion(task, _with_baseline(search, state))
    except PlanishError as error:
        why = f"no second opinion: {error}".rstrip(".")
        state.notes.append(why)
        state.members = [replace(member, opinion=Opinion(why=why)) for member in state.members]
        return
    state.baseline_opinion = base
    if base.agrees is False:
        state.notes.append(f"the second opinion differs on the baseline too: {base.why}")
    state.members = [
        replace(member, opinion=opinion) for member, opinion in zip(state.members, opinions, strict=True)
    ]


def score(search: SearchOutcome, state: FinalState) -> None:
    """Score each finalist, and the baseline, on what no search has seen."""
    level, task = search.level, search.task
    assert isinstance(level, CanScore)
    try:
        base, *outcomes = level.scores(task, _with_baseline(search, state))
    except PlanishError as error:
        state.notes.append(f"no scores on unseen data: {error}".rstrip("."))
        return
    if isinstance(base, Measured):
        state.baseline_scores = base.values
    else:
        state.notes.append(f"the baseline cannot be scored on unseen data: {_why(base)}")
    for place, (member, outcome) in enumerate(zip(state.members, outcomes, strict=True)):
        if isinstance(outcome, Measured):
            state.members[place] = replace(member, scores=outcome.values)
        else:
            notes = (*member.notes, f"cannot be scored on unseen data: {_why(outcome)}")
            state.members[place] = replace(member, notes=notes)
    state.judge_by_held_back(task.objectives)


def _with_baseline(search: SearchOutcome, state: FinalState) -> list[Candidate]:
    """List the baseline, then the finalists."""
    return [search.level.baseline(search.task), *(member.candidate for member in state.members)]


def _why(failed: Failed | Lost) -> str:
    return f"{failed.reason}: {failed.detail}" if failed.detail else failed.reason


def refer(search: SearchOutcome, state: FinalState) -> None:
    """Measure another baseline, where there is one."""
    level = search.level
    assert isinstance(level, HasReference)
    try:
        reference = level.reference(search.task)
        if reference is not None:
            values = compare_reference(search, reference, state.baseline)
            state.reference = Referred(reference.name, values)
    except CutShortError:
        state.notes.append("nothing to refer to: the time for it was over")
    except PlanishError as error:
        state.notes.append(f"nothing to refer to: {error}".rstrip("."))
