"""Runs, results and Pareto fronts: as text for people, as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planish.cli.output import GAP, facts, remark, say, table, width
from planish.core import Candidate, Measured, Objective, Trial
from planish.core.arguments import as_options
from planish.core.front import growth_of, pareto_front, reference_point
from planish.core.wording import (
    amount,
    duration,
    improvement,
    interval,
    label,
    number,
    one_line,
    saving,
    title,
    verdict_word,
    when,
)
from planish.store import Run, StoredTask
from planish.tuning.comparison import Compared, Finalist
from planish.tuning.comparison_codec import (
    chosen_to_json,
    finalist_to_json,
    medians,
    secondary_baseline_to_json,
)
from planish.tuning.result import EINSUM, NOT_DESCRIBED, Result
from planish.tuning.stored_run import TrialSources, failure_groups, flops_of, stage_times
from planish.tuning.verdict import continuation, verdict_of

if TYPE_CHECKING:
    from planish.report.page import FrontTable, Grid
    from planish.tuning.comparison import Comparison
    from planish.tuning.predictions import ModelSection, Proposal


def front_document(result: Result) -> Mapping[str, Any]:
    """Return the search's front and the hypervolume; nothing with one objective."""
    objectives = result.stored.objectives
    if len(objectives) < 2:
        return {}
    growth = growth_of(result.stored_trials, objectives, result.baseline_candidate)
    front = [
        {
            "trial": trial.index,
            "hash": trial.candidate.hash,
            "steps": json.loads(trial.candidate.text),
            "values": dict(trial.outcome.values),
        }
        for trial in pareto_front(result.stored_trials, objectives)
        if isinstance(trial.outcome, Measured)
    ]
    worst = None if growth.baseline is None else reference_point(growth.baseline)
    return {
        "front": front,
        "hypervolume": {
            "value": growth.volume,
            "reference": worst and {o.name: o.cost(cost) for o, cost in zip(objectives, worst, strict=True)},
            "evaluations": growth.evaluations,
            "grew": [{"evaluations": at, "value": value} for at, value in growth.volumes],
        },
    }


END = (
    "label",
    "objectives",
    "scores",
    "cross_check",
    "edits",
    "main_effects",
    "interactions",
    "trial",
    "notes",
)
"""Return the JSON of a finalist's end, as the store keeps it."""


def ending_document(finalist: Finalist, baseline: Compared) -> Mapping[str, Any]:
    """Return the facts about a finalist in addition to the leading objective."""
    document = finalist_to_json(finalist, baseline)
    return {name: document[name] for name in END}


def baseline_document(result: Result) -> Mapping[str, Any]:
    """Return the facts about the baseline of a front in addition to the leading objective."""
    base = result.front and result.front.baseline
    return {"objectives": medians(base), "scores": dict(base.scores)} if base else {}


def secondary_baseline_document(result: Result) -> Mapping[str, Any]:
    """Return the other baseline of a front; nothing where there is none."""
    other = result.front and result.front.secondary_baseline
    return {"secondary_baseline": secondary_baseline_to_json(other)} if other else {}


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


def result_document(result: Result) -> dict[str, Any]:
    """Return a run with its result."""
    found = verdict_of(result)
    base, sources = result.baseline, TrialSources().add(result.stored_trials)
    return {
        "run": run_document(result.run),
        "task": task_document(result.stored),
        "verdict": {"kind": verdict_word(found.kind, result.objective), "headline": found.headline},
        "best": _best(result),
        "baseline": {**_measured(base), **baseline_document(result)} if base else None,
        **secondary_baseline_document(result),
        "finalists": [
            {**_finalist(each), **ending_document(each, base)} for each in result.finalists if base
        ],
        **unmeasured_document(result),
        **({"descriptions": [dict(texts) for texts in result.descriptions]} if result.descriptions else {}),
        **front_document(result),
        "trials": len(result.stored_trials),
        "cached": result.cached,
        "failed": result.failed,
        "hosts": dict(sources.hosts),
        "clients": dict(sources.clients),
        "failures": [
            {"stage": g.stage, "reason": g.reason, "count": g.count, "detail": g.detail}
            for g in failure_groups(result.stored_trials)
        ],
        "winner": dict(result.description),
        "notes": list(result.notes),
    }


