"""Is the front still one, now that its members were measured again? And who comes first?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from planish.core import Candidate, Measured, Objective, Verdict
from planish.results.comparison import Compared, Finalist
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.paired import times_worse
from planish.tuning.final.search_outcome import SearchOutcome


def settle(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Take out who is beaten, now that it is known who is disputed, and put the best first."""
    return order(search, drop_beaten(state, search.task.objectives), end)


def order(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Put first what is best to take."""
    del end
    return ordered(state, search.task.objectives, search.level.baseline(search.task))


def ordered(state: FinalState, objectives: Sequence[Objective], baseline: Candidate) -> FinalState:
    """Put first what is best to take.

    Of one objective, what is better than the baseline beyond the noise, the best first; then the
    baseline, if it is a finalist, so that it is taken where nothing is proven; then the others.

    Of several, what is worse than the baseline in none. Then the best by the leading objective comes
    first, and by the next one where they differ by noise alone; values on examples that were held back
    are taken where there are any. Those that are disputed come last.

    Args:
        state: its finalists were measured.
        objectives: the leading one first.
        baseline: what they are compared with.
    """

    def place(finalist: Finalist) -> tuple[bool | float, ...]:
        disputed = finalist.opinion.agrees is False
        if len(objectives) > 1:
            return disputed, *_place_on_front(finalist, objectives, state.baseline)
        lead = finalist.lead
        unproven = lead.verdict != "better"
        # Medians would not do: who is settled early is not measured in the same moments as the others.
        cost = objectives[0].cost(lead.ratio.value)
        return disputed, unproven, unproven and finalist.candidate != baseline, cost

    return replace(state, finalists=tuple(sorted(state.finalists, key=place)))


def _place_on_front(
    finalist: Finalist, objectives: Sequence[Objective], baseline: Compared | None
) -> tuple[bool | float, ...]:
    costs = [_cost(finalist, objective, baseline) for objective in objectives]
    worse = any(finalist.measured[o.name].verdict in ("worse", "failed") for o in objectives)
    # Who was not scored on unseen data may be worse: the first has to be known for harmless.
    return (worse, not finalist.unharmed, *costs, objectives[0].cost(finalist.lead.median))


def _cost(finalist: Finalist, objective: Objective, baseline: Compared | None) -> float:
    # Within the noise it counts as the baseline's: else chance would decide before the next objective is
    # asked.
    same = finalist.measured[objective.name].verdict in ("same", "undecided")
    whose = baseline if same and baseline is not None else finalist
    held = whose.held_back(objective.name)
    return objective.cost(whose.measured[objective.name].median if held is None else held)


def dispute(finalist: Finalist) -> Finalist:
    """Claim no win for a finalist on which the second opinion differs."""
    if finalist.opinion.agrees is not False:
        return finalist
    # Only wins: that something is worse needs no second opinion.
    word: Mapping[Verdict, Verdict] = {"better": "failed"}
    told = {
        name: replace(each, verdict=word.get(each.verdict, each.verdict))
        for name, each in finalist.measured.items()
    }
    return replace(finalist, measured=told)


def judge_by_held_back(state: FinalState, unjudged: Collection[Candidate] = ()) -> FinalState:
    """Let the examples that were held back decide verdicts: the search may have learnt its own by heart.

    What could not be scored on them has failed, by an objective that the baseline was scored by.

    Args:
        state: its finalists were scored.
        unjudged: of those who were not, whose workers were lost: that says nothing against them, and nothing
            for them.
    """
    base = state.baseline
    if base is None:
        return state

    def judged(finalist: Finalist) -> Finalist:
        missing: Verdict = "undecided" if finalist.candidate in unjudged else "failed"
        found = {
            name: replace(each, verdict=_verdict(each.objective, finalist, base, missing) or each.verdict)
            for name, each in finalist.measured.items()
        }
        return dispute(replace(finalist, measured=found))

    return replace(state, finalists=tuple(map(judged, state.finalists)))


def _verdict(
    objective: Objective, finalist: Finalist, baseline: Compared, missing: Verdict
) -> Verdict | None:
    """Judge by the examples that were held back; None where the baseline was not scored on any.

    Where the finalist was not, it is the missing verdict. A difference that is no larger than how well it is
    known is none.
    """
    held, base = (each.held_back(objective.name) for each in (finalist, baseline))
    if base is None:
        return None
    if held is None:
        return missing
    over = objective.cost(held) - objective.cost(base)
    if abs(over) <= finalist.held_back_within(objective.name):
        return "same"
    return "better" if over < 0 else "worse" if over > 0 else "same"


def drop_beaten(state: FinalState, objectives: Sequence[Objective]) -> FinalState:
    """Take out the members that another one or the baseline beats: the search had measured them too well.

    Who is disputed beats nobody, and is not taken out: it is to be seen. Where the baseline beats all, those
    that it alone beats stay, and a note says so.

    Args:
        state: its finalists were measured again, and doubted.
        objectives: with a single one there is no front, and nobody is taken out.
    """
    if len(objectives) < 2 or state.baseline is None:
        return state
    noise = {o.name: state.noise_of(o) for o in objectives}

    def beaten(member: Finalist, rivals: Sequence[Compared]) -> bool:
        if member.opinion.agrees is False:
            return False
        return any(beats(rival, member, noise, objectives) for rival in rivals)

    left = list(state.finalists)
    # Rivals are those left: beyond a noise, to beat is not transitive, and of a circle one must stay.
    for member in state.finalists:
        rivals = [m for m in left if m is not member and m.opinion.agrees is not False]
        if beaten(member, rivals):
            left.remove(member)
    good = [member for member in left if not beaten(member, [state.baseline])]
    gone = len(state.finalists) - len(good or left)
    lost = f"{gone} of the front: no better than another one, or the baseline, measured again"
    return replace(state, finalists=tuple(good or left)).noted(
        "" if good else "the baseline, measured again, beats all of the front", lost if gone else ""
    )


def beats(
    one: Compared, other: Compared, noise: Mapping[str, float], objectives: Sequence[Objective]
) -> bool:
    """Tell whether one is better than another somewhere, beyond the noise, and worse nowhere beyond it.

    Args:
        one: was measured.
        other: was measured too.
        noise: objective name to the share by which equals differ.
        objectives: what counts.
    """
    medians = [Measured({n: m.median for n, m in each.measured.items()}) for each in (other, one)]
    times = [(times_worse(o, medians[:1], medians[1:]), 1 + noise[o.name]) for o in objectives]
    return any(t > most for t, most in times) and all(t >= 1 / most for t, most in times)
