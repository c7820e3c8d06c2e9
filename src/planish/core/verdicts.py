"""Verdicts: ratios to the baseline, and what else is known at the end of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from planish.core.protocols import EvaluatorSpec, ExecutorFactory
from planish.core.step import Candidate
from planish.core.task import Objective
from planish.core.trial import Outcome

Verdict = Literal["better", "same", "worse", "undecided", "failed"]
"""Compared with the baseline, by one objective.

"same": the interval contains 1 and is narrow. "undecided": the interval contains 1 and is too wide to decide,
or nothing was measured because time ran out or workers were lost. "failed": it crashes, or its answer is
wrong, also by the cross-check.
"""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

NOTICED = 0.01
"""A smaller difference is not noticed."""
SAME = 0.03
"""An interval around 1 that stays within this share of 1 shows that there is no difference."""


@dataclass(frozen=True)
class Ratio:
    """A ratio with its confidence interval (95 %, however often it is looked at).

    Args:
        value: the estimate.
        low: the lower end of the interval.
        high: the upper end.
    """

    value: float
    low: float
    high: float

    def verdict(self, objective: Objective) -> Verdict:
        """Judge objective / baseline's objective."""
        if self.low <= 1.0 <= self.high:
            return "same" if self.is_within(SAME) else "undecided"
        return "better" if (self.high < 1.0) == (objective.direction == "down") else "worse"

    def gain(self, objective: Objective) -> Ratio:
        """Turn objective / baseline's objective into how many times better it is than the baseline."""
        if objective.direction == "up":
            return self
        value, high, low = (1 / each if each else math.inf for each in (self.value, self.low, self.high))
        return Ratio(value, low, high)

    def is_within(self, share: float) -> bool:
        """Return whether no end of the interval differs from 1 by more than a share."""
        return self.low >= 1 / (1 + share) and self.high <= 1 + share

    @property
    def width(self) -> float:
        """The interval's, as the logarithm of high / low; 0 where there is no noise."""
        return math.log(self.high / self.low) if self.low > 0 and self.high < math.inf else 0.0

    @property
    def conclusive(self) -> bool:
        """Return whether more measurements would not change the verdict.

        It would where the interval straddles 1, unless it lies within what is not noticeable, and where it is
        wider than the difference that it shows.
        """
        if self.low <= 1.0 <= self.high:
            return self.width == 0 or self.is_within(NOTICED)
        return self.width <= abs(math.log(self.value)) if self.width else True


EQUAL = Ratio(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class CrossCheck:
    """Comparison of a candidate's answer with that of a second implementation.

    Args:
        agrees: None where it was not asked, or has no answer.
        difference: how far apart the answers are, as a share; None where that is not known.
        why: one line, where it does not agree.
    """

    agrees: bool | None = None
    difference: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Attribution:
    """Attribution of some of a candidate's steps by themselves (GEVO-ML, section 6.1).

    Args:
        steps: their indices in the candidate, from 0; one, two or three.
        values: objective name to value / baseline's value where measuring it has noise; where it is exact,
            to value - baseline's value. Empty where these steps are not legal alone, or fail.
        additive: of two or three steps, objective name to whether the effect of all is, within the noise,
            what the effects of each make together: the product of ratios, or the sum of differences.
        why: one line, where there are no values.
    """

    steps: tuple[int, ...]
    values: Mapping[str, float] = field(default_factory=dict[str, float])
    additive: Mapping[str, bool] = field(default_factory=dict[str, bool])
    why: str = ""


@dataclass(frozen=True)
class SecondaryBaseline:
    """Something else to compare with at the end, besides the baseline.

    Args:
        name: for people: a file's name.
        candidate: what is measured.
        spec: makes its evaluator; None where the task's own does.
    """

    name: str
    candidate: Candidate
    spec: EvaluatorSpec | None = None


@dataclass(frozen=True)
class FinalChecks:
    """Checks of finalists at the end, besides measuring them again; None where there is none.

    Scores and cross-checks are of candidates, in their order, and are evaluated by executors that the second
    argument starts. What cannot be done raises PlanishError, which is a note beside the result.

    Args:
        secondary_baseline: returns what is measured beside the baseline, and reported; verdicts do not depend
            on it.
        heldout_scores: scores candidates on examples that no search sees. A score named after an objective
            and `HELDOUT` is that objective on examples that may decide which is the best of a front;
            whatever else is scored is only reported. One that is `Lost`, as for want of time, counts against
            none.
        cross_check: runs candidates in another way, and compares the answers.
    """

    secondary_baseline: Callable[[], SecondaryBaseline] | None = None
    heldout_scores: Callable[[Sequence[Candidate], ExecutorFactory], Sequence[Outcome]] | None = None
    cross_check: Callable[[Sequence[Candidate], ExecutorFactory], Sequence[CrossCheck]] | None = None


_WITHIN = "_within"

HELDOUT = "validation"
"""The part of the examples that a search does not see, and that may decide between what it found."""


def within(score: str) -> str:
    """Return the name of the score that is the uncertainty of another one.

    It is half the width of the 95 % interval of its difference to the baseline's.
    """
    return f"{score}{_WITHIN}"


def is_within(score: str) -> bool:
    """Return whether a score is the uncertainty of another one."""
    return score.endswith(_WITHIN)


def heldout_within(objective: str, scores: Mapping[str, float]) -> float:
    """Return the difference to the baseline's held-out value that noise explains; 0 where it is unknown."""
    return scores.get(within(f"{objective}_{HELDOUT}"), 0.0)


def heldout_value(objective: str, scores: Mapping[str, float]) -> float | None:
    """Return an objective's value on the held-out examples; None without one."""
    return scores.get(f"{objective}_{HELDOUT}")
