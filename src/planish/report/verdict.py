"""What came of a run, in one line."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from planish.core import Ratio
from planish.report.data import ReportData
from planish.report.failure_groups import failure_groups
from planish.report.judgement import Kind, Verdict
from planish.report.tradeoffs import verdict_of_front
from planish.report.wording import amount, improvement, label, multiple, number, saving, words
from planish.report.work import work_of
from planish.results.comparison import Comparison, Finalist

_UNSURE = "measured once, among many: the true value is likely to be worse"
_KEEP = "the result is the baseline itself: nothing is to be changed"


def verdict_of(story: ReportData) -> Verdict:
    """Judge a run by the comparison at its end, and by nothing else."""
    if story.best is None:
        return _nothing(story)
    if story.front:
        found = verdict_of_front(story.front)
        return replace(found, grounds=(_KEEP, *found.grounds)) if story.keeps_baseline else found
    if story.comparison is None:
        return _open(story)
    if story.keeps_baseline:
        return _kept(story)
    kind = story.comparison.finalists[0].lead.verdict
    if kind in ("better", "same", "worse"):
        return _compared(story, kind, story.comparison)
    return _open(story)


def _kept(story: ReportData) -> Verdict:
    """Tell that the baseline is the result, and how the best of the others did."""
    others = [f for f in story.finalists if f.candidate != story.baseline]
    next_best = [f"the best of the others is {f.name}: {_beside(story, f)}" for f in others[:1]]
    return Verdict("same", "Nothing is better than the baseline", (_KEEP, *next_best, _how(story)))


def _beside(story: ReportData, finalist: Finalist) -> str:
    gain, verdict = finalist.lead.gain, finalist.lead.verdict
    said = words(story.objective).get(verdict, verdict)
    if story.objective.exact:
        return f"{improvement(gain.value, story.objective)} {saving(story.objective)}, {said}"
    return f"{multiple(gain.value)}, {_interval(gain)}, {said}"


def _interval(gain: Ratio) -> str:
    return f"95 % confidence interval {multiple(gain.low)} to {multiple(gain.high)}"


def _compared(story: ReportData, kind: Literal["better", "same", "worse"], comparison: Comparison) -> Verdict:
    gain = comparison.finalists[0].lead.gain.value
    good, bad = words(story.objective).values()
    headline = {
        "better": f"{improvement(gain, story.objective)} {good} than the baseline",
        "same": "No difference from the baseline",
        "worse": f"{bad.capitalize()} than the baseline: {multiple(gain)}",
    }[kind]
    return Verdict(kind, headline, tuple(_grounds(story, kind, comparison)))


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
    return Verdict(
        "open",
        "Not compared with the baseline",
        (
            f"{found}, in trial {story.best.index + 1}",
            *(() if story.objective.exact else (_UNSURE,)),
            "the search goes on" if story.run.status == "running" else f"the run is {story.run.status}",
        ),
    )


def _nothing(story: ReportData) -> Verdict:
    if not story.trials:
        return Verdict("nothing", "Nothing was tried", (f"the run is {story.run.status}",))
    groups = failure_groups(story.trials)[:3]
    reasons = ", ".join(f"{group.stage}: {group.reason} ({group.count})" for group in groups)
    tried = f"{len(story.trials):,} tried"
    return Verdict("nothing", "Nothing could be measured", (f"{tried}; {reasons}" if reasons else tried,))
