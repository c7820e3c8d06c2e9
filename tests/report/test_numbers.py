"""All numbers of one small run, as read by a person once."""

from __future__ import annotations

import pprint
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from golden_text import Golden
from planish.core import Candidate, Measured, Trial
from planish.report.chart_data import by_number, by_time, curve, strip_of, tradeoffs
from planish.report.trial_statistics import failure_groups, stage_times
from planish.tuning.comparison import Compared, Finalist
from report.planks import ERROR, STARTED, TIME, compared, failed, finalist, measured, trial

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def _trials() -> list[Trial]:
    """A run whose sixth trial came from the store, and that slept before the eighth."""
    trials = [
        trial(0, Measured({"time_s": 1e-3, "error": 0.1})),
        failed(1, "refused", "no such axis"),
        measured(2, 0.5e-3, error=0.2),
        failed(3, "timeout", "10 s"),
        measured(4, 0.7e-3, error=0.1),
        replace(measured(5, 0.4e-3, error=0.3), cached=True, time=STARTED - 999),
        failed(6, "refused", "another axis"),
        measured(7, 0.3e-3, error=0.5),
    ]
    trials[0] = replace(trials[0], candidate=Candidate())
    trials[7] = replace(trials[7], time=STARTED + 5000)
    return trials


def _plain(things: Sequence[DataclassInstance | None]) -> list[Any]:
    return [thing and asdict(thing) for thing in things]


def test_numbers(golden: Golden) -> None:
    trials = _trials()
    finalists = [finalist(7, 0.31, "better"), finalist(5, 0.98, "same")]
    clock = by_time(trials, STARTED)
    found = compared(finalists)
    samples = {each.name: each.lead.samples for each in (*found.finalists, found.baseline)}
    numbers = {
        "by number": _plain([curve(trials, by_number(trials), TIME)]),
        "by time": _plain([clock, curve(trials, clock.seconds, TIME)]),
        "failures": _plain(failure_groups(trials)),
        "stages": _plain(stage_times(trials, {"search": 0.5, "compare": 1.5, "polish": 0.25, "run": 99.0})),
        "standings": [*map(_standing, found.finalists), _standing(found.baseline)],
        "samples": _plain([strip_of(samples)]),
        "tradeoffs": _plain(tradeoffs(trials, [TIME, ERROR], [f.candidate for f in finalists], Candidate())),
    }
    golden.check("report/numbers.txt", pprint.pformat(_rounded(numbers), width=110, sort_dicts=False))


def _standing(somebody: Compared) -> dict[str, Any]:
    """Give what is told of somebody in the comparison."""
    lead, finalist = somebody.lead, somebody if isinstance(somebody, Finalist) else None
    return {
        "name": somebody.name,
        "candidate": asdict(finalist.candidate) if finalist else None,
        "median": lead.median,
        "gain": lead.gain.value,
        "interval": (lead.gain.low, lead.gain.high) if finalist else None,
        "verdict": lead.verdict if finalist else "",
        "samples": lead.samples,
    }


def _rounded(value: Any) -> Any:
    """Round to what every processor agrees on."""
    match value:
        case float():
            return float(f"{value:.9g}")
        case dict():
            return {str(name): _rounded(part) for name, part in value.items()}
        case list() | tuple():
            return [_rounded(part) for part in value]
        case _:
            return value