def unmeasured_document(result: Result) -> dict[str, Any]:
    """Return the finalists that were not measured again, and why; nothing where there are none."""
    unmeasured = result.comparison.unmeasured if result.comparison else ()
    rows = [
        {
            **chosen_to_json(each),
            **candidate_document(each.candidate),
            "verdict": each.verdict,
            "why": each.why,
        }
        for each in unmeasured
    ]
    return {"unmeasured": rows} if rows else {}


def candidate_document(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate: its hash, and the steps in canonical form."""
    return {"hash": candidate.hash, "steps": json.loads(candidate.text)}


def _best(result: Result) -> dict[str, Any] | None:
    best = result.best_trial
    if best is None or not isinstance(best.outcome, Measured):
        return None
    values = dict(best.outcome.values)
    return {"trial": best.index, **candidate_document(best.candidate), "values": values}


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


def show_result(result: Result, command: str = "") -> None:
    """Write the verdict, the finalists with the baseline, and the failures.

    Args:
        result: the run.
        command: the command line that resumes it where it is undecided; empty where that is not known.
    """
    found = verdict_of(result)
    target = result.stored.target
    cores = f"{target.cores} core{'s' * (target.cores > 1)}"
    say(f"{one_line(title(result.stored.program))}\non {target.processor}, {cores}\n")
    compared = result.comparison
    several, undecided = len(result.stored.objectives) > 1, found.kind == "undecided"
    if several:
        show_front(result)
    elif compared:
        _show_comparison(result, compared)
    say(_plainly(result, found.kind, found.headline))
    if several or not compared:
        grounds = found.grounds[:-1] if undecided else found.grounds
        say(("\n" if several else "; ").join(filter(None, grounds)))
    if undecided:
        what = f"Run this command, which {continuation(result.run.status)}:\n    {command}"
        say(what if command else f"{found.grounds[-1][0].upper()}{found.grounds[-1][1:]}.")
    if result.failures:
        _show_failures(result.stored_trials)


def _plainly(result: Result, kind: str, headline: str) -> str:
    baseline = f"the baseline ({baseline_name(result)})"
    match kind:
        case _ if len(result.stored.objectives) > 1:
            return f"{headline}."
        case "undecided":
            kept = f" Until then, keep {baseline}." if result.keeps_baseline else ""
            return f"{headline}.{kept}"
        case _ if result.keeps_baseline:
            return f"No gain: no candidate is better than {baseline}. Keep the baseline."
        case "same":
            differ = "are equal" if result.objective.exact else "differ by no more than the noise"
            return f"No gain: the best candidate and {baseline} {differ}. Keep the baseline."
        case "worse":
            return f"No gain: {headline.lower()}. Keep {baseline}."
        case _:
            return f"{headline}."


def baseline_name(result: Result) -> str:
    """Name what the finalists are compared with: `numpy`, or the steps, or the unchanged program."""
    baseline = result.baseline_candidate
    if baseline is None:
        return "unknown"
    if not baseline.steps:
        return "unchanged"
    _, options = baseline.steps[0].to_json() if len(baseline.steps) == 1 else ("", {})
    return options["name"] if list(options) == ["name"] else str(baseline)


def _show_comparison(result: Result, compared: Comparison) -> None:
    objective, work = result.objective, flops_of(result.best_trial, result.objective)
    rates = ["GFLOPS"] if work else []
    interval = [] if objective.exact else ["95 % interval"]
    gain = saving(objective)
    columns = ["", label(objective), *rates, gain, *interval, "verdict"]
    rank = "".join(f"{e.name} = " for e in compared.finalists if e.candidate == result.baseline_candidate)
    base = [
        f"{rank}baseline ({baseline_name(result)})",
        *_values(objective, compared.baseline.lead.median, work),
    ]
    rows = [
        [*base, *[""] * (len(columns) - len(base))],
        *(_row(each, work) for each in compared.finalists if each.candidate != result.baseline_candidate),
        *(
            [names, *[""] * (len(columns) - 2), one_line(members[0].status_text)]
            for names, members in compared.unmeasured_groups
        ),
    ]
    table(columns, rows, right=[label(objective), *rates, gain])
    say()


def _values(objective: Objective, median: float, work: float | None) -> list[str]:
    return [amount(median, objective.unit), *([number(work / median) if median else ""] if work else [])]


def _row(finalist: Finalist, work: float | None) -> list[str]:
    lead = finalist.lead
    objective = lead.objective
    values = _values(objective, lead.median, work)
    ends = [] if objective.exact else [interval(lead.gain)]
    gain = improvement(lead.gain.value, objective)
    return [finalist.title, *values, gain, *ends, verdict_word(lead.verdict, objective)]


def _show_failures(trials: Sequence[Trial]) -> None:
    """Write why trials failed, the most frequent reasons first."""
    groups = failure_groups(trials)
    say(f"\n{sum(g.count for g in groups):,} of {len(trials):,} trials failed:")
    for group in groups[:_SHOWN]:
        say(f"  {group.count:>6,}  {group.stage}: {one_line(group.reason)}: {one_line(group.detail)}")
    if groups[_SHOWN:]:
        say(f"  {sum(g.count for g in groups[_SHOWN:]):>6,}  for {len(groups) - _SHOWN} other reasons")


def show_run(result: Result) -> None:
    """Write what was asked for, and what it took."""
    run = result.run
    options = "".join(f", {name}={value}" for name, value in run.options.items())
    known = f", {result.cached:,} of them from the store" if result.cached else ""
    stages = stage_times(result.stored_trials, run.seconds)
    facts(
        {
            "run": f"{run.id}, {run.status}, started {when(run.started)} on {run.host}",
            "objective": ", ".join(o.name for o in result.stored.objectives),
            "search": "none: planish.einsum selected a backend"
            if run.searcher == EINSUM
            else f"{run.searcher} over {run.space}, seed {run.seed}{options}",
            **({} if run.searcher == EINSUM else {"trials": f"{len(result.stored_trials):,}{known}"}),
            **TrialSources().add(result.stored_trials).texts(),
            "time": ", ".join(f"{s.stage} {duration(s.total_s)}" for s in stages if s.total_s) or "unknown",
        }
    )


def show_winner(result: Result, titles: Collection[str] | None = None) -> None:
    """Write what the winner does: the level's whole description, or what has one of these titles.

    With several objectives it is what each of the front does, without titles also the effects of its steps.
    """
    if result.descriptions:
        show_members(result, effects=titles is None)
    elif titles is None or titles:  # a description takes time
        show_sections({h: text for h, text in result.description.items() if titles is None or h in titles})


def report_stand_in(result: Result) -> None:
    """Say, on standard error, where what is exported is not the winner, and why."""
    if not result.finalists and result.exported != result.candidate:
        remark("The best candidate was not compared with the original, so the original is written.")
    elif result.exported != result.candidate:
        library = f"the baseline ({baseline_name(result)})"
        why = (
            f"The comparison is undecided, and {library}"
            if verdict_of(result).kind == "undecided"
            else f"No candidate is better than {library}, which"
        )
        remark(f"{why} cannot be exported, so the best kernel of the search was written.")


def show_notes(notes: Sequence[str]) -> None:
    """Write how the run was measured."""
    for note in notes:
        say(f"\nNote: {as_options(note)}.")


def show_sections(sections: Mapping[str, str]) -> None:
    """Write a level's description of a candidate: texts under their titles."""
    for heading, text in sections.items():
        if heading.startswith(NOT_DESCRIBED):
            text = as_options(text)
        say(f"\n{heading}\n{'-' * len(heading)}\n{text.rstrip()}")


def show_model(section: ModelSection) -> None:
    """Write how well each batch was predicted, and which features make the winner good."""
    say("\nmodel\n-----")
    rows = [
        [f"{batch.before:,}", f"{len(batch.values):,}", f"{batch.correlation:+.2f}"]
        for batch in section.batches
    ]
    heads = ["learned from", "then measured", "rank correlation"]
    table(heads, rows, right=heads)
    good = [f"{name} ({worse:+.2f})" for name, worse in section.importance[:_SHOWN]]
    if good:
        say(f"the winner by its features, in deviations of predictions: {', '.join(good)}")


def model_document(section: ModelSection | None) -> dict[str, Any]:
    """Return the same as JSON; nothing where no model guided the run."""
    if section is None:
        return {}
    batches = [
        {"before": each.before, "measured": len(each.values), "rank_correlation": each.correlation}
        for each in section.batches
    ]
    return {"model": {"batches": batches, "importance": dict(section.importance)}}


def show_policy(proposals: Sequence[Proposal], objective: Objective) -> None:
    """Write how probable the first candidates were to the policy, and what came of them."""
    say("\npolicy\n------")
    rows = [
        [
            str(each.trial.index),
            f"{each.probability:.2%}",
            "failed" if each.value is None else amount(each.value, objective.unit),
            one_line(str(each.trial.candidate)),
        ]
        for each in proposals[:_SHOWN]
    ]
    heads = ["trial", "probability", label(objective), "candidate"]
    table(heads, rows, right=heads[:3])


def policy_document(proposals: Sequence[Proposal]) -> dict[str, Any]:
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


def show_front(result: Result, columns: int | None = None) -> None:
    """Write the plot, how the hypervolume grew, and the table of the front.

    Args:
        result: of a run with several objectives.
        columns: the width of the table; None for that of standard output.
    """
    from planish.report.page import front_table
    from planish.tuning.result_text import ASCII, FULL, scatter

    objectives = result.stored.objectives
    growth = growth_of(result.stored_trials, objectives, result.baseline_candidate)
    encoding = sys.stdout.encoding or "ascii"
    for line in scatter(growth, FULL if "utf" in encoding.lower() else ASCII):
        say(line)
    if growth.volume is not None:
        after = growth.volumes[-1][0]
        say(f"\nhypervolume {number(growth.volume)} (baseline 1), reached after {after:,} evaluations")
    if front := result.front:
        say()
        show_front_table(front_table(front), width() if columns is None else columns)
        for member in front.finalists:
            if member.cross_check.agrees is False:
                say(f"{member.name}: {member.cross_check.why}")
        say()


def show_front_table(made: FrontTable, most: int) -> None:
    """Write the table of a front, in two parts where it is wider than `most` columns."""
    for shown in _column_parts(made, most):
        heads = [made.columns[index] for index in shown]
        table(heads, [[row[index] for index in shown] for row in made.rows], made.right)
        say()
    if made.note:
        say(made.note)


def _column_parts(made: FrontTable, most: int) -> list[list[int]]:
    """List the indices of the table's columns, some of which may have one name.

    Where the table is too wide, they are those of two: the scores stand apart.
    """
    cells = zip(made.columns, *made.rows, strict=True)
    wide = sum(max(map(len, column)) + GAP for column in cells) - GAP
    if wide <= most or not made.scores:
        return [[*range(len(made.columns))]]
    name, *others = range(len(made.columns))
    return [
        [name, *(index for index in others if (made.columns[index] in made.scores) is apart)]
        for apart in (False, True)
    ]


def show_members(result: Result, *, effects: bool) -> None:
    """Write what each of the front does.

    Args:
        result: of a run with several objectives.
        effects: whether to write what its steps do alone and together.
    """
    from planish.report.page import effect_grids

    for member, texts in zip(result.finalists, result.descriptions, strict=False):
        heading, text = next(iter(texts.items()), ("", ""))
        title = f"{member.name}: {heading}"
        say(f"\n{title}\n{'-' * len(title)}\n{text.rstrip()}")
        for note in member.notes:
            say(f"Note: {note}.")
        for grid in effect_grids(member, result.stored.objectives) if effects else ():
            _show_grid(grid)


def _show_grid(grid: Grid) -> None:
    heads = [str(number) for number in range(1, len(grid.rows) + 1)]
    rows = [
        [head, *[""] * index, *(f"{cell.text}{'*' * cell.together}" for cell in row)]
        for index, (head, row) in enumerate(zip(heads, grid.rows, strict=True))
    ]
    say(f"\neffects of single edits and of pairs: {grid.name}")
    table(["", *heads], rows, heads)
    for numbers, cell in grid.triples:
        say(f"{numbers} together: {cell.text}{'*' * cell.together}")
    if any(cell.together for row in grid.rows for cell in row):
        say("* differs from the effects of both alone")
