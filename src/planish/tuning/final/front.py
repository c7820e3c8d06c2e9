"""Is the front still one, now that its members were measured again?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planish.core import Objective
from planish.results.result import Ranked
from planish.tuning.final.comparing import Standings
from planish.tuning.final.paired import times_worse
from planish.tuning.final.state import FinalState


def drop_beaten(state: FinalState, objectives: Sequence[Objective]) -> None:
    """Take out the members that another one or the baseline beats: the search had measured them too well.

    Who is disputed beats nobody, and is not taken out: it is to be seen. Where the baseline beats all, those
    that it alone beats stay, and a note says so.

    Args:
        state: its members were measured again, and doubted.
        objectives: with a single one there is no front, and nobody is taken out.
    """
    if len(objectives) < 2:
        return
    noise = {o.name: state.noise_of(o) for o in objectives}

    def beaten(member: Ranked, rivals: Sequence[Standings]) -> bool:
        if member.opinion.agrees is False:
            return False
        return any(beats(rival, member.standings, noise, objectives) for rival in rivals)

    left = list(state.members)
    # Rivals are those left: beyond a noise, to beat is not transitive, and of a circle one must stay.
    for member in state.members:
        rivals = [m.standings for m in left if m is not member and m.opinion.agrees is not False]
        if beaten(member, rivals):
            left.remove(member)
    good = [member for member in left if not beaten(member, [state.baseline])]
    if not good:
        state.notes.append("the baseline, measured again, beats all of the front")
    if gone := len(state.members) - len(good or left):
        state.notes.append(
            f"{gone} of the front: no better than another one, or the baseline, measured again"
        )
    state.members = good or left


def beats(
    one: Standings, other: Standings, noise: Mapping[str, float], objectives: Sequence[Objective]
) -> bool:
    """Tell whether one is better than another somewhere, beyond the noise, and worse nowhere beyond it.

    Args:
        one: how it did, by objective.
        other: the same of the other.
        noise: objective name to the share by which equals differ.
        objectives: what counts.
    """
    times = [
        (times_worse(o, [{o.name: other[o.name].median}], [{o.name: one[o.name].median}]), 1 + noise[o.name])
        for o in objectives
    ]
    return any(t > most for t, most in times) and all(t >= 1 / most for t, most in times)
