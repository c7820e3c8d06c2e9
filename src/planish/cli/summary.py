"""Runs and results: as text for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planish.cli.front import (
    baseline_document,
    ending_document,
    front_document,
    reference_document,
    show_front,
    show_members,
)
from planish.cli.output import facts, one_line, remark, say, table
from planish.core import Candidate, Measured, Objective, Trial
from planish.report.data import ReportData
from planish.report.predictions import Guidance, Proposal
from planish.report.trial_statistics import failure_groups, stage_times, work_of
from planish.report.verdict import continuation, verdict_of
from planish.report.wording import (
    amount,
    duration,
    improvement,
    interval,
    label,
    number,
    saving,
    title,
    verdict_word,
    when,
)
from planish.store import Run, StoredTask
from planish.tuning.comparison import Compared, Finalist
from planish.tuning.comparison_codec import chosen_to_json

if TYPE_CHECKING:
    from planish.tuning.comparison import Comparison
    from planish.tuning.result import Result


def run_document(run: Run) -> dict[str, Any]:
    """Return a run: what was asked for, and how it ended."""
    return {name: getattr(run, name) for name in run.__dataclass_fields__}


def task_document(task: StoredTask) -> dict[str, Any]:
    """Return a task."""
    return {
        "key": task.key,
        "level": task.level,
        "level_version": task.level_version,
        "program": task.program,
        "target": json.loads(task.target.text),
        "objectives": [{"name": o.name, "unit": o.unit, "direction": o.direction} for o in task.objectives],
    }


def result_document(story: ReportData) -> dict[str, Any]:
    """Return a run with its result."""
    found = verdict_of(story)
    base = story.comparison.baseline if story.comparison else None
    return {
        "run": run_document(story.run),
        "task": task_document(story.task),
        "verdict": {"kind": verdict_word(found.kind, story.objective), "headline": found.headline},
        "best": _best(story),
        "baseline": {**_measured(base), **baseline_document(story)} if base else None,
        **reference_document(story),
        "finalists": [{**_finalist(each), **ending_document(each, base)} for each in story.finalists if base],
        **unmeasured_document(story),
        **({"told": [dict(texts) for texts in story.told]} if story.told else {}),
        **front_document(story),
        "trials": len(story.trials),
        "cached": story.cached,
        "failed": story.failed,
        "failures": [
            {"stage": g.stage, "reason": g.reason, "count": g.count, "detail": g.detail}
            for g in failure_groups(story.trials)
        ],
        "winner": dict(story.winner),
        "notes": list(story.notes),
    }


def unmeasured_document(story: ReportData) -> dict[str, Any]:
    """Return the finalists who were not measured again, and why; nothing where there are none."""
    unmeasured = story.comparison.unmeasured if story.comparison else ()
    told = [
        {
            **chosen_to_json(each),
            **candidate_document(each.candidate),
            "verdict": each.verdict,
            "why": each.why,
        }
        for each in unmeasured
    ]
    return {"unmeasured": told} if told else {}


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate: its hash, and the steps in canonical form."""
    return {"hash": candidate.hash, "steps": json.loads(candidate.text)}


def _best(story: ReportData) -> dict[str, Any] | None:
    if story.best is None or not isinstance(story.best.outcome, Measured):
        return None
    values = dict(story.best.outcome.values)
    return {"trial": story.best.index, **candidate_document(story.best.candidate), "values": values}


def _finalist(finalist: Finalist) -> dict[str, Any]:
    lead = finalist.lead
    interval = [lead.gain.low, lead.gain.high]
    compared = {
        "gain": lead.gain.value,
        "interval": interval,
        "verdict": verdict_word(lead.verdict, lead.objective),
    }
    return {**candidate_document(finalist.candidate), **compared, **_measured(finalist)}


def _measured(compared: Compared) -> dict[str, Any]:
    return {"median": compared.lead.median, "samples": compared.lead.samples}


_SHOWN = 5


