"""Decoding of a stored comparison. A store may come from anywhere, so every value is checked."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from planish.core import VERDICTS, Effect, Objective, Opinion, Ratio, StoreError, Verdict
from planish.results.checked import a, by_name, number, numbers, texts
from planish.results.codec import VERSION
from planish.results.comparison import Clocks, Compared, Comparison, Finalist, Measurement
from planish.store import ResultRow

_Json = Mapping[str, Any]


def decode(rows: Sequence[ResultRow], objectives: Sequence[Objective]) -> Comparison | None:
    """Read a comparison back.

    Args:
        rows: a run's, by rank.
        objectives: of its task.

    Returns:
        None where nobody was compared by these objectives.

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


@contextmanager
def _reading(row: ResultRow, name: str) -> Generator[None]:
    """Tell of whatever is wrong in a row as one error."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        told = f"the result of run {row.run_id} cannot be read: {name}: {type(error).__name__}: {error}"
        raise StoreError(told, "Tune again.") from error


def _finalists(rows: Sequence[ResultRow], objectives: Sequence[Objective]) -> Iterator[Finalist]:
    for rank, row in enumerate(rows, 1):
        with _reading(row, f"#{rank}"):
            chosen = _chosen(f"#{rank}", row)
            yield chosen if chosen.unmeasured else _measured(chosen, row.data, objectives)


def _shared_of(first: _Json, objectives: Sequence[Objective]) -> Comparison:
    """Give what belongs to all, without the finalists."""
    told = first.get("reference")
    # Samples are kept of the leading objective alone.
    samples = [numbers(first["baseline"]["samples"]), *[()] * len(objectives)]
    base = {
        o.name: Measurement(o, number(first["objectives"][o.name]["baseline"]), samples=known)
        for o, known in zip(objectives, samples, strict=False)
    }
    opinion = _opinion(first["baseline_opinion"]) if "baseline_opinion" in first else Opinion()
    scores = by_name(first["baseline_scores"])
    return Comparison(
        (),
        Compared(name="baseline", measured=base, scores=scores, opinion=opinion),
        None if told is None else _reference(told, objectives),
        by_name(first["noise"]),
        texts(first["run_notes"]),
    )


def _reference(told: _Json, objectives: Sequence[Objective]) -> Compared:
    measured = {o.name: Measurement(o, number(told["objectives"][o.name])) for o in objectives}
    return Compared(name=a(str, told["name"]), measured=measured)


def _opinion(told: _Json) -> Opinion:
    agrees, difference = told["agrees"], told["difference"]
    return Opinion(
        None if agrees is None else a(bool, agrees),
        None if difference is None else number(difference),
        a(str, told["why"]),
    )


def _chosen(name: str, row: ResultRow) -> Finalist:
    """Give what is known of a finalist before it is measured, or that it was not."""
    data = row.data
    return Finalist(
        name=name,
        candidate=row.candidate,
        searched=a(int, data["edits"]["searched"]),
        trial=by_name(data["trial"]),
        notes=texts(data["notes"]),
        intact=data["hash"] == row.candidate.hash,
        unmeasured=_verdict(data["unmeasured"]) if "unmeasured" in data else None,
        why=a(str, data.get("why", "")),
    )


def _measured(chosen: Finalist, data: _Json, objectives: Sequence[Objective]) -> Finalist:
    effects = data["effects"]
    samples = [numbers(data["samples"]), *[()] * len(objectives)]
    return replace(
        chosen,
        measured={
            o.name: _measurement(data["objectives"][o.name], o, known)
            for o, known in zip(objectives, samples, strict=False)
        },
        scores=by_name(data["scores"]),
        opinion=_opinion(data["second_opinion"]),
        alone=tuple(_effect_of(each, [each["step"]]) for each in effects["alone"]),
        pairs=tuple(_effect_of(each, each["steps"]) for each in effects["pairs"]),
        triples=tuple(_effect_of(each, each["steps"]) for each in effects.get("triples", ())),
        figures=a(dict, data.get("figures", {})),
    )


def _effect_of(told: _Json, steps: Sequence[Any]) -> Effect:
    additive = {name: a(bool, value) for name, value in told.get("additive", {}).items()}
    places = tuple(a(int, step) for step in steps)
    return Effect(places, by_name(told["values"]), additive, a(str, told.get("why", "")))


def _measurement(told: _Json, objective: Objective, samples: tuple[float, ...]) -> Measurement:
    clocks = _clocks(told["clocks"]) if "clocks" in told else None
    verdict = _verdict(told["verdict"])
    return Measurement(objective, number(told["median"]), _ratio(told["ratio"]), verdict, samples, clocks)


def _verdict(told: Any) -> Verdict:
    if told not in VERDICTS:
        raise ValueError(f"no verdict is {told!r}")
    verdict: Verdict = told
    return verdict


def _ratio(told: Any) -> Ratio:
    value, low, high = numbers(told)
    return Ratio(value, low, high)


def _clocks(told: _Json) -> Clocks:
    samples, base = (tuple(map(numbers, told[name])) for name in ("samples", "baseline_samples"))
    decides = told["decides"]
    if decides not in ("wall", "processor"):
        raise ValueError(f"no clock is {decides!r}")
    wall, processor = _ratio(told["wall"]), _ratio(told["processor"])
    return Clocks(wall, processor, decides, a(bool, told["disputed"]), samples, base)
