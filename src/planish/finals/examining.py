"""What else is to be known of the finalists: what a level has methods for (`planish.core.capabilities`)."""

from __future__ import annotations

from dataclasses import replace

from planish.core import (
    Candidate,
    CanDoubt,
    CanRefer,
    CanScore,
    Failed,
    Lost,
    Measured,
    Opinion,
    PlanishError,
)
from planish.finals.comparing import compare_reference
from planish.finals.ending import Ending
from planish.finals.searched import Searched
from planish.measure import CutShortError
from planish.result import Referred


def doubt(search: Searched, ending: Ending) -> None:
    """Ask for a second opinion on each finalist, and on the baseline."""
    level, task = search.level, search.task
    assert isinstance(level, CanDoubt)
    try:
        base, *opinions = level.second_opinion(task, _with_baseline(search, ending))
    except PlanishError as error:
        why = f"no second opinion: {error}".rstrip(".")
        ending.notes.append(why)
        ending.members = [replace(member, opinion=Opinion(why=why)) for member in ending.members]
        return
    ending.baseline_opinion = base
    if base.agrees is False:
        ending.notes.append(f"the second opinion differs on the baseline too: {base.why}")
    ending.members = [
        replace(member, opinion=opinion) for member, opinion in zip(ending.members, opinions, strict=True)
    ]


def score(search: Searched, ending: Ending) -> None:
    """Score each finalist, and the baseline, on what no search has seen."""
    level, task = search.level, search.task
    assert isinstance(level, CanScore)
    try:
        base, *outcomes = level.scores(task, _with_baseline(search, ending))
    except PlanishError as error:
        ending.notes.append(f"no scores on unseen data: {error}".rstrip("."))
        return
    if isinstance(base, Measured):
        ending.baseline_scores = base.values
    else:
        ending.notes.append(f"the baseline cannot be scored on unseen data: {_why(base)}")
    for place, (member, outcome) in enumerate(zip(ending.members, outcomes, strict=True)):
        if isinstance(outcome, Measured):
            ending.members[place] = replace(member, scores=outcome.values)
        else:
            notes = (*member.notes, f"cannot be scored on unseen data: {_why(outcome)}")
            ending.members[place] = replace(member, notes=notes)
    ending.judge_by_held_back(task.objectives)


def _with_baseline(search: Searched, ending: Ending) -> list[Candidate]:
    """List the baseline, then the finalists."""
    return [search.level.baseline(search.task), *(member.candidate for member in ending.members)]


def _why(failed: Failed | Lost) -> str:
    return f"{failed.reason}: {failed.detail}" if failed.detail else failed.reason


def refer(search: Searched, ending: Ending) -> None:
    """Measure another baseline, where there is one."""
    level = search.level
    assert isinstance(level, CanRefer)
    try:
        reference = level.reference(search.task)
        if reference is not None:
            values = compare_reference(search, reference, ending.baseline)
            ending.reference = Referred(reference.name, values)
    except CutShortError:
        ending.notes.append("nothing to refer to: the time for it was over")
    except PlanishError as error:
        ending.notes.append(f"nothing to refer to: {error}".rstrip("."))
