"""Is the front still one, now that its members were measured again?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planish.core import Objective
from planish.finals.bench import times_worse
from planish.finals.comparing import Standings
from planish.finals.ending import Ending


def drop_beaten(ending: Ending, objectives: Sequence[Objective]) -> None:
    """Take out the members that the baseline or another member beats: the search had measured them too well.

    Who is disputed beats nobody, and is not taken out: it is to be seen. If nobody would be left, all are.

    Args:
        ending: its members were measured again, and doubted.
        objectives: with a single one there is no front, and nobody is taken out.
    """
    if len(objectives) < 2:
        return
    noise = {o.name: ending.noise_of(o) for o in objectives}
    left = list(ending.members)
    for member in ending.members:
        rivals = [m.standings for m in left if m is not member and m.opinion.agrees is not False]
        beaten = any(
            beats(rival, member.standings, noise, objectives) for rival in (ending.baseline, *rivals)
        )
        if beaten and member.opinion.agrees is not False:
            left.remove(member)
    if left and len(left) < len(ending.members):
        gone = len(ending.members) - len(left)
        ending.notes.append(
            f"{gone} of the front: no better than another one, or the baseline, measured again"
        )
        ending.members = left


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