def show_result(story: ReportData, command: str = "") -> None:
    """Write the verdict, the finalists beside the baseline, and the failures.

    Args:
        story: the run.
        command: what goes on with it where it is undecided; empty where the command line is not known.
    """
    found = verdict_of(story)
    say(f"{one_line(title(story.task.program))}\non {_target(story)}\n")
    compared = story.comparison
    several, undecided = len(story.task.objectives) > 1, found.kind == "undecided"
    if several:
        show_front(story)
    elif compared:
        _show_comparison(story, compared)
    say(_plainly(story, found.kind, found.headline))
    if several or not compared:
        grounds = found.grounds[:-1] if undecided else found.grounds
        say(("\n" if several else "; ").join(filter(None, grounds)))
    if undecided:
        what = f"Run this command, which {continuation(story.run.status)}:\n    {command}"
        say(what if command else f"{found.grounds[-1][0].upper()}{found.grounds[-1][1:]}.")
    show_failures(story.trials)


def _plainly(story: ReportData, kind: str, headline: str) -> str:
    baseline = f"the baseline ({baseline_name(story)})"
    match kind:
        case _ if len(story.task.objectives) > 1:
            return f"{headline}."
        case "undecided":
            kept = f" Until then, keep {baseline}." if story.keeps_baseline else ""
            return f"{headline}.{kept}"
        case _ if story.keeps_baseline:
            return f"No gain: no candidate is better than {baseline}. Keep the baseline."
        case "same":
            differ = "are equal" if story.objective.exact else "differ by no more than the noise"
            return f"No gain: the best candidate and {baseline} {differ}. Keep the baseline."
        case "worse":
            return f"No gain: {headline.lower()}. Keep {baseline}."
        case _:
            return f"{headline}."


def baseline_name(story: ReportData) -> str:
    """Name what the finalists are compared with: `numpy`, or the steps, or the unchanged program."""
    if story.baseline is None:
        return "unknown"
    if not story.baseline.steps:
        return "unchanged"
    _, options = story.baseline.steps[0].to_json() if len(story.baseline.steps) == 1 else ("", {})
    return options["name"] if list(options) == ["name"] else str(story.baseline)


def _show_comparison(story: ReportData, compared: Comparison) -> None:
    objective, work = story.objective, work_of(story.trials, story.objective)
    rates = ["GFLOPS"] if work else []
    interval = [] if objective.exact else ["95 % interval"]
    gain = saving(objective)
    columns = ["", label(objective), *rates, gain, *interval, "verdict"]
    base = [f"baseline ({baseline_name(story)})", *_values(objective, compared.baseline.lead.median, work)]
    rows = [
        [*base, *[""] * (len(columns) - len(base))],
        *([*_row(story, each, work)] for each in compared.finalists),
        *([each.name, *[""] * (len(columns) - 2), one_line(each.told)] for each in compared.unmeasured),
    ]
    table(columns, rows, right=[label(objective), *rates, gain])
    say()


def _values(objective: Objective, median: float, work: float | None) -> list[str]:
    return [amount(median, objective.unit), *([number(work / median) if median else ""] if work else [])]


def _row(story: ReportData, finalist: Finalist, work: float | None) -> list[str]:
    objective, lead = story.objective, finalist.lead
    values = _values(objective, lead.median, work)
    if finalist.candidate == story.baseline:  # compared with itself it has neither an interval nor a verdict
        return [f"{finalist.name} = baseline", *values, *[""] * (2 if objective.exact else 3)]
    ends = [] if objective.exact else [interval(lead.gain)]
    gain = improvement(lead.gain.value, objective)
    return [finalist.name, *values, gain, *ends, verdict_word(lead.verdict, objective)]


def show_failures(trials: Sequence[Trial]) -> None:
    """Write why trials failed, the most frequent reasons first."""
    groups = failure_groups(trials)
    if not groups:
        return
    say(f"\n{sum(g.count for g in groups):,} of {len(trials):,} trials failed:")
    for group in groups[:_SHOWN]:
        say(f"  {group.count:>6,}  {group.stage}: {one_line(group.reason)}: {one_line(group.detail)}")
    if groups[_SHOWN:]:
        say(f"  {sum(g.count for g in groups[_SHOWN:]):>6,}  for {len(groups) - _SHOWN} other reasons")


