"""Encoding of a comparison for the store: a row for each finalist, with JSON.

The keys of a row's JSON, by objective name where a value is a mapping:

- `version`: of this format; a comparison of another one is refused;
- `hash`: of the candidate; `samples`: by the leading objective;
- `objectives`: for each `median`, `ratio` (value, low, high; of objective / baseline's), `verdict`,
  `baseline` (the median). Where processor time is known too, `clocks` (see
  `planish.results.comparison.Clocks`);
- `scores`: what data that the search did not see gives; empty where that was left out;
- `second_opinion`: `agrees`, `difference`, `why` (see `planish.core.Opinion`);
- `edits`: steps as `searched` and as `left` after minimising;
- `effects`: `alone` with `step`, `pairs` with `steps` and `additive`, and `triples` likewise, where there are
  some; each with `values`, and `why` where there are none (see `planish.core.Effect`);
- `trial`: the values as the search measured them, of the candidate before it was minimised;
- `notes`: sentences on what could not be done for this one;
- `figures`, where its level has some: what `describe` tells (see `planish.core.HasFigures`).

Who was not measured again comes last, with `hash`, `edits`, `trial` and `notes` as above, and

- `unmeasured`: "failed", or "undecided"; `why`, in one line.

In the first row there is also what belongs to all:

- `baseline`: its `median` and `samples` by the leading objective; `baseline_scores`; `baseline_opinion`, as
  `second_opinion`, where it was asked for;
- `noise`: the share by which equals differ, measured while minimising; empty where nothing was minimised;
- `reference`, where there is one: its `name`, and the medians as `objectives`;
- `run_notes`: sentences on how the whole run was measured.

Where nothing was compared, there may be one row, of the baseline, with `version` and `run_notes` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planish.core import Candidate, Effect, Opinion, Ratio
from planish.results.comparison import Clocks, Compared, Comparison, Finalist, Measurement
from planish.store import ResultRow

VERSION = 4


def encode(comparison: Comparison) -> list[ResultRow]:
    """Give the rows of a comparison: the finalists, then those who were not measured."""
    rows = list[ResultRow]()
    for finalist in comparison.finalists:
        shared = {} if rows else _shared(comparison)
        data = {"version": VERSION, **finalist_to_json(finalist, comparison.baseline), **shared}
        rows.append(ResultRow(finalist.candidate, finalist.lead.gain.value, data))
    for finalist in comparison.unmeasured:
        rows.append(ResultRow(finalist.candidate, 0.0, {"version": VERSION, **_unmeasured_to_json(finalist)}))
    return rows


def encode_notes(baseline: Candidate, notes: Sequence[str]) -> ResultRow:
    """Return the row of a run in which nothing was compared: why."""
    return ResultRow(baseline, 0.0, {"version": VERSION, "run_notes": list(notes)})


def _shared(comparison: Comparison) -> dict[str, Any]:
    base, reference = comparison.baseline, comparison.reference
    return {
        "baseline": {"median": base.lead.median, "samples": list(base.lead.samples)},
        "baseline_scores": dict(base.scores),
        **({"baseline_opinion": _opinion_to_json(base.opinion)} if base.opinion != Opinion() else {}),
        "noise": dict(comparison.noise),
        **({"reference": reference_to_json(reference)} if reference else {}),
        "run_notes": list(comparison.notes),
    }


def reference_to_json(reference: Compared) -> dict[str, Any]:
    """Give another baseline's name and medians."""
    return {"name": reference.name, "objectives": medians(reference)}


def medians(compared: Compared) -> dict[str, float]:
    """Give somebody's medians by the objectives' names."""
    return {name: each.median for name, each in compared.measured.items()}


def finalist_to_json(finalist: Finalist, baseline: Compared) -> dict[str, Any]:
    """Give what a row says of one finalist."""
    return {
        "samples": list(finalist.lead.samples),
        **chosen_to_json(finalist),
        "objectives": {
            name: _measurement_to_json(each, baseline.measured[name])
            for name, each in finalist.measured.items()
        },
        "scores": dict(finalist.scores),
        "second_opinion": _opinion_to_json(finalist.opinion),
        "effects": {
            "alone": [{"step": e.steps[0], **_effect(e)} for e in finalist.alone],
            "pairs": [_joined_effect(e) for e in finalist.pairs],
            **({"triples": [_joined_effect(e) for e in finalist.triples]} if finalist.triples else {}),
        },
        **({"figures": dict(finalist.figures)} if finalist.figures else {}),
    }


def _unmeasured_to_json(finalist: Finalist) -> dict[str, Any]:
    """Give what a row says of one that was not measured."""
    return {**chosen_to_json(finalist), "unmeasured": finalist.verdict, "why": finalist.why}


def chosen_to_json(finalist: Finalist) -> dict[str, Any]:
    """Give what is known of a finalist before it is measured."""
    return {
        "hash": finalist.candidate.hash,
        "edits": {"searched": finalist.searched, "left": len(finalist.candidate.steps)},
        "trial": dict(finalist.trial),
        "notes": list(finalist.notes),
    }


def _opinion_to_json(opinion: Opinion) -> dict[str, Any]:
    return {"agrees": opinion.agrees, "difference": opinion.difference, "why": opinion.why}


def _measurement_to_json(measured: Measurement, baseline: Measurement) -> dict[str, Any]:
    clocks = {"clocks": _clocks_to_json(measured.clocks)} if measured.clocks else {}
    ratio, verdict = _ends(measured.ratio), measured.verdict
    return {
        "median": measured.median,
        "ratio": ratio,
        "verdict": verdict,
        "baseline": baseline.median,
        **clocks,
    }


def _clocks_to_json(clocks: Clocks) -> dict[str, Any]:
    return {
        "wall": _ends(clocks.wall),
        "processor": _ends(clocks.processor),
        "decides": clocks.decides,
        "disputed": clocks.disagree,
        "samples": [list(row) for row in clocks.samples],
        "baseline_samples": [list(row) for row in clocks.baseline_samples],
    }


def _ends(ratio: Ratio) -> list[float]:
    return [ratio.value, ratio.low, ratio.high]


def _joined_effect(effect: Effect) -> dict[str, Any]:
    return {"steps": list(effect.steps), "additive": dict(effect.additive), **_effect(effect)}


def _effect(effect: Effect) -> dict[str, Any]:
    return {"values": dict(effect.values), **({"why": effect.why} if effect.why else {})}
