"""What came of a run with several objectives, in one line: what is better at no cost."""

from __future__ import annotations

from collections.abc import Iterator

from planish.core import HELD_BACK, Objective, is_within, within
from planish.report.judgement import Verdict
from planish.report.wording import amount, label, multiple, number, words
from planish.results.comparison import Compared, Comparison, Finalist

_NOTHING = "Nothing is better than the baseline without being worse in something else"


def verdict_of_front(front: Comparison) -> Verdict:
    """Judge a front, as measured again, by its members that are worse than the baseline in nothing."""
    objectives = front.objectives
    found = [(o, member) for o in objectives if (member := _best(front, o)) is not None]
    if not found:
        if unsettled := front.undecided(None):
            told = f"Undecided: {unsettled.name} may be better than the baseline, not settled"
            return Verdict("undecided", told, (*_ends(front), *_how(front)))
        return Verdict("same", _NOTHING, (*_ends(front), *_how(front)))
    told = "; ".join(_bargain(front, o, member) for o, member in found)
    members = {member.name: member for _, member in found}
    unseen = [line for member in members.values() for line in _unseen(front, member)]
    return Verdict("better", told[0].upper() + told[1:], (*unseen, *_ends(front), *_how(front)))


def _best(front: Comparison, objective: Objective) -> Finalist | None:
    """Find the member that is best by an objective, of those better by it and worse in nothing."""
    fit = [m for m in front.finalists if m.unharmed and m.measured[objective.name].verdict == "better"]
    return min(fit, key=lambda m: objective.cost(_telling(m, objective)), default=None)


def _telling(member: Compared, objective: Objective) -> float:
    """Give the value on examples that were held back; without such, that of the comparison."""
    held = member.held_back(objective.name)
    return member.measured[objective.name].median if held is None else held


def _bargain(front: Comparison, objective: Objective, member: Finalist) -> str:
    rest = [o for o in front.objectives if o != objective]
    worse = "no more" if all(o.direction == "down" for o in rest) else "no worse"
    noise = any(member.noise_decides(o.name, front.baseline) for o in rest)
    at = f"{worse} {' and '.join(map(label, rest))}{' beyond the noise' if noise else ''}"
    return f"{_change(front, objective, member)} at {at} ({member.name})"


def _change(front: Comparison, objective: Objective, member: Finalist) -> str:
    if not objective.exact:
        return f"{multiple(member.measured[objective.name].gain.value)} {words(objective)['better']}"
    now, before = (amount(_telling(m, objective), objective.unit) for m in (member, front.baseline))
    part = "" if member.held_back(objective.name) is None else f"{HELD_BACK} "
    return f"{part}{label(objective)} {now} instead of {before}"


def _unseen(front: Comparison, member: Finalist) -> Iterator[str]:
    """Tell how a member did on data that the search did not see."""
    base = front.baseline.scores
    pairs = [
        f"{name.replace('_', ' ')} {number(v)} against {number(base[name])}{_known(member, name)}"
        for name, v in member.scores.items()
        if name in base and not is_within(name)
    ]
    if pairs:
        yield f"{member.name} at the end, against the baseline: {', '.join(pairs)}"


def _known(member: Finalist, score: str) -> str:
    known = member.scores.get(within(score))
    return "" if known is None else f" (± {known:.2g})"


def _ends(front: Comparison) -> Iterator[str]:
    """Tell of the best by each objective, whatever it costs."""
    for objective in front.objectives:
        best = min(front.finalists, key=lambda m: objective.cost(m.measured[objective.name].median))
        values = ", ".join(
            f"{label(m.objective)} {amount(m.median, m.objective.unit)}" for m in best.measured.values()
        )
        yield f"best {label(objective)} of the front: {best.name}, {values}"


def _how(front: Comparison) -> Iterator[str]:
    yield f"{len(front.finalists)} on the front, measured again at the end, interleaved, in fresh processes"
    asked = {m.name: m.opinion.agrees for m in front.finalists}
    disputed = [name for name, agrees in asked.items() if agrees is False]
    silent = [name for name, agrees in asked.items() if agrees is None]
    if disputed:
        yield f"the second opinion differs on {', '.join(disputed)}: no win is claimed for these"
    if 0 < len(silent) < len(asked):
        yield f"the second opinion has no answer for {', '.join(silent)}: their gains are not cross-checked"
