"""What came of a run, in one line."""

from collections.abc import Iterator
from dataclasses import replace

from planish.core import Ratio
from planish.report.data import ReportData
from planish.report.failure_groups import failure_groups
from planish.report.judgement import Kind, Verdict, continuation
from planish.report.tradeoffs import verdict_of_front
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
from planish.report.work import work_of
from planish.results.comparison import Comparison, Finalist

_UNSURE = "single measurement; the best of many is usually optimistic"
_KEEP = "the result is the baseline itself"


def verdict_of(story: ReportData) -> Verdict:
    """Judge a run by the comparison at its end, and by nothing else.

    The last ground of an undecided one is how to go on.
    """
    found = _judged(story)
    if found.kind != "undecided":
        return found
    # The store has no command lines: they may hold passwords.
    repeated = "repeat the command, or the call of planish.tune, that made this run"
    return replace(found, grounds=(*found.grounds, f"{repeated}: it {continuation(story.run.status)}"))


def _judged(story: ReportData) -> Verdict:
    if story.best is None:
        return _nothing(story)
    if story.front:
        found = verdict_of_front(story.front)
        return replace(found, grounds=(_KEEP, *found.grounds)) if story.keeps_baseline else found
    if story.comparison is None or not story.finalists:
        return _open(story)
    judge = _kept if story.keeps_baseline else _compared
    return judge(story, story.comparison)


def _kept(story: ReportData, comparison: Comparison) -> Verdict:
    """Judge a run whose result is the baseline by the best of the others: it is the same, or undecided."""
    if unknown := comparison.undecided(story.baseline):
        if unknown.unmeasured is None:
            return _undecided(story, unknown)
        headline = "Undecided: no candidate was compared with the baseline"
        return Verdict("undecided", headline, (f"{unknown.name}: {unknown.why}",))
    best = comparison.contender(story.baseline)
    told = [f"the best of the others is {best.name}: {_beside(story, best)}"] if best else []
    return Verdict("same", "Nothing is better than the baseline", (_KEEP, *told, _how(story)))


def _undecided(story: ReportData, finalist: Finalist) -> Verdict:
    """Report what was seen of a finalist whose interval is too wide to tell, and how to settle it."""
    gain = finalist.lead.gain
    quality = "fast" if story.objective.unit == "s" else "good"
    headline = f"Undecided: about {multiple(gain.value)} as {quality} as the baseline, not settled"
    grounds = [f"{finalist.name}: {_interval(gain)}, which is too wide to tell"]
    if story.keeps_baseline:
        grounds.append("until it is settled, the result is the baseline itself")
    return Verdict("undecided", headline, (*grounds, _how(story)))


def _beside(story: ReportData, finalist: Finalist) -> str:
    gain, said = finalist.lead.gain, verdict_word(finalist.lead.verdict, story.objective)
    if story.objective.exact:
        return f"{improvement(gain.value, story.objective)} {saving(story.objective)}, {said}"
    return f"{multiple(gain.value)}, {_interval(gain)}, {said}"


def _interval(gain: Ratio) -> str:
    return f"95 % confidence interval {interval(gain)}"


def _compared(story: ReportData, comparison: Comparison) -> Verdict:
    kind, gain = comparison.finalists[0].lead.verdict, comparison.finalists[0].lead.gain.value
    if kind == "undecided":
        return _undecided(story, comparison.finalists[0])
    good, bad = words(story.objective).values()
    headlines: dict[Kind, str] = {
        "better": f"{improvement(gain, story.objective)} {good} than the baseline",
        "same": "No difference from the baseline",
        "worse": f"{bad.capitalize()} than the baseline: {multiple(gain)}",
    }
    return Verdict(kind, headlines.get(kind, "Failed"), tuple(_grounds(story, kind, comparison)))


def _grounds(story: ReportData, kind: Kind, comparison: Comparison) -> Iterator[str]:
    winner = comparison.finalists[0]
    gain = winner.lead.gain
    if not story.objective.exact:
        noise = f"{multiple(gain.value)}, which is within the noise: " if kind == "same" else ""
        yield f"{noise}{_interval(gain)}"
    both = _both(story, winner.lead.median, comparison.baseline.lead.median)
    yield f"median {label(story.objective)} {both}"
    yield _how(story)


def _how(story: ReportData) -> str:
    return f"measured again at the end{'' if story.objective.exact else ', interleaved, in fresh processes'}"


def _both(story: ReportData, winner: float, base: float) -> str:
    text = f"{amount(winner, story.objective.unit)} against {amount(base, story.objective.unit)}"
    work = work_of(story.trials, story.objective)
    return f"{text} ({number(work / winner)} against {number(work / base)} GFLOPS)" if work else text


def _open(story: ReportData) -> Verdict:
    assert story.best is not None
    value = story.objective.cost(story.best.cost(story.objective) or 0.0)
    found = f"best {label(story.objective)} of the search: {amount(value, story.objective.unit)}"
    grounds = (
        f"{found}, in trial {story.best.index + 1}",
        *(() if story.objective.exact else (_UNSURE,)),
    )
    if story.run.status == "running":
        return Verdict("open", "Not compared with the baseline", (*grounds, "the search goes on"))
    undecided = "Undecided: not compared with the baseline"
    return Verdict("undecided", undecided, (*grounds, f"the run is {story.run.status}"))


def _nothing(story: ReportData) -> Verdict:
    if not story.trials:
        return Verdict("nothing", "Nothing was tried", (f"the run is {story.run.status}",))
    groups = failure_groups(story.trials)[:3]
    reasons = ", ".join(f"{group.stage}: {group.reason} ({group.count})" for group in groups)
    tried = f"{len(story.trials):,} tried"
    return Verdict("nothing", "Nothing could be measured", (f"{tried}; {reasons}" if reasons else tried,))