def show_run(story: ReportData) -> None:
    """Write what was asked for, and what it took."""
    run = story.run
    options = "".join(f", {name}={value}" for name, value in run.options.items())
    known = f", {story.cached:,} of them known before" if story.cached else ""
    stages = (f"{s.stage} {duration(s.total_s)}" for s in stage_times(story.trials, run.seconds) if s.total_s)
    facts(
        {
            "run": f"{run.id}, {run.status}, begun {when(run.started)} on {run.host}",
            "objective": ", ".join(o.name for o in story.task.objectives),
            "search": f"{run.searcher} over {run.space}, seed {run.seed}{options}",
            "trials": f"{len(story.trials):,}{known}",
            "time": ", ".join(stages) or "unknown",
        }
    )


def _target(story: ReportData) -> str:
    target = story.task.target
    return f"{target.processor}, {target.cores} core{'s' * (target.cores > 1)}"


def show_winner(story: ReportData, titles: Collection[str] | None = None) -> None:
    """Write what the winner does: all that the level tells of it, or what has one of these titles.

    With several objectives it is what each of the front does, without titles also the effects of its steps.
    """
    if story.told:
        show_members(story, effects=titles is None)
        return
    show_sections({h: text for h, text in story.winner.items() if titles is None or h in titles})


def tell_stand_in(result: Result) -> None:
    """Say, on standard error, where what is exported is not the winner, and why."""
    if not result.finalists and result.exported != result.candidate:
        remark("The best of the search was not compared with the original, so the original is written.")
    elif result.exported != result.candidate:
        remark(
            f"Nothing is better than {result.candidate}, which cannot be exported: this is the best other."
        )


def show_notes(notes: Sequence[str]) -> None:
    """Write how the run was measured."""
    for note in notes:
        say(f"\nNote: {note}.")


def show_sections(sections: Mapping[str, str]) -> None:
    """Write what a level tells of a candidate: texts under their titles."""
    for heading, text in sections.items():
        say(f"\n{heading}\n{'-' * len(heading)}\n{text.rstrip()}")


def show_guidance(guidance: Guidance) -> None:
    """Write how well each batch was predicted, and which features make the winner good."""
    say("\nmodel\n-----")
    rows = [
        [f"{batch.before:,}", f"{len(batch.values):,}", f"{batch.correlation:+.2f}"]
        for batch in guidance.batches
    ]
    heads = ["learnt from", "then measured", "rank correlation"]
    table(heads, rows, right=heads)
    good = [f"{name} ({worse:+.2f})" for name, worse in guidance.importance[:_SHOWN]]
    if good:
        say(f"the winner by its features, in deviations of predictions: {', '.join(good)}")


def guidance_document(guidance: Guidance | None) -> dict[str, Any]:
    """Return the same as JSON; nothing where no model guided the run."""
    if guidance is None:
        return {}
    batches = [
        {"before": each.before, "measured": len(each.values), "rank_correlation": each.correlation}
        for each in guidance.batches
    ]
    return {"model": {"batches": batches, "importance": dict(guidance.importance)}}


def show_proposals(proposals: Sequence[Proposal], objective: Objective) -> None:
    """Write how probable the first candidates were to the policy, and what came of them."""
    say("\npolicy\n------")
    rows = [
        [
            str(each.trial.index),
            f"{each.probability:.2%}",
            _outcome(each, objective),
            one_line(str(each.trial.candidate)),
        ]
        for each in proposals[:_SHOWN]
    ]
    heads = ["trial", "probability", label(objective), "candidate"]
    table(heads, rows, right=heads[:3])


def _outcome(proposal: Proposal, objective: Objective) -> str:
    return "failed" if proposal.value is None else amount(proposal.value, objective.unit)


def proposals_document(proposals: Sequence[Proposal]) -> dict[str, Any]:
    """Return the same as JSON; nothing where no policy was followed."""
    found = [
        {
            "trial": each.trial.index,
            "probability": each.probability,
            "value": each.value,
            "candidate": each.trial.candidate.text,
        }
        for each in proposals
    ]
    return {"policy": found} if found else {}
