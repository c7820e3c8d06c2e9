"""Comparisons as rows of the store: a row for each finalist, with JSON.

The keys of a row's JSON, by objective name where a value is a mapping:

- `version`: of this format; a comparison of another one is refused;
- `hash`: of the candidate;
- `samples`: by the leading objective;
- `objectives`: for each `median`, `ratio` (value, low, high; of objective / baseline's), `verdict`,
  `baseline` (the median), and where processor time is known `clocks` (see
  `planish.tuning.comparison.Clocks`);
- `scores`: values on data that the search did not see; empty where that was left out;
- `cross_check`: `agrees`, `difference`, `why` (see `planish.core.CrossCheck`);
- `edits`: how many steps were `found`, and how many are `left` after minimizing;
- `main_effects` of single steps, and `interactions` of two or three: each with `steps`, `values`, where that
  is known `additive`, and `why` where there are no values (see `planish.core.Attribution`);
- `trial`: the values as the search measured them, of the candidate before it was minimized;
- `notes`: sentences on what could not be done for this one;
- `analysis`, where its level has some: input of `describe` (see `planish.core.Level.analyzer`).

Finalists that were not measured again come last, with `hash`, `edits`, `trial` and `notes` as above, and
`unmeasured` ("failed", or "undecided") with `why`, in one line.

In the first row there is also what belongs to all:

- `baseline`: its `median` and `samples` by the leading objective; `baseline_scores`; `baseline_cross_check`;
- `noise`: the share by which equals differ, measured while minimizing; empty where nothing was minimized;
- `secondary_baseline`, where there is one: its `name`, and the medians as `objectives`;
- `run_notes`: sentences on how the whole run was measured.

Where nothing was compared, there may be one row, of the baseline, with `version` and `run_notes`, and while
the comparison goes on with `interim`: a list with the `name`, `ratio` and `repeats` of each finalist by the
leading objective. Readers of comparisons find none in it.

A store may come from anywhere, so decoding checks the type of every value.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from planish.core import VERDICTS, Attribution, Candidate, CrossCheck, Objective, Ratio, StoreError, Verdict
from planish.store import ResultRow
from planish.tuning.comparison import Clocks, Compared, Comparison, Finalist, InterimRatio, Measurement

VERSION = 5


def encode(comparison: Comparison) -> list[ResultRow]:
    """Return the rows of a comparison: the finalists, then those that were not measured."""
    rows = list[ResultRow]()
    for finalist in comparison.finalists:
        shared = {} if rows else _shared(comparison)
        data = {"version": VERSION, **finalist_to_json(finalist, comparison.baseline), **shared}
        rows.append(ResultRow(finalist.candidate, finalist.lead.gain.value, data))
    for finalist in comparison.unmeasured:
        why = {"unmeasured": finalist.verdict, "why": finalist.why}
        rows.append(
            ResultRow(finalist.candidate, 0.0, {"version": VERSION, **chosen_to_json(finalist), **why})
        )
    return rows


def encode_notes(baseline: Candidate, notes: Sequence[str]) -> ResultRow:
    """Return the row of a run in which nothing was compared: why."""
    return ResultRow(baseline, 0.0, {"version": VERSION, "run_notes": list(notes)})


def encode_interim(baseline: Candidate, notes: Sequence[str], found: Sequence[InterimRatio]) -> ResultRow:
    """Return the row of a run whose comparison goes on.

    Args:
        baseline: of the task.
        notes: why nothing was compared before, where an earlier session left some.
        found: what is known by now.
    """
    row = encode_notes(baseline, notes)
    interim = [{"name": each.name, "ratio": _ends(each.ratio), "repeats": each.repeats} for each in found]
    return replace(row, data={**row.data, "interim": interim})


def _shared(comparison: Comparison) -> dict[str, Any]:
    base, other = comparison.baseline, comparison.secondary_baseline
    return {
        "baseline": {"median": base.lead.median, "samples": list(base.lead.samples)},
        "baseline_scores": dict(base.scores),
        "baseline_cross_check": _cross_check_to_json(base.cross_check),
        "noise": dict(comparison.noise),
        **({"secondary_baseline": secondary_baseline_to_json(other)} if other else {}),
        "run_notes": list(comparison.notes),
    }


def secondary_baseline_to_json(baseline: Compared) -> dict[str, Any]:
    """Return another baseline's name and medians."""
    return {"name": baseline.name, "objectives": medians(baseline)}


def medians(compared: Compared) -> dict[str, float]:
    """Return a finalist's medians by the objectives' names."""
    return {name: each.median for name, each in compared.measured.items()}


