"""What a comparison measured of a variant, and what it says."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planish.core import Failed, Lost, Measured, Objective, Outcome, PlanishError, Ratio, Verdict
from planish.measure.evidence import Evidence
from planish.measure.interval import ratio
from planish.measure.samples import by_processor_time

NO_TIME = "no time left to measure it"


@dataclass(frozen=True)
class PairedSamples:
    """What was measured of a variant, paired with the baseline by process and round.

    Args:
        name: the variant's.
        values: the objective, by process, then by round; empty if any measurement failed, and if it was
            left out. Of who was settled early there are the first processes.
        samples: every sample of the objective, in the order measured.
        failures: what failed, if anything did.
        lost: how the processes were lost that measured it, where it was given up for that.
        ratio: objective / baseline's objective; None where there are no values.
        verdict: against the baseline.
        processor: as `values`, made of processor time; empty where that does not tell how long it takes.
        evidence: what both clocks say of the ratio; None where there is no ratio.
    """

    name: str
    values: tuple[tuple[float, ...], ...]
    samples: tuple[float, ...]
    failures: tuple[Failed, ...]
    ratio: Ratio | None
    verdict: Verdict
    processor: tuple[tuple[float, ...], ...] = ()
    evidence: Evidence | None = None
    lost: Lost | None = None

    @property
    def why(self) -> str:
        """Why there are no values, in one line; empty where there are some."""
        if self.failures:
            return f"{self.failures[0].stage}: {self.failures[0].reason}"
        if self.lost:
            return self.lost.detail.partition("\n")[0]
        return "" if self.values else NO_TIME

    @property
    def median(self) -> float:
        """The median of the values; not a number if there are none."""
        return statistics.median([v for row in self.values for v in row]) if self.values else math.nan


def baseline_failed(failure: Failed) -> PlanishError:
    """Return the error of a comparison whose baseline failed."""
    return PlanishError(f"the baseline failed: {failure.stage}: {failure.reason}: {failure.detail}")


def tally(name: str, outcomes: Sequence[Sequence[Outcome]], objective: Objective) -> PairedSamples:
    """Collect what was measured of a variant by an objective; it is not judged yet.

    Args:
        name: the variant's.
        outcomes: by process, then by round, each with a value of the objective where it is measured; empty
            where there was no time.
        objective: which.
    """
    flat = [outcome for rounds in outcomes for outcome in rounds]
    measured = [outcome for outcome in flat if isinstance(outcome, Measured)]
    samples = tuple(s for o in measured for s in o.samples.get(objective.name, ()))
    failures = tuple(o for o in flat if isinstance(o, Failed))
    lost = next((o for o in flat if isinstance(o, Lost)), None)
    # One failure is enough: a program that is right only sometimes has no time to be proud of.
    if failures or lost or not flat:
        return PairedSamples(
            name, (), samples, failures, None, "failed" if failures else "undecided", lost=lost
        )
    # By both or by one: rounds must be comparable among themselves.
    known = all(o.samples.get(by_processor_time(objective.name)) for o in measured)
    values = tuple(tuple(_value(o, objective, both=known) for o in row) for row in outcomes)
    processor = tuple(tuple(_by_processor(o, objective) for o in row) for row in outcomes) if known else ()
    return PairedSamples(name, values, samples, (), None, "same", processor)


def _value(outcome: Outcome, objective: Objective, *, both: bool) -> float:
    """Give the value; by the clock, where there are samples by both."""
    assert isinstance(outcome, Measured)
    if both:
        return statistics.median(outcome.samples[objective.name])
    return outcome.values[objective.name]


def _by_processor(outcome: Outcome, objective: Objective) -> float:
    assert isinstance(outcome, Measured)
    return statistics.median(outcome.samples[by_processor_time(objective.name)])


def judged(
    sampled: PairedSamples, base: PairedSamples, objective: Objective, variants: int = 1
) -> PairedSamples:
    """Judge samples beside others, which were measured in the same processes and rounds.

    Args:
        sampled: unchanged where it has no values.
        base: whom it is compared with.
        objective: by which both were measured.
        variants: how many are compared with it.
    """
    if not sampled.values or not base.values:
        return sampled
    processor = (
        ratio(sampled.processor, base.processor, variants) if sampled.processor and base.processor else None
    )
    evidence = Evidence(ratio(sampled.values, base.values, variants), processor)
    verdict = evidence.ratio.verdict(objective)
    return replace(sampled, ratio=evidence.ratio, verdict=verdict, evidence=evidence)
