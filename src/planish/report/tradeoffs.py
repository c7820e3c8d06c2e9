"""What came of a run with several objectives, in one line: what is better at no cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.core import HELD_BACK, Objective
from planish.report.front import Front, Judged, Member
from planish.report.judgement import Verdict
from planish.report.wording import amount, label, multiple, number, words

_NOTHING = "Nothing is better than the baseline without being worse in something else"


def verdict_of_front(front: Front, objectives: Sequence[Objective]) -> Verdict:
    """Judge a front by its members that are worse than the baseline in nothing.

    Args:
        front: as measured again at the end.
        objectives: of the task; at least two.
    """
    found = [(o, member) for o in objectives if (member := _best(front, o)) is not None]
    if not found:
        return Verdict("same", _NOTHING, (*_ends(front, objectives), *_how(front)))
    told = "; ".join(_bargain(front, objectives, o, member) for o, member in found)
    members = {member.name: member for _, member in found}
    unseen = [line for member in members.values() for line in _unseen(front, member)]
    return Verdict("better", told[0].upper() + told[1:], (*unseen, *_ends(front, objectives), *_how(front)))


def _best(front: Front, objective: Objective) -> Member | None:
    """Find the member that is best by an objective, of those better by it and worse in nothing."""
    fit = [m for m in front.members if m.unharmed and m.values[objective.name].verdict == "faster"]
    return min(fit, key=lambda m: objective.cost(_telling(m.values[objective.name])), default=None)


def _telling(judged: Judged) -> float:
    """Give the value on examples that were held back; without such, that of the comparison."""
    return judged.median if judged.held_back is None else judged.held_back


def _bargain(front: Front, objectives: Sequence[Objective], objective: Objective, member: Member) -> str:
    others = " and ".join(label(o) for o in objectives if o != objective)
    worse = "no more" if all(o.direction == "down" for o in objectives if o != objective) else "no worse"
    return f"{_change(front, objective, member)} at {worse} {others} ({member.name})"


def _change(front: Front, objective: Objective, member: Member) -> str:
    judged, base = member.values[objective.name], front.baseline.values[objective.name]
    if objective.exact or judged.gain is None:
        now, before = (amount(_telling(v), objective.unit) for v in (judged, base))
        part = "" if judged.held_back is None else f"{HELD_BACK} "
        return f"{part}{label(objective)} {now} instead of {before}"
    return f"{multiple(judged.gain)} {words(objective)['faster']}"


def _unseen(front: Front, member: Member) -> Iterator[str]:
    """Tell how a member did on data that the search did not see."""
    base = front.baseline.scores
    pairs = [
        f"{name.replace('_', ' ')} {number(v)} against {number(base[name])}"
        for name, v in member.scores.items()
        if name in base
    ]
    if pairs:
        yield f"{member.name} at the end, against the baseline: {', '.join(pairs)}"


def _ends(front: Front, objectives: Sequence[Objective]) -> Iterator[str]:
    """Tell of the best by each objective, whatever it costs."""
    for objective in objectives:
        best = min(front.members, key=lambda m: objective.cost(m.values[objective.name].median))
        values = ", ".join(f"{label(o)} {amount(best.values[o.name].median, o.unit)}" for o in objectives)
        yield f"best {label(objective)} of the front: {best.name}, {values}"


def _how(front: Front) -> Iterator[str]:
    yield f"{len(front.members)} on the front, measured again at the end, interleaved, in fresh processes"
    asked = {m.name: m.agrees for m in front.members}
    disputed = [name for name, agrees in asked.items() if agrees is False]
    silent = [name for name, agrees in asked.items() if agrees is None]
    if disputed:
        yield f"the second opinion differs on {', '.join(disputed)}: no win is claimed for these"
    if 0 < len(silent) < len(asked):
        yield f"the second opinion has no answer for {', '.join(silent)}: their gains are not cross-checked"
