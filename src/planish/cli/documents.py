"""Runs and results as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

from planish.cli.front import baseline_document, ending_document, front_document, reference_document
from planish.core import Candidate, Measured
from planish.report.data import ReportData
from planish.report.trial_statistics import failure_groups
from planish.report.verdict import verdict_of
from planish.report.wording import verdict_word
from planish.store import Run, StoredTask
from planish.tuning.comparison import Compared, Finalist
from planish.tuning.comparison_codec import chosen_to_json


def run_document(run: Run) -> dict[str, Any]:
    """Give a run: what was asked for, and how it ended."""
    return {name: getattr(run, name) for name in run.__dataclass_fields__}


def task_document(task: StoredTask) -> dict[str, Any]:
    """Give a task."""
    return {
        "key": task.key,
        "level": task.level,
        "level_version": task.level_version,
        "program": task.program,
        "target": json.loads(task.target.text),
        "objectives": [{"name": o.name, "unit": o.unit, "direction": o.direction} for o in task.objectives],
    }


def result_document(story: ReportData) -> dict[str, Any]:
    """Give a run with its result."""
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
    """Give the finalists who were not measured again, and why; nothing where there are none."""
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
    """Give a candidate: its hash, and the steps in canonical form."""
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
