"""What came of a run, in one line."""

from collections.abc import Sequence
from dataclasses import replace

from planish.core import Objective
from planish.report.curve import value_for
from planish.report.data import ReportData
from planish.report.failures import failure_groups
from planish.report.front import front_at_end
from planish.report.judgement import Kind, Verdict
from planish.report.standings import Standing, standings, work_of
from planish.report.tradeoffs import verdict_of_front
from planish.report.wording import amount, improvement, label, multiple, number, saving, words

_UNSURE = "measured once, among many: the true value is likely to be worse"
_KEEP = "the result is the baseline itself: nothing is to be changed"
_KINDS: dict[str, Kind] = {"faster": "better", "no difference": "same", "slower": "worse"}


def verdict_of(story: ReportData) -> Verdict:
    """Judge a run by the comparison at its end, and by nothing else."""
    if story.best is None:
        return _nothing(story)
    if front := front_at_end(story.finalists, story.task.objectives):
        found = verdict_of_front(front, story.task.objectives)
        return replace(found, grounds=(_KEEP, *found.grounds)) if story.keeps_baseline else found
    compared = standings(story.finalists, story.objective)
    if story.keeps_baseline:
        return _kept(story, compared)
    kind = _KINDS.get(compared[0].verdict) if compared else None
    return _compared(story, kind, compared) if kind else _open(story)


def _kept(story: ReportData, compared: Sequence[Standing]) -> Verdict:
    """Tell that the baseline is the result, and how the best of the others did."""
    others = [s for s in compared if s.candidate not in (None, story.baseline)]
    next_best = [f"the best of the others is {s.name}: {_beside(story, s)}" for s in others[:1]]
    return Verdict("same", "Nothing is better than the baseline", (_KEEP, *next_best, _how(story)))


def _beside(story: ReportData, standing: Standing) -> str:
    said = words(story.objective).get(standing.verdict, standing.verdict)
    if story.objective.exact or standing.interval is None:
        return f"{improvement(standing.gain, story.objective)} {saving(story.objective)}, {said}"
    low, high = map(multiple, standing.interval)
    return f"{multiple(standing.gain)}, 95 % confidence interval {low} to {high}, {said}"


def _compared(story: ReportData, kind: Kind, compared: Sequence[Standing]) -> Verdict:
    winner = compared[0]
    good, bad = words(story.objective).values()
    gain = improvement(winner.gain, story.objective)
    headline = {
        "better": f"{gain} {good} than the baseline",
        "same": "No difference from the baseline",
        "worse": f"{bad.capitalize()} than the baseline: {multiple(winner.gain)}",
    }[kind]
    return Verdict(kind, headline, tuple(_grounds(story, kind, compared)))


def _grounds(story: ReportData, kind: Kind, compared: Sequence[Standing]) -> list[str]:
    winner = compared[0]
    gain = f"{multiple(winner.gain)}, which is within the noise: " if kind == "same" else ""
    found = list[str]()
    exact = story.objective.exact
    if winner.interval is not None and not exact:
        low, high = map(multiple, winner.interval)
        found.append(f"{gain}95 % confidence interval {low} to {high}")
    base = next((s for s in compared if s.candidate is None), None)
    if base is not None and winner.median is not None and base.median is not None:
        found.append(f"median {label(story.objective)} {_both(story, winner.median, base.median)}")
    found.append(_how(story))
    return [*found, *(_other(story, winner, objective) for objective in story.task.objectives[1:])]


def _how(story: ReportData) -> str:
    return f"measured again at the end{'' if story.objective.exact else ', interleaved, in fresh processes'}"


def _other(story: ReportData, winner: Standing, objective: Objective) -> str:
    """Tell what a gain cost in another objective: no winner is better in all of them by definition."""
    values = (
        value_for(story.trials, candidate, objective) for candidate in (winner.candidate, story.baseline)
    )
    mine, base = (amount(v, objective.unit) if v is not None else "unknown" for v in values)
    return f"{label(objective)} {mine} against {base}, as the search measured it"


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
