"""What the store keeps of a finalist, as JSON.

The keys of its `data`, by objective name where a value is a mapping:

- of the leading objective: `hash`, `verdict`, `median`, `samples`, `ratio` (value, low, high; of objective /
  baseline's), `baseline` (`median`, `samples`);
- `objectives`: for each `median`, `ratio`, `verdict`, `baseline` (the median). A verdict is "faster" (better,
  whatever the objective is), "no difference", "slower", or "disputed": better, if the second opinion agreed.
  Where processor time is known too, `clocks`: the ratio by each, `wall` and `processor`; `decides`, which of
  them `ratio` is; `disputed`, whether they contradict each other; `samples` and `baseline_samples`, what the
  processor's is made of, by process, then by round;
- `scores`, `baseline_scores`: what data that the search did not see gives; empty where that was left out;
- `second_opinion`: `agrees`, `difference`, `why` (see `planish.core.Opinion`);
- `edits`: steps as `searched` and as `left` after minimising;
- `effects`: `alone` with `step`, and `pairs` with `steps` and `additive`; each with `values`, and `why` where
  there are none (see `planish.core.Effect`);
- `noise`: the share by which equals differ, measured while minimising; empty where nothing was minimised;
- `reference`, where there is one: its `name`, and the medians as `objectives`;
- `trial`: the values as the search measured them, of the candidate before it was minimised;
- `notes`: sentences on what could not be done for this one;
- `run_notes`: sentences on how the whole run was measured;
- `figures`, where its level has some: what `describe` tells (see `planish.core.HasFigures`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from planish.core import Effect, Task
from planish.measure import Ratio, Standing
from planish.results.result import Ranked
from planish.store import Finalist
from planish.tuning.final.state import FinalState


def stored_finalist(member: Ranked, state: FinalState, task: Task) -> Finalist:
    """Give a finalist's row of the store."""
    leading = task.objectives[0]
    ratio = member.standing.ratio
    assert ratio is not None
    better = ratio.value if leading.direction == "up" else 1 / ratio.value if ratio.value else math.inf
    return Finalist(member.candidate, better, _data(member, state, task))


def _data(member: Ranked, state: FinalState, task: Task) -> Mapping[str, Any]:
    names = [objective.name for objective in task.objectives]
    objectives = {name: _standing(member, state, name) for name in names}
    base = state.baseline[names[0]]
    return {
        "hash": member.candidate.hash,
        "verdict": objectives[names[0]]["verdict"],
        "median": member.standing.median,
        "samples": list(member.standing.samples),
        "ratio": objectives[names[0]]["ratio"],
        "baseline": {"median": base.median, "samples": list(base.samples)},
        "objectives": objectives,
        "scores": dict(member.scores),
        "baseline_scores": dict(state.baseline_scores),
        "second_opinion": {
            "agrees": member.opinion.agrees,
            "difference": member.opinion.difference,
            "why": member.opinion.why,
        },
        "edits": {"searched": member.searched, "left": len(member.candidate.steps)},
        "effects": {
            "alone": [{"step": e.steps[0], **_effect(e)} for e in member.alone],
            "pairs": [
                {"steps": list(e.steps), "additive": dict(e.additive), **_effect(e)} for e in member.pairs
            ],
        },
        "noise": dict(state.noise),
        "trial": dict(member.trial),
        "notes": list(member.notes),
        "run_notes": list(state.notes),
        **({"figures": dict(figures)} if (figures := state.figures.get(member.candidate)) else {}),
        **_reference(state),
    }


def _standing(member: Ranked, state: FinalState, name: str) -> dict[str, Any]:
    standing = member.standings[name]
    ratio = standing.ratio
    return {
        "median": standing.median,
        "ratio": _ends(ratio) if ratio else None,
        "verdict": member.verdict(name),
        "baseline": state.baseline[name].median,
        **_clocks(standing, state.baseline[name]),
    }


def _clocks(standing: Standing, baseline: Standing) -> dict[str, Any]:
    evidence = standing.evidence
    if evidence is None or evidence.processor is None:
        return {}
    clocks = {
        "wall": _ends(evidence.wall),
        "processor": _ends(evidence.processor),
        "decides": "processor" if evidence.by_processor else "wall",
        "disputed": evidence.disputed,
        "samples": [list(row) for row in standing.processor],
        "baseline_samples": [list(row) for row in baseline.processor],
    }
    return {"clocks": clocks}


def _ends(ratio: Ratio) -> list[float]:
    return [ratio.value, ratio.low, ratio.high]


def _effect(effect: Effect) -> dict[str, Any]:
    return {"values": dict(effect.values), **({"why": effect.why} if effect.why else {})}


def _reference(state: FinalState) -> dict[str, Any]:
    if state.reference is None:
        return {}
    return {
        "reference": {"name": state.reference.name, "objectives": dict(state.reference.objectives)},
    }