def finalist_to_json(finalist: Finalist, baseline: Compared) -> dict[str, Any]:
    """Return one finalist as a row has it."""
    return {
        "samples": list(finalist.lead.samples),
        **chosen_to_json(finalist),
        "objectives": {
            name: _measurement_to_json(each, baseline.measured[name])
            for name, each in finalist.measured.items()
        },
        "scores": dict(finalist.scores),
        "cross_check": _cross_check_to_json(finalist.cross_check),
        "main_effects": [*map(_attribution_to_json, finalist.main_effects)],
        "interactions": [*map(_attribution_to_json, finalist.interactions)],
        **({"analysis": dict(finalist.analysis)} if finalist.analysis else {}),
    }


def chosen_to_json(finalist: Finalist) -> dict[str, Any]:
    """Return the facts about a finalist before it is measured."""
    return {
        "hash": finalist.candidate.hash,
        "label": finalist.label,
        "edits": {"found": finalist.n_steps_found, "left": len(finalist.candidate.steps)},
        "trial": dict(finalist.trial),
        "notes": list(finalist.notes),
    }


def _cross_check_to_json(cross_check: CrossCheck) -> dict[str, Any]:
    return {"agrees": cross_check.agrees, "difference": cross_check.difference, "why": cross_check.why}


def _measurement_to_json(measured: Measurement, baseline: Measurement) -> dict[str, Any]:
    return {
        "median": measured.median,
        "ratio": _ends(measured.ratio),
        "verdict": measured.verdict,
        "baseline": baseline.median,
        **({"clocks": _clocks_to_json(measured.clocks)} if measured.clocks else {}),
    }


def _clocks_to_json(clocks: Clocks) -> dict[str, Any]:
    return {
        "wall": _ends(clocks.wall),
        "processor": _ends(clocks.processor),
        "decides": clocks.decides,
        "disagree": clocks.disagree,
        "samples": [list(row) for row in clocks.samples],
        "baseline_samples": [list(row) for row in clocks.baseline_samples],
    }


def _ends(ratio: Ratio) -> list[float]:
    return [ratio.value, ratio.low, ratio.high]


def _attribution_to_json(effect: Attribution) -> dict[str, Any]:
    additive = {"additive": dict(effect.additive)} if effect.additive else {}
    why = {"why": effect.why} if effect.why else {}
    return {"steps": list(effect.steps), "values": dict(effect.values), **additive, **why}


_T = TypeVar("_T")
_SHOWN = 40


def a(kind: type[_T], raw: Any) -> _T:
    """Return a value that is of a type; raises TypeError where it is not."""
    # To Python a truth value is a whole number, too.
    if isinstance(raw, kind) and (kind is bool or not isinstance(raw, bool)):
        return raw
    raise TypeError(f"expected {kind.__name__}, got {_shown(raw)}")


def number(raw: Any) -> float:
    """Return a number; JSON has whole ones too."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return raw
    raise TypeError(f"expected a number, got {_shown(raw)}")


def numbers(raw: Any) -> tuple[float, ...]:
    """Return a list of numbers."""
    return tuple(map(number, a(list, raw)))


def texts(raw: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    return tuple(a(str, each) for each in a(list, raw))


def by_name(raw: Any) -> Mapping[str, float]:
    """Return numbers by name."""
    return {name: number(value) for name, value in a(dict, raw).items()}


def _shown(raw: Any) -> str:
    text = repr(raw)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_Json = Mapping[str, Any]


def decode(rows: Sequence[ResultRow], objectives: Sequence[Objective]) -> Comparison | None:
    """Read a comparison back.

    Args:
        rows: a run's, by rank.
        objectives: of its task.

    Returns:
        None where nothing was compared by these objectives.

    Raises:
        StoreError: another version of planish wrote it, or it is damaged.
    """
    if not rows:
        return None
    with _reading(rows[0], "#1"):
        if not {o.name for o in objectives} <= {*rows[0].data.get("objectives", ())}:
            return None
        version = a(int, rows[0].data["version"])
        if version != VERSION:
            what = f"the result of run {rows[0].run_id} has format {version}, this planish reads {VERSION}"
            raise StoreError(what, "Upgrade planish." if version > VERSION else "Tune again.")
        shared = _shared_of(rows[0].data, objectives)
    found = tuple(_finalists(rows, objectives))
    return replace(
        shared,
        finalists=tuple(each for each in found if not each.unmeasured),
        unmeasured=tuple(each for each in found if each.unmeasured),
    )


def decode_notes(rows: Sequence[ResultRow]) -> tuple[str, ...]:
    """Read back how a run was measured, or why nothing was compared.

    Raises:
        StoreError: it is damaged.
    """
    if not rows:
        return ()
    with _reading(rows[0], "#1"):
        return texts(rows[0].data.get("run_notes", []))


def is_interim(rows: Sequence[ResultRow]) -> bool:
    """Return whether a comparison goes on, or was broken off."""
    return bool(rows) and "interim" in rows[0].data


def decode_interim(rows: Sequence[ResultRow]) -> tuple[InterimRatio, ...]:
    """Read back what is known of a comparison that goes on, or was broken off; empty where nothing is.

    Raises:
        StoreError: it is damaged.
    """
    if not rows:
        return ()
    with _reading(rows[0], "#1"):
        return tuple(
            InterimRatio(a(str, each["name"]), _ratio(each["ratio"]), a(int, each["repeats"]))
            for each in a(list, rows[0].data.get("interim", []))
        )


@contextmanager
def _reading(row: ResultRow, name: str) -> Generator[None]:
    """Raise one kind of error for whatever is wrong in a row."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"the result of run {row.run_id} cannot be read: {name}: {type(error).__name__}: {error}"
        raise StoreError(what, "Tune again.") from error


