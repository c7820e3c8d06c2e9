"""Paired measurement of candidates in one process: interleaved rounds, compared round by round."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping, Sequence

from planish.core import (
    NOTICED,
    Candidate,
    Executor,
    Failed,
    Lost,
    Measured,
    Objective,
    Outcome,
    evaluate_in_order,
    rng,
)
from planish.core.trial import checked_for
from planish.measure.intervals import noise

LEAST_NOISE = NOTICED
_AGAIN = 7


class OutOfTimeError(Exception):
    """The time for a measurement is over."""


class PairedMeasurement:
    """Interleaved measurement of candidates, in one process.

    Args:
        executor: evaluates a batch in its order, as at the end of a run.
        seed: of the orders.
        objectives: whose values each evaluation must have.

    Attributes:
        end: when no more is measured, by the monotonic clock; `OutOfTimeError` is raised then.
    """

    def __init__(self, executor: Executor, seed: int = 0, objectives: Sequence[Objective] = ()) -> None:
        self.end = math.inf
        self._objectives = objectives
        self._executor, self._seed, self._batches = executor, seed, 0

    def measure(self, candidates: Sequence[Candidate], rounds: int = 1) -> list[list[Outcome]]:
        """Measure candidates, in each round each once, in a shuffled order; one that fails is not repeated.

        Returns:
            The outcomes of each by round; of fewer rounds where the time ends, but of one at least.

        Raises:
            OutOfTimeError: there is no time left, not even for one round.
        """
        self._batches += 1
        found: list[list[Outcome]] = [[] for _ in candidates]
        for number in range(rounds):
            # Another order in each batch and round, so that no variant always follows the same one.
            order = rng(self._seed, self._batches, number).permutation(len(candidates)).tolist()
            failed = {i: row[-1] for i, row in enumerate(found) if row and isinstance(row[-1], Failed)}
            left = [index for index in order if index not in failed]
            try:
                outcomes = self._outcomes([candidates[index] for index in left])
            except OutOfTimeError:
                if number == 0:
                    raise
                break
            for index, outcome in [*failed.items(), *zip(left, outcomes, strict=True)]:
                found[index].append(outcome)
        return found

    def _outcomes(self, batch: Sequence[Candidate]) -> list[Outcome]:
        found = evaluate_in_order(self._executor, batch, self.end) if time.monotonic() < self.end else []
        outcomes = [checked_for(each.outcome, self._objectives) for each in found if each]
        if len(outcomes) < len(batch):
            raise OutOfTimeError
        return outcomes

    def noise(
        self, baseline: Candidate, others: Sequence[Candidate], objectives: Sequence[Objective]
    ) -> Mapping[str, float]:
        """Measure the baseline again and again between the others; return by how much it differs from itself.

        Returns:
            Objective name to a share; 0 for exact ones, else 1 % at least.

        Raises:
            OutOfTimeError: there is no time left.
        """
        floors = {objective.name: 0.0 if objective.exact else LEAST_NOISE for objective in objectives}
        if all(objective.exact for objective in objectives):
            return floors
        found: list[Outcome] = []
        for number in range(_AGAIN):
            between = others[number % len(others)] if others else baseline
            found.append(self.measure([baseline])[0][0])
            # With others between, as candidates are measured.
            self.measure([between])
        for objective in objectives:
            known = [one.values for one in found if isinstance(one, Measured)]
            values = [each[objective.name] for each in known if objective.name in each]
            if not objective.exact and len(values) > 2:
                floors[objective.name] = max(LEAST_NOISE, noise(values, self._seed))
        return floors


def times_worse(objective: Objective, found: Sequence[Outcome], others: Sequence[Outcome]) -> float:
    """Return the median of the ratios of two quantities, round by round.

    A round in which the worker of either was lost shows nothing.

    Args:
        objective: by which; its values are not negative.
        found: of the one, by round.
        others: of the other.

    Returns:
        1 for equals; infinite where the one fails, or alone is not 0 (or alone is, where more is better), and
        where nothing is known.
    """
    pairs = known_rounds(found, others)
    return statistics.median(_times(objective, *pair) for pair in pairs) if pairs else math.inf


def known_rounds(
    found: Sequence[Outcome], others: Sequence[Outcome]
) -> list[tuple[Measured | Failed, Measured | Failed]]:
    """Return the outcomes of two by round, without the rounds in which a worker was lost."""
    pairs = zip(found, others, strict=True)
    return [(one, other) for one, other in pairs if not isinstance(one, Lost) and not isinstance(other, Lost)]


def _times(objective: Objective, found: Measured | Failed, other: Measured | Failed) -> float:
    if isinstance(found, Failed) or isinstance(other, Failed):
        return math.inf
    one, base = found.values[objective.name], other.values[objective.name]
    # Where more is better, worse is less: the ratio turned round.
    if objective.direction == "up":
        one, base = base, one
    if one == base:
        return 1.0
    return one / base if base else math.inf
