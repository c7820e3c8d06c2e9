"""Who is on the front still, once it is measured again, and who comes first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from planish.core import Candidate, Opinion
from planish.measure import Ratio, Standing, Verdict
from planish.results.result import Ranked
from planish.testing.lattice import Set
from planish.tuning.final.front import beats, drop_beaten
from planish.tuning.final.state import FinalState
from tuning.final.trading import ERROR, TIME

NOISE = {"time_s": 0.02, "error": 0.0}


def standings(time: float, error: float) -> Mapping[str, Standing]:
    """Make standings of these values beside a baseline of (1, 0.5)."""
    values = {"time_s": (time, time), "error": (error, error / 0.5)}
    return {
        name: Standing(name, ((value,),), (), (), Ratio(over, over, over), "no difference")
        for name, (value, over) in values.items()
    }


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
    assert beats(standings(*one), standings(*other), NOISE, (TIME, ERROR)) == is_better
    assert not (is_better and beats(standings(*other), standings(*one), NOISE, (TIME, ERROR)))


def member(number: int, time: float, error: float, opinion: Opinion | None = None) -> Ranked:
    """Make a member of the front."""
    found = standings(time, error)
    return Ranked(Candidate((Set(0, number),)), found["time_s"], found, opinion=opinion or Opinion())


def left(*members: Ranked) -> tuple[list[int], int]:
    """Give the numbers of those that are left beside a baseline of (1, 0.5), and how many notes there are."""
    state = FinalState(list(members), standings(1, 0.5), noise=NOISE)
    drop_beaten(state, (TIME, ERROR))
    return [place for place, each in enumerate(members) if each in state.members], len(state.notes)


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
    assert left(slow, member(4, 1.3, 0.6)) == ([0], 2), "it beats another one, if nothing else"
    assert left(good, other) == ([0, 1], 0)


def test_the_disputed_beat_nobody_and_stay() -> None:
    disputed = member(0, 0.1, 0.1, Opinion(agrees=False))
    assert left(disputed, member(1, 0.5, 0.3), member(2, 2, 0.6)) == ([0, 1], 1)


def judged(time: float, error: float, verdicts: tuple[Verdict, Verdict], *, agrees: bool = True) -> Ranked:
    """Make a member of the front."""
    plain = standings(time, error)
    found = {
        name: replace(each, verdict=verdict)
        for (name, each), verdict in zip(plain.items(), verdicts, strict=True)
    }
    steps = (Set(int(time * 100), int(error * 100)),)
    return Ranked(Candidate(steps), found["time_s"], found, opinion=Opinion(agrees))


def test_what_harms_nothing_comes_first_and_noise_does_not_rank() -> None:
    same, better, worse = "no difference", "faster", "slower"
    fast = judged(0.5, 0.9, (better, worse))
    exact = judged(1.01, 0.1, (same, better))
    lucky = judged(0.99, 0.3, (same, better))
    disputed = judged(0.1, 0.1, (better, better), agrees=False)
    state = FinalState([disputed, fast, lucky, exact], standings(1.0, 0.5))
    state.sort((TIME, ERROR), Candidate())
    assert state.members == [exact, lucky, fast, disputed]
    state.sort((TIME,), Candidate())
    assert state.members == [fast, lucky, exact, disputed]


def test_the_baseline_is_taken_where_nothing_is_proven() -> None:
    lucky = judged(0.97, 0.5, ("no difference", "no difference"))
    slow = judged(0.99, 0.5, ("slower", "no difference"))
    unchanged = judged(1.0, 0.5, ("no difference", "no difference"))
    state = FinalState([slow, lucky, unchanged], standings(1.0, 0.5))
    state.sort((TIME,), unchanged.candidate)
    assert state.members == [unchanged, lucky, slow]
    proven = judged(0.98, 0.5, ("faster", "no difference"))
    state.members.append(proven)
    state.sort((TIME,), unchanged.candidate)
    assert state.members == [proven, unchanged, lucky, slow]


def test_examples_that_were_held_back_decide_who_is_first() -> None:
    def scored(error: float, held_back: float) -> Ranked:
        scores = {"error_validation": held_back, "error_final": 1 - held_back}
        return replace(judged(1.0, error, ("no difference", "faster")), scores=scores)

    good, learnt_by_heart, worse = scored(0.15, 0.05), scored(0.1, 0.08), scored(0.01, 0.3)
    not_scored = replace(scored(0.02, 0.0), scores={})
    state = FinalState(
        [not_scored, worse, learnt_by_heart, good],
        standings(1.0, 0.2),
        baseline_scores={"error_validation": 0.2},
    )

    state.judge_by_held_back((TIME, ERROR))
    verdicts = [member.verdict("error") for member in state.members]
    state.sort((TIME, ERROR), Candidate())

    assert verdicts == ["failed", "slower", "faster", "faster"]
    assert [member.verdict("time_s") for member in state.members] == ["no difference"] * 4
    order = [member.standings["error"].median for member in state.members]
    assert order == [each.standings["error"].median for each in (good, learnt_by_heart, not_scored, worse)]


def test_what_the_search_alone_found_worse_is_better_by_what_was_held_back() -> None:
    seeming = replace(judged(1.0, 0.3, ("no difference", "slower")), scores={"error_validation": 0.1})
    equal = replace(judged(1.0, 0.1, ("no difference", "faster")), scores={"error_validation": 0.2})
    state = FinalState([seeming, equal], standings(1.0, 0.2), baseline_scores={"error_validation": 0.2})

    state.judge_by_held_back((TIME, ERROR))

    assert [member.verdict("error") for member in state.members] == ["faster", "no difference"]


def test_without_examples_held_back_the_comparison_judges() -> None:
    member = replace(judged(1.0, 0.1, ("no difference", "faster")), scores={"error_final": 0.5})
    state = FinalState([member], standings(1.0, 0.2), baseline_scores={"error_final": 0.2})

    state.judge_by_held_back((TIME, ERROR))

    assert state.members == [member]


def test_where_nothing_is_better_without_being_worse_the_baseline_comes_first() -> None:
    same, better, worse = "no difference", "faster", "slower"
    base, both = standings(1.0, 0.5), (TIME, ERROR)
    bargain = judged(0.5, 0.9, (better, worse))
    idle = judged(0.99, 0.5, (same, same))
    disputed = judged(0.1, 0.1, (better, better), agrees=False)
    good = judged(0.9, 0.5, (better, same))
    for members in ([bargain], [idle, bargain], [disputed], []):
        found = FinalState(list(members), base, {"error_final": 0.6}).ranked(both, Candidate())
        assert [member.candidate for member in found] == [Candidate(), *(m.candidate for m in members)]
        assert (found[0].standings, found[0].scores) == (base, {"error_final": 0.6})
    assert FinalState([good, bargain], base).ranked(both, Candidate()) == [good, bargain]
    assert FinalState([bargain], base).ranked((TIME,), Candidate()) == [bargain]
    assert FinalState([], {}).ranked(both, Candidate()) == [], "nothing was compared"
    unchanged = replace(idle, candidate=Candidate())
    assert len(FinalState([unchanged, idle], base).ranked((TIME,), Candidate())) == 2, "it is listed once"
