"""What else is to be known of the finalists: a level's review (`planish.core.Review`)."""

from __future__ import annotations

from dataclasses import replace

from planish.core import (
    Candidate,
    Failed,
    Lost,
    Measured,
    Opinion,
    Outcome,
    PlanishError,
)
from planish.measure import CutShortError
from planish.results.comparison import Finalist
from planish.tuning.final.compare import compare_reference
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.front import dispute, judge_by_held_back
from planish.tuning.final.search_outcome import SearchOutcome


def doubt(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Ask for a second opinion on each finalist, and on the baseline."""
    del end
    asks, base = search.review().second_opinion, state.baseline
    assert asks is not None
    assert base is not None
    try:
        own, *opinions = asks(_with_baseline(search, state), search.start)
    except PlanishError as error:
        why = f"no second opinion: {error}".rstrip(".")
        silent = tuple(replace(each, opinion=Opinion(why=why)) for each in state.finalists)
        return replace(state, finalists=silent).noted(why)
    pairs = zip(state.finalists, opinions, strict=True)
    asked = tuple(dispute(replace(each, opinion=opinion)) for each, opinion in pairs)
    differs = f"the second opinion differs on the baseline too: {own.why}" if own.agrees is False else ""
    return replace(state, finalists=asked, baseline=replace(base, opinion=own)).noted(differs)


def score(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Score each finalist, and the baseline, on what no search has seen."""
    del end
    scores, base = search.review().scores, state.baseline
    assert scores is not None
    assert base is not None
    own, *outcomes = scores(_with_baseline(search, state), search.start)
    pairs = list(zip(state.finalists, outcomes, strict=True))
    scored = replace(state, finalists=tuple(_scored(each, outcome) for each, outcome in pairs))
    if not isinstance(own, Measured):
        return scored.noted(f"the baseline cannot be scored on unseen data: {_why(own)}")
    # Lost is not failed: a worker that somebody killed says nothing of the candidate.
    unjudged = {each.candidate for each, outcome in pairs if isinstance(outcome, Lost)}
    return judge_by_held_back(replace(scored, baseline=replace(base, scores=own.values)), unjudged)


def _scored(finalist: Finalist, outcome: Outcome) -> Finalist:
    if isinstance(outcome, Measured):
        return replace(finalist, scores=outcome.values)
    return replace(finalist, notes=(*finalist.notes, f"cannot be scored on unseen data: {_why(outcome)}"))


def _with_baseline(search: SearchOutcome, state: FinalState) -> list[Candidate]:
    """List the baseline, then the finalists."""
    return [search.level.baseline(search.task), *(each.candidate for each in state.finalists)]


def _why(failed: Failed | Lost) -> str:
    return f"{failed.reason}: {failed.detail}" if failed.detail else failed.reason


def refer(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Measure another baseline, where there is one."""
    del end
    find, base = search.review().reference, state.baseline
    assert find is not None
    assert base is not None
    try:
        return replace(state, reference=compare_reference(search, find(), base))
    except CutShortError:
        return state.noted("the reference was not measured: no time left")
    except PlanishError as error:
        return state.noted(f"the reference was not measured: {error}".rstrip("."))
