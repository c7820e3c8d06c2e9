"""Finalists measured again: fronts, and workers that are killed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fake_executors import SameProcessExecutor
from planish.core import (
    Candidate,
    CrossCheck,
    Evaluation,
    Lost,
    Measured,
    Outcome,
    Ratio,
    Verdict,
)
from planish.measure import Plan
from planish.store import open_store
from planish.testing.synthetic import Set
from planish.tuning.api import tune_program
from planish.tuning.comparison import Compared, Finalist, Measurement
from planish.tuning.final_state import FinalState
from planish.tuning.remeasure import dominates, drop_dominated, judge_by_heldout, ranked, withdraw_wins
from planish.tuning.settings import Budget, Settings
from tuning.tradeoff_level import ERROR, TIME, Full, Plain, Text, first

NOISE = {"time_s": 0.02, "error": 0.0}
BOTH = (TIME, ERROR)
BASE = Candidate()


def measured(time: float, error: float) -> Mapping[str, Measurement]:
    """Make measurements of these values beside a baseline of (1, 0.5)."""
    values = ((TIME, time, time), (ERROR, error, error / 0.5))
    return {o.name: Measurement(o, value, Ratio(over, over, over)) for o, value, over in values}


def baseline(time: float = 1.0, error: float = 0.5, **scores: float) -> Compared:
    """Make a baseline."""
    return Compared(name="baseline", measured=measured(time, error), scores=scores)


@pytest.mark.parametrize(
    ("one", "other", "is_better"),
    [
        ((0.9, 0.1), (1.0, 0.1), True),
        ((0.99, 0.1), (1.0, 0.1), False),
        ((0.9, 0.2), (1.0, 0.1), False),
        ((1.01, 0.1), (1.0, 0.2), True),
        ((1.1, 0.1), (1.0, 0.2), False),
        ((1.0, 0.0), (1.0, 0.1), True),
        ((1.0, 0.0), (1.0, 0.0), False),
    ],
)
def test_better_somewhere_and_worse_nowhere(
    one: tuple[float, float], other: tuple[float, float], is_better: bool
) -> None:
    mine, theirs = baseline(*one), baseline(*other)
    assert dominates(mine, theirs, NOISE, BOTH) == is_better
    assert not (is_better and dominates(theirs, mine, NOISE, BOTH))


def member(number: int, time: float, error: float, cross_check: CrossCheck | None = None) -> Finalist:
    """Make a member of the front."""
    steps = (Set(0, number),)
    return Finalist(
        candidate=Candidate(steps), measured=measured(time, error), cross_check=cross_check or CrossCheck()
    )


def left(*members: Finalist) -> tuple[list[int], int]:
    """Return the numbers of those left beside a baseline of (1, 0.5), and how many notes there are."""
    state = drop_dominated(FinalState(members, baseline(), noise=NOISE), BOTH)
    return [index for index, each in enumerate(members) if each in state.finalists], len(state.notes)


def test_the_beaten_go() -> None:
    good, slow, worse, other = (
        member(0, 0.5, 0.3),
        member(1, 1.2, 0.5),
        member(2, 0.6, 0.3),
        member(3, 2, 0.1),
    )
    assert left(good, slow, worse, other) == ([0, 3], 1)
    assert left(slow, worse) == ([1], 1)
    assert left(slow) == ([0], 1), "all that there is to show"
    assert left(slow, member(4, 1.3, 0.6)) == ([0], 2), "it dominates another one, if nothing else"
    assert left(good, other) == ([0, 1], 0)


def test_disputed_finalists_dominate_none_and_stay() -> None:
    disputed = member(0, 0.1, 0.1, CrossCheck(agrees=False))
    assert left(disputed, member(1, 0.5, 0.3), member(2, 2, 0.6)) == ([0, 1], 1)


def judged(time: float, error: float, verdicts: tuple[Verdict, Verdict], *, agrees: bool = True) -> Finalist:
    """Make a member of the front."""
    pairs = zip(measured(time, error).items(), verdicts, strict=True)
    found = {name: replace(each, verdict=verdict) for (name, each), verdict in pairs}
    candidate = Candidate((Set(int(time * 100), int(error * 100)),))
    return withdraw_wins(Finalist(candidate=candidate, measured=found, cross_check=CrossCheck(agrees)))


def test_what_harms_nothing_comes_first_and_noise_does_not_rank() -> None:
    fast = judged(0.5, 0.9, ("better", "worse"))
    exact = judged(1.01, 0.1, ("same", "better"))
    lucky = judged(0.99, 0.3, ("same", "better"))
    disputed = judged(0.1, 0.1, ("better", "better"), agrees=False)
    state = FinalState((disputed, fast, lucky, exact), baseline())
    state = ranked(state, BOTH, BASE)
    assert state.finalists == (exact, lucky, fast, disputed)
    assert ranked(state, (TIME,), BASE).finalists == (fast, lucky, exact, disputed)


def test_a_win_that_the_cross_check_denies_is_disputed() -> None:
    denied = judged(0.5, 0.9, ("better", "worse"), agrees=False)
    assert [each.verdict for each in denied.measured.values()] == ["failed", "worse"]


def test_the_baseline_is_taken_where_nothing_is_proven() -> None:
    lucky = judged(0.97, 0.5, ("same", "same"))
    slow = judged(0.99, 0.5, ("worse", "same"))
    unchanged = judged(1.0, 0.5, ("same", "same"))
    state = FinalState((slow, lucky, unchanged), baseline())
    assert ranked(state, (TIME,), unchanged.candidate).finalists == (unchanged, lucky, slow)
    proven = judged(0.98, 0.5, ("better", "same"))
    state = replace(state, finalists=(*state.finalists, proven))
    assert ranked(state, (TIME,), unchanged.candidate).finalists == (proven, unchanged, lucky, slow)


def test_held_out_examples_decide_which_is_first() -> None:
    def scored(error: float, heldout: float) -> Finalist:
        scores = {"error_validation": heldout, "error_final": 1 - heldout}
        return replace(judged(1.0, error, ("same", "better")), scores=scores)

    good, learnt_by_heart, worse = scored(0.15, 0.05), scored(0.1, 0.08), scored(0.01, 0.3)
    not_scored = replace(scored(0.02, 0.0), scores={})
    base = baseline(1.0, 0.2, error_validation=0.2)

    state = judge_by_heldout(FinalState((not_scored, worse, learnt_by_heart, good), base))
    found = ranked(state, BOTH, BASE).finalists

    assert [each.measured["error"].verdict for each in state.finalists] == [
        "failed",
        "worse",
        "better",
        "better",
    ]
    assert [each.lead.verdict for each in state.finalists] == ["same"] * 4
    wanted = [each.candidate for each in (good, learnt_by_heart, not_scored, worse)]
    assert [each.candidate for each in found] == wanted


def test_no_finalist_is_judged_by_a_score_that_was_lost() -> None:
    lost, failed = (replace(judged(0.9, 0.1 + n, ("better", "better")), scores={}) for n in (0, 0.01))
    base = baseline(1.0, 0.2, error_validation=0.2)

    state = judge_by_heldout(FinalState((failed, lost), base), {lost.candidate})

    assert [each.measured["error"].verdict for each in state.finalists] == ["failed", "undecided"]
    assert [each.lead.verdict for each in state.finalists] == ["better", "better"]
    assert ranked(state, BOTH, BASE).finalists[0].candidate == lost.candidate, "who failed comes after it"
    found = state.comparison(BASE)
    assert found is not None
    assert found.finalists[0].candidate == BASE, "who is not judged wins nothing either"


def test_what_the_search_alone_found_worse_is_better_by_what_was_held_back() -> None:
    seeming = replace(judged(1.0, 0.3, ("same", "worse")), scores={"error_validation": 0.1})
    equal = replace(judged(1.0, 0.1, ("same", "better")), scores={"error_validation": 0.2})
    base = baseline(1.0, 0.2, error_validation=0.2)

    state = judge_by_heldout(FinalState((seeming, equal), base))

    assert [each.measured["error"].verdict for each in state.finalists] == ["better", "same"]


def test_a_difference_that_the_examples_cannot_tell_is_none() -> None:
    """With 1,000 of them 0.9 points may be chance; by 0.3 more the difference is real."""

    def scored(time: float, heldout: float) -> Finalist:
        scores = {"error_validation": heldout, "error_validation_within": 0.009}
        return replace(judged(time, heldout, ("better", "worse")), scores=scores)

    base = baseline(1.0, 0.2, error_validation=0.2, error_validation_within=0.001)
    less, little_less, equal, little_more, more = (
        scored(0.9 - i / 10, e) for i, e in enumerate((0.188, 0.193, 0.2, 0.207, 0.212))
    )
    state = judge_by_heldout(FinalState((less, little_less, equal, little_more, more), base))

    verdicts = [each.measured["error"].verdict for each in state.finalists]
    assert verdicts == ["better", "same", "same", "same", "worse"]
    by_error = ranked(state, (ERROR, TIME), BASE).finalists
    wanted = [each.candidate for each in (less, little_more, equal, little_less, more)]
    assert [each.candidate for each in by_error] == wanted, "where chance decides, the time does"


def test_without_examples_held_back_the_comparison_judges() -> None:
    found = replace(judged(1.0, 0.1, ("same", "better")), scores={"error_final": 0.5})
    state = FinalState((found,), baseline(1.0, 0.2, error_final=0.2))

    assert judge_by_heldout(state) == state


def test_where_nothing_is_better_without_being_worse_the_baseline_comes_first() -> None:
    base = baseline(error_final=0.6)
    bargain = judged(0.5, 0.9, ("better", "worse"))
    idle = judged(0.99, 0.5, ("same", "same"))
    disputed = judged(0.1, 0.1, ("better", "better"), agrees=False)
    good = judged(0.9, 0.5, ("better", "same"))

    def compared(*finalists: Finalist) -> list[Candidate]:
        found = FinalState(finalists, base).comparison(BASE)
        assert found is not None
        if found.finalists[0].candidate == BASE:
            assert (found.finalists[0].measured, found.finalists[0].scores) == (base.measured, base.scores)
        assert [each.name for each in found.finalists] == [
            f"#{n}" for n in range(1, len(found.finalists) + 1)
        ]
        return [each.candidate for each in found.finalists]

    for members in ((bargain,), (idle, bargain), (disputed,), ()):
        assert compared(*members) == [BASE, *(each.candidate for each in members)]
    assert compared(good, bargain) == [good.candidate, bargain.candidate]
    assert FinalState().comparison(BASE) is None, "nothing was compared"
    assert len(compared(replace(idle, candidate=BASE), idle)) == 2, "it is listed once"


def test_finalists_without_scores_rank_behind_non_regressing_ones() -> None:
    """The fastest without a score was first, and so the run told of the unchanged program."""
    fastest, scored = (judged(time, 0.1, ("better", "better")) for time in (0.2, 0.3))
    fastest, scored = replace(fastest, scores={}), replace(scored, scores={"error_validation": 0.15})
    base = baseline(1.0, 0.2, error_validation=0.2)

    state = judge_by_heldout(FinalState((fastest, scored), base), {fastest.candidate})
    found = ranked(state, BOTH, BASE).comparison(BASE)

    assert found is not None
    assert [each.candidate for each in found.finalists] == [scored.candidate, fastest.candidate]


KILLED = Lost("run", "killed", "killed by SIGKILL")


def test_a_finalist_whose_scoring_was_lost_is_not_judged(tmp_path: Path) -> None:
    settings = Settings(objectives=("time", "error"), searcher="random", workers=1)

    class HeldBack(Full):
        def _score(self, candidate: Candidate) -> Outcome:
            found = KILLED if first(candidate) == 1 else super()._score(candidate)
            if isinstance(found, Measured):
                return Measured({"error_validation": found.values["error_final"]})
            return found

    with open_store(tmp_path / "a.db") as store:
        found = tune_program(
            HeldBack(),
            Text(),
            budget=Budget(trials=60),
            settings=settings,
            store=store,
            start=SameProcessExecutor,
        )
    told = {first(each.candidate): each for each in found.finalists}
    assert told[1].measured[ERROR.name].verdict == "undecided"
    assert told[2].measured[ERROR.name].verdict == "failed"
    assert told[1].notes == ("cannot be scored on unseen data: killed: killed by SIGKILL",)


def test_an_effect_whose_workers_were_lost_is_not_known(tmp_path: Path) -> None:
    class Dying(SameProcessExecutor):
        def _evaluate(self, candidate: Candidate) -> Evaluation:
            if candidate == Candidate((Set(0, 1),)):
                return Evaluation(candidate, KILLED)
            return super()._evaluate(candidate)

    settings = Settings(objectives=("time", "error"), searcher="random", workers=1)
    with open_store(tmp_path / "a.db") as store:
        found = tune_program(
            Plain(), Text(), budget=Budget(trials=60), settings=settings, store=store, start=Dying
        )
    whys = {effect.why for each in found.finalists for effect in each.main_effects}
    assert "not known: its workers were lost" in whys
    assert "it fails" not in whys


@pytest.mark.parametrize("sides", [2, 7, 40])
@pytest.mark.parametrize("kept", [2, 6])
@pytest.mark.parametrize(("processes", "rounds"), [(1, 1), (2, 1), (4, 3), (5, 2)])
@pytest.mark.parametrize("start_s", [0.0, 0.3])
def test_a_comparison_with_all_finalists_and_repeats_fits_into_the_budget_that_is_named(
    sides: int, kept: int, processes: int, rounds: int, start_s: float
) -> None:
    kept, each_s, whole = min(kept, sides), 0.25, Plan()
    took = processes * (start_s + rounds * kept * each_s)
    named = Plan(seconds=took).seconds_for_all(processes * rounds, sides / kept)
    needed = whole.processes * (start_s + whole.rounds * sides * each_s)
    assert named >= 2 * needed, "half of a command's time is the search's"
    assert start_s or named <= 2 * needed + 5