def _finalists(rows: Sequence[ResultRow], objectives: Sequence[Objective]) -> Iterator[Finalist]:
    for rank, row in enumerate(rows, 1):
        with _reading(row, f"#{rank}"):
            chosen = _chosen(f"#{rank}", row)
            yield chosen if chosen.unmeasured else _measured(chosen, row.data, objectives)


def _shared_of(first: _Json, objectives: Sequence[Objective]) -> Comparison:
    """Return the facts common to all finalists."""
    raw = first.get("secondary_baseline")
    # Samples are kept of the leading objective alone.
    samples = [numbers(first["baseline"]["samples"]), *[()] * len(objectives)]
    base = {
        o.name: Measurement(o, number(first["objectives"][o.name]["baseline"]), samples=known)
        for o, known in zip(objectives, samples, strict=False)
    }
    other: Compared | None = None
    if raw is not None:
        medians_of = {o.name: Measurement(o, number(raw["objectives"][o.name])) for o in objectives}
        other = Compared(name=a(str, raw["name"]), measured=medians_of)
    cross_check = _cross_check(first["baseline_cross_check"])
    scores = by_name(first["baseline_scores"])
    return Comparison(
        (),
        Compared(name="baseline", measured=base, scores=scores, cross_check=cross_check),
        other,
        by_name(first["noise"]),
        texts(first["run_notes"]),
    )


def _cross_check(raw: _Json) -> CrossCheck:
    agrees, difference = raw["agrees"], raw["difference"]
    return CrossCheck(
        None if agrees is None else a(bool, agrees),
        None if difference is None else number(difference),
        a(str, raw["why"]),
    )


def _chosen(name: str, row: ResultRow) -> Finalist:
    """Return the facts about a finalist before it is measured, or that it was not."""
    data = row.data
    return Finalist(
        name=name,
        candidate=row.candidate,
        label=a(str, data.get("label", "")),
        n_steps_found=a(int, data["edits"]["found"]),
        trial=by_name(data["trial"]),
        notes=texts(data["notes"]),
        hash_ok=data["hash"] == row.candidate.hash,
        unmeasured=_verdict(data["unmeasured"]) if "unmeasured" in data else None,
        why=a(str, data.get("why", "")),
    )


def _measured(chosen: Finalist, data: _Json, objectives: Sequence[Objective]) -> Finalist:
    samples = [numbers(data["samples"]), *[()] * len(objectives)]
    return replace(
        chosen,
        measured={
            o.name: _measurement(data["objectives"][o.name], o, known)
            for o, known in zip(objectives, samples, strict=False)
        },
        scores=by_name(data["scores"]),
        cross_check=_cross_check(data["cross_check"]),
        main_effects=tuple(map(_attribution, a(list, data["main_effects"]))),
        interactions=tuple(map(_attribution, a(list, data["interactions"]))),
        analysis=a(dict, data.get("analysis", {})),
    )


def _attribution(raw: _Json) -> Attribution:
    steps = tuple(a(int, step) for step in raw["steps"])
    additive = {name: a(bool, value) for name, value in raw.get("additive", {}).items()}
    return Attribution(steps, by_name(raw["values"]), additive, a(str, raw.get("why", "")))


def _measurement(raw: _Json, objective: Objective, samples: tuple[float, ...]) -> Measurement:
    clocks = _clocks(raw["clocks"]) if "clocks" in raw else None
    verdict = _verdict(raw["verdict"])
    return Measurement(objective, number(raw["median"]), _ratio(raw["ratio"]), verdict, samples, clocks)


def _verdict(raw: Any) -> Verdict:
    if raw not in VERDICTS:
        raise ValueError(f"no verdict is {raw!r}")
    verdict: Verdict = raw
    return verdict


def _ratio(raw: Any) -> Ratio:
    value, low, high = numbers(raw)
    return Ratio(value, low, high)


def _clocks(raw: _Json) -> Clocks:
    samples, base = (tuple(map(numbers, raw[name])) for name in ("samples", "baseline_samples"))
    decides = raw["decides"]
    if decides not in ("wall", "processor"):
        raise ValueError(f"no clock is {decides!r}")
    wall, processor = _ratio(raw["wall"]), _ratio(raw["processor"])
    return Clocks(wall, processor, decides, a(bool, raw["disagree"]), samples, base)
