"""Verdict of a run: one line and the figures behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from planish.core import HELD_BACK, Objective, Ratio, is_within, within
from planish.report.data import ReportData
from planish.report.trial_statistics import failure_groups, flops_of
from planish.report.wording import (
    amount,
    improvement,
    interval,
    label,
    multiple,
    number,
    saving,
    verdict_word,
    words,
)
from planish.store.rows import RunStatus
from planish.tuning.comparison import Compared, Comparison, Finalist

VerdictType = Literal["better", "same", "worse", "undecided", "failed", "open", "nothing"]


@dataclass(frozen=True)
class Verdict:
    """The line, and what stands behind it.

    Args:
        kind: "undecided" where the comparison is too uncertain to decide, or did not happen; "open" while the
            search goes on; "nothing" where nothing was measured.
        headline: one line.
        grounds: sentences with the figures.
    """

    kind: VerdictType
    headline: str
    grounds: tuple[str, ...]


def continuation(status: RunStatus) -> str:
    """Return what the command that made a run does when it is given again."""
    return (
        "settles the comparison first" if status == "finished" else "goes on with the search, then compares"
    )


_NO_BARGAIN = "Nothing is better than the baseline without being worse in something else"


def verdict_of_front(front: Comparison) -> Verdict:
    """Judge a front, as measured again, by its members that are worse than the baseline in nothing."""
    objectives = front.objectives
    found = [(o, member) for o in objectives if (member := _best(front, o)) is not None]
    if not found:
        if unsettled := front.undecided(None):
            text = f"Undecided: {unsettled.name} may be better than the baseline, not settled"
            return Verdict("undecided", text, (*_ends(front), *_how_of_front(front)))
        return Verdict("same", _NO_BARGAIN, (*_ends(front), *_how_of_front(front)))
    text = "; ".join(_bargain(front, o, member) for o, member in found)
    members = {member.name: member for _, member in found}
    unseen = [line for member in members.values() for line in _unseen(front, member)]
    return Verdict("better", text[0].upper() + text[1:], (*unseen, *_ends(front), *_how_of_front(front)))


def _best(front: Comparison, objective: Objective) -> Finalist | None:
    """Find the member that is best by an objective, of those better by it and worse in nothing."""
    fit = [m for m in front.finalists if m.unharmed and m.measured[objective.name].verdict == "better"]
    return min(fit, key=lambda m: objective.cost(_decisive_value(m, objective)), default=None)


def _decisive_value(member: Compared, objective: Objective) -> float:
    """Return the value on examples that were held back; without such, that of the comparison."""
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
    now, before = (amount(_decisive_value(m, objective), objective.unit) for m in (member, front.baseline))
    part = "" if member.held_back(objective.name) is None else f"{HELD_BACK} "
    return f"{part}{label(objective)} {now} instead of {before}"


def _unseen(front: Comparison, member: Finalist) -> Iterator[str]:
    """Describe how a member did on data that the search did not see."""
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
    """Name the best by each objective, whatever it costs."""
    for objective in front.objectives:
        best = min(front.finalists, key=lambda m: objective.cost(m.measured[objective.name].median))
        values = ", ".join(
            f"{label(m.objective)} {amount(m.median, m.objective.unit)}" for m in best.measured.values()
        )
        yield f"best {label(objective)} of the front: {best.name}, {values}"


def _how_of_front(front: Comparison) -> Iterator[str]:
    yield f"{len(front.finalists)} on the front, measured again at the end, interleaved, in fresh processes"
    asked = {m.name: m.opinion.agrees for m in front.finalists}
    disputed = [name for name, agrees in asked.items() if agrees is False]
    silent = [name for name, agrees in asked.items() if agrees is None]
    if disputed:
        yield f"the second opinion differs on {', '.join(disputed)}: no win is claimed for these"
    if 0 < len(silent) < len(asked):
        yield f"the second opinion has no answer for {', '.join(silent)}: their gains are not cross-checked"


_UNSURE = "single measurement; the best of many is usually optimistic"
_KEEP = "the result is the baseline itself"


def verdict_of(data: ReportData) -> Verdict:
    """Judge a run by the comparison at its end, and by nothing else.

    The last ground of an undecided one is how to go on.
    """
    found = _verdict(data)
    if found.kind != "undecided":
        return found
    # The store has no command lines: they may hold passwords.
    repeated = "repeat the command, or the call of planish.tune, that made this run"
    return replace(found, grounds=(*found.grounds, f"{repeated}: it {continuation(data.run.status)}"))


def _verdict(data: ReportData) -> Verdict:
    if data.best is None:
        return _nothing(data)
    if data.front:
        found = verdict_of_front(data.front)
        return replace(found, grounds=(_KEEP, *found.grounds)) if data.keeps_baseline else found
    if data.comparison is None or not data.finalists:
        return _open(data)
    build = _kept if data.keeps_baseline else _compared
    return build(data, data.comparison)


def _kept(data: ReportData, comparison: Comparison) -> Verdict:
    """Judge a run whose result is the baseline by the best of the others: it is the same, or undecided."""
    if unknown := comparison.undecided(data.baseline):
        if unknown.unmeasured is None:
            return _undecided(data, unknown)
        headline = "Undecided: no candidate was compared with the baseline"
        return Verdict("undecided", headline, (f"{unknown.name}: {unknown.why}",))
    best = comparison.contender(data.baseline)
    text = [f"the best of the others is {best.name}: {_beside(data, best)}"] if best else []
    return Verdict("same", "Nothing is better than the baseline", (_KEEP, *text, _how(data)))


def _undecided(data: ReportData, finalist: Finalist) -> Verdict:
    """Report what was seen of a finalist whose interval is too wide to decide, and how to settle it."""
    gain = finalist.lead.gain
    quality = "fast" if data.objective.unit == "s" else "good"
    headline = f"Undecided: about {multiple(gain.value)} as {quality} as the baseline, not settled"
    grounds = [f"{finalist.name}: {_interval(gain)}, which is too wide to decide"]
    if data.keeps_baseline:
        grounds.append("until it is settled, the result is the baseline itself")
    return Verdict("undecided", headline, (*grounds, _how(data)))


def _beside(data: ReportData, finalist: Finalist) -> str:
    gain, said = finalist.lead.gain, verdict_word(finalist.lead.verdict, data.objective)
    if data.objective.exact:
        return f"{improvement(gain.value, data.objective)} {saving(data.objective)}, {said}"
    return f"{multiple(gain.value)}, {_interval(gain)}, {said}"


def _interval(gain: Ratio) -> str:
    return f"95 % confidence interval {interval(gain)}"


def _compared(data: ReportData, comparison: Comparison) -> Verdict:
    kind, gain = comparison.finalists[0].lead.verdict, comparison.finalists[0].lead.gain.value
    if kind == "undecided":
        return _undecided(data, comparison.finalists[0])
    good, bad = words(data.objective).values()
    headlines: dict[VerdictType, str] = {
        "better": f"{improvement(gain, data.objective)} {good} than the baseline",
        "same": "No difference from the baseline",
        "worse": f"{bad.capitalize()} than the baseline: {multiple(gain)}",
    }
    return Verdict(kind, headlines.get(kind, "Failed"), tuple(_grounds(data, kind, comparison)))


def _grounds(data: ReportData, kind: VerdictType, comparison: Comparison) -> Iterator[str]:
    winner = comparison.finalists[0]
    gain = winner.lead.gain
    if not data.objective.exact:
        noise = f"{multiple(gain.value)}, which is within the noise: " if kind == "same" else ""
        yield f"{noise}{_interval(gain)}"
    both = _both(data, winner.lead.median, comparison.baseline.lead.median)
    yield f"median {label(data.objective)} {both}"
    yield _how(data)


def _how(data: ReportData) -> str:
    return f"measured again at the end{'' if data.objective.exact else ', interleaved, in fresh processes'}"


def _both(data: ReportData, winner: float, base: float) -> str:
    text = f"{amount(winner, data.objective.unit)} against {amount(base, data.objective.unit)}"
    flops = flops_of(data.trials, data.objective)
    return f"{text} ({number(flops / winner)} against {number(flops / base)} GFLOPS)" if flops else text


def _open(data: ReportData) -> Verdict:
    assert data.best is not None
    value = data.objective.cost(data.best.cost(data.objective) or 0.0)
    found = f"best {label(data.objective)} of the search: {amount(value, data.objective.unit)}"
    grounds = (
        f"{found}, in trial {data.best.index + 1}",
        *(() if data.objective.exact else (_UNSURE,)),
    )
    if data.run.status == "running":
        return Verdict("open", "Not compared with the baseline", (*grounds, "the search goes on"))
    undecided = "Undecided: not compared with the baseline"
    return Verdict("undecided", undecided, (*grounds, f"the run is {data.run.status}"))


def _nothing(data: ReportData) -> Verdict:
    if not data.trials:
        return Verdict("nothing", "Nothing was tried", (f"the run is {data.run.status}",))
    groups = failure_groups(data.trials)[:3]
    reasons = ", ".join(f"{group.stage}: {group.reason} ({group.count})" for group in groups)
    tried = f"{len(data.trials):,} tried"
    return Verdict("nothing", "Nothing could be measured", (f"{tried}; {reasons}" if reasons else tried,))
