"""What is known at the end of a run, so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from planish.core import Candidate, Objective, Trial
from planish.results.comparison import Compared, Comparison, Finalist
from planish.tuning.final.paired import LEAST_NOISE


@dataclass(frozen=True)
class FinalState:
    """The finalists and whom they are compared with; each stage of the end makes a new state of the last.

    Args:
        finalists: those who are left; nothing is measured of them before the comparison.
        baseline: how it did; None before the comparison.
        reference: how another baseline did; None where there is none.
        noise: objective name to the share by which equals differ; empty where it was not measured.
        notes: what is to be said to the user.
        figures: what was measured for those who read of a finalist, or of the baseline.
        best: the best trial of the search that is worse than the baseline in nothing, where there are several
            objectives; None where nobody looked for it.
        unmeasured: the finalists who failed when they were measured again, or were left out.
    """

    finalists: tuple[Finalist, ...] = ()
    baseline: Compared | None = None
    reference: Compared | None = None
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()
    figures: Mapping[Candidate, Mapping[str, Any]] = field(default_factory=dict[Candidate, Mapping[str, Any]])
    best: Trial | None = None
    unmeasured: tuple[Finalist, ...] = ()

    def noted(self, *notes: str) -> FinalState:
        """Add what is to be said; empty lines are nothing."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))

    def noise_of(self, objective: Objective) -> float:
        """Give the share by which equals differ: 0 if it is exact, else as measured, or the least."""
        return 0.0 if objective.exact else self.noise.get(objective.name, LEAST_NOISE)

    def comparison(self, baseline: Candidate) -> Comparison | None:
        """Give the comparison as it is by now; None before there is any.

        The baseline comes first where nobody is better: nothing is then to be changed.
        """
        if self.baseline is None:
            return None
        found = self.finalists
        if not (found and found[0].improves):
            others = (each for each in found if each.candidate != baseline)
            found = (_unchanged(self.baseline, baseline), *others)
        named = tuple(
            replace(each, name=f"#{rank}", figures=self.figures.get(each.candidate, {}))
            for rank, each in enumerate((*found, *self.unmeasured), 1)
        )
        last = len(found)
        return Comparison(named[:last], self.baseline, self.reference, self.noise, self.notes, named[last:])


def _unchanged(baseline: Compared, candidate: Candidate) -> Finalist:
    """Make a finalist of the baseline."""
    return Finalist(
        candidate=candidate,
        measured=baseline.measured,
        scores=baseline.scores,
        opinion=baseline.opinion,
        searched=len(candidate.steps),
        trial={name: each.median for name, each in baseline.measured.items()},
    )
