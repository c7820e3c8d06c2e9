"""Verdict of a run: one line, and the figures that justify it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from planish.core import HELDOUT, Objective, Ratio, is_within, within
from planish.core.wording import (
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
from planish.store.schema import RunStatus
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.stored_run import failure_groups, flops_of

if TYPE_CHECKING:
    from planish.tuning.stored_run import StoredRun

RunVerdictKind = Literal["better", "same", "worse", "undecided", "failed", "open", "nothing"]


@dataclass(frozen=True)
class RunVerdict:
    """Verdict of a run: the line, and the figures that justify it.

    Args:
        kind: "undecided" where the comparison is too uncertain to decide, or did not happen; "open" while the
            search goes on; "nothing" where nothing was measured.
        headline: one line.
        grounds: sentences with the figures.
    """

    kind: RunVerdictKind
    headline: str
    grounds: tuple[str, ...]


def continuation(status: RunStatus) -> str:
    """Describe what the command that made a run does when it is given again."""
    return "completes the comparison first" if status == "finished" else "resumes the search, then compares"


_NO_BARGAIN = "No candidate is better than the baseline without being worse in another objective"


def verdict_of_front(front: Comparison) -> RunVerdict:
    """Judge a front, as measured again, by its members that are worse than the baseline in nothing."""
    objectives = front.objectives
    found = [(o, member) for o in objectives if (member := _best(front, o)) is not None]
    if not found:
        if unsettled := front.undecided(None):
            text = f"Undecided: {unsettled.name} may be better than the baseline"
            return RunVerdict("undecided", text, (*_ends(front), *_how_of_front(front)))
        return RunVerdict("same", _NO_BARGAIN, (*_ends(front), *_how_of_front(front)))
    text = "; ".join(_bargain(front, o, member) for o, member in found)
    members = {member.name: member for _, member in found}
    unseen = [line for member in members.values() for line in _unseen(front, member)]
    return RunVerdict("better", text[0].upper() + text[1:], (*unseen, *_ends(front), *_how_of_front(front)))


def _best(front: Comparison, objective: Objective) -> Finalist | None:
    """Find the member that is best by an objective, of those better by it and worse in nothing."""
    fit = [m for m in front.finalists if m.unharmed and m.measured[objective.name].verdict == "better"]
    return min(fit, key=lambda m: objective.cost(_decisive_value(m, objective)), default=None)


def _decisive_value(member: Compared, objective: Objective) -> float:
    """Return the value on held-out examples; without such, that of the comparison."""
    held = member.heldout_value(objective.name)
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
    part = "" if member.heldout_value(objective.name) is None else f"{HELDOUT} "
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
    asked = {m.name: m.cross_check.agrees for m in front.finalists}
    differing = [name for name, agrees in asked.items() if agrees is False]
    silent = [name for name, agrees in asked.items() if agrees is None]
    if differing:
        yield f"the cross-check differs on {', '.join(differing)}: no win is claimed for these"
    if 0 < len(silent) < len(asked):
        yield f"the cross-check has no answer for {', '.join(silent)}: their gains are not cross-checked"


_UNSURE = "single measurement; the best of many is usually optimistic"
_KEEP = "the result is the baseline"
_NAMED = 10
"""Ratio of the ends of an interval up to which a headline names its estimate."""


def verdict_of(result: StoredRun) -> RunVerdict:
    """Judge a run by the comparison at its end, and by nothing else.

    The last ground of an undecided one is how to go on.
    """
    found = _verdict(result)
    if found.kind != "undecided":
        return found
    # The store has no command lines: they may hold passwords.
    repeated = "repeat the command, or the call of planish.tune, that made this run"
    return replace(found, grounds=(*found.grounds, f"{repeated}: it {continuation(result.run.status)}"))


def _verdict(result: StoredRun) -> RunVerdict:
    if result.best_trial is None:
        return _nothing(result)
    if result.front:
        found = verdict_of_front(result.front)
        return replace(found, grounds=(_KEEP, *found.grounds)) if result.keeps_baseline else found
    if result.comparison is None or not result.finalists:
        return _open(result)
    build = _kept if result.keeps_baseline else _compared
    return build(result, result.comparison)


def _kept(result: StoredRun, comparison: Comparison) -> RunVerdict:
    """Judge a run whose result is the baseline by the best of the others: it is the same, or undecided."""
    if unknown := comparison.undecided(result.baseline_candidate):
        if unknown.unmeasured is None:
            return _undecided(result, unknown)
        headline = "Undecided: no candidate was compared with the baseline"
        return RunVerdict("undecided", headline, (f"{unknown.name}: {unknown.why}",))
    best = comparison.contender(result.baseline_candidate)
    text = [f"the best other candidate is {best.name}: {_beside(result, best)}"] if best else []
    return RunVerdict("same", "No candidate is better than the baseline", (_KEEP, *text, _how(result)))


def _undecided(result: StoredRun, finalist: Finalist) -> RunVerdict:
    """Report what was seen of a finalist whose interval is too wide to decide, and how to settle it."""
    gain = finalist.lead.gain
    quality = "fast" if result.objective.unit == "s" else "good"
    about = f"about {multiple(gain.value)} as {quality} as the baseline"
    # Where the ends are farther apart than that, the estimate would be taken for more than it is.
    headline = f"Undecided: {about if gain.high <= _NAMED * gain.low else 'the measurements are too noisy'}"
    grounds = [f"{finalist.name}: {_interval(gain)}, which is too wide to decide"]
    if result.keeps_baseline:
        grounds.append("until it is decided, the result is the baseline")
    return RunVerdict("undecided", headline, (*grounds, _how(result)))


def _beside(result: StoredRun, finalist: Finalist) -> str:
    gain, verdict = finalist.lead.gain, verdict_word(finalist.lead.verdict, result.objective)
    if result.objective.exact:
        return f"{improvement(gain.value, result.objective)} {saving(result.objective)}, {verdict}"
    return f"{multiple(gain.value)}, {_interval(gain)}, {verdict}"


def _interval(gain: Ratio) -> str:
    return f"95 % confidence interval {interval(gain)}"


def _compared(result: StoredRun, comparison: Comparison) -> RunVerdict:
    kind, gain = comparison.finalists[0].lead.verdict, comparison.finalists[0].lead.gain.value
    if kind == "undecided":
        return _undecided(result, comparison.finalists[0])
    good, bad = words(result.objective).values()
    headlines: dict[RunVerdictKind, str] = {
        "better": f"{improvement(gain, result.objective)} {good} than the baseline",
        "same": "No difference from the baseline",
        "worse": f"{bad.capitalize()} than the baseline: {multiple(gain)}",
    }
    return RunVerdict(kind, headlines.get(kind, "Failed"), tuple(_grounds(result, kind, comparison)))


def _grounds(result: StoredRun, kind: RunVerdictKind, comparison: Comparison) -> Iterator[str]:
    winner = comparison.finalists[0]
    gain = winner.lead.gain
    if not result.objective.exact:
        noise = f"{multiple(gain.value)}, which is within the noise: " if kind == "same" else ""
        yield f"{noise}{_interval(gain)}"
    both = _both(result, winner.lead.median, comparison.baseline.lead.median)
    yield f"median {label(result.objective)} {both}"
    yield _how(result)


def _how(result: StoredRun) -> str:
    return f"measured again at the end{'' if result.objective.exact else ', interleaved, in fresh processes'}"


def _both(result: StoredRun, winner: float, base: float) -> str:
    text = f"{amount(winner, result.objective.unit)} against {amount(base, result.objective.unit)}"
    flops = flops_of(result.best_trial, result.objective)
    return f"{text} ({number(flops / winner)} against {number(flops / base)} GFLOPS)" if flops else text


def _open(result: StoredRun) -> RunVerdict:
    assert result.best_trial is not None
    value = result.objective.cost(result.best_trial.cost(result.objective) or 0.0)
    found = f"best {label(result.objective)} of the search: {amount(value, result.objective.unit)}"
    grounds = (
        f"{found}, in trial {result.best_trial.index + 1}",
        *(() if result.objective.exact else (_UNSURE,)),
    )
    if result.run.status == "running":
        return RunVerdict("open", "Not compared with the baseline", (*grounds, "the search is still running"))
    undecided = "Undecided: not compared with the baseline"
    return RunVerdict("undecided", undecided, (*grounds, f"the run is {result.run.status}"))


def _nothing(result: StoredRun) -> RunVerdict:
    if not result.stored_trials:
        return RunVerdict("nothing", "Nothing was tried", (f"the run is {result.run.status}",))
    groups = failure_groups(result.stored_trials)[:3]
    reasons = ", ".join(f"{group.stage}: {group.reason} ({group.count})" for group in groups)
    tried = f"{len(result.stored_trials):,} tried"
    return RunVerdict("nothing", "Nothing could be measured", (f"{tried}; {reasons}" if reasons else tried,))
