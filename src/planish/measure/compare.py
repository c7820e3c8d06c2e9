"""The comparison at the end: the best few and the baseline are measured again, side by side.

The best of many noisy measurements looks better than it is (the winner's curse), and what was measured
at different times is not comparable. So everything is measured anew: several fresh worker processes
one after the other, in each several rounds, in each round everybody once, in an order that a seed
shuffles. One process for each round would be purer, and costs its start (0.2 s) each time; one process
for all would take its luck for a property of the candidate.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

from planish.core import (
    Candidate,
    EvaluatorFactory,
    Executor,
    Failed,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    rng,
)
from planish.measure.interval import Ratio, Verdict, ratio
from planish.measure.local import LocalExecutor
from planish.measure.panel import Panel, Turn


@dataclass(frozen=True)
class Entrant:
    """Somebody in the comparison.

    Args:
        name: for people.
        candidate: what is measured.
        factory: makes its evaluator; entrants may share one.
    """

    name: str
    candidate: Candidate
    factory: EvaluatorFactory


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Args:
        processes: fresh worker processes; with fewer than 5 the interval is too narrow, unless the
            objective has no noise.
        rounds: how often each process measures everybody; 3 in all are the least.
        seed: of the orders and the bootstrap.
    """

    processes: int = 5
    rounds: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Standing:
    """How an entrant did.

    Args:
        name: the entrant's.
        values: the objective, by process, then by round; empty if any measurement failed.
        samples: every sample of the objective, in the order measured.
        failures: what failed, if anything did.
        ratio: objective / baseline's objective; None if any measurement failed.
        verdict: against the baseline; "faster" means better, whatever the objective is.
    """

    name: str
    values: tuple[tuple[float, ...], ...]
    samples: tuple[float, ...]
    failures: tuple[Failed, ...]
    ratio: Ratio | None
    verdict: Verdict | Literal["failed"]

    @property
    def median(self) -> float:
        """The median of the values; not a number if there are none."""
        return statistics.median([v for row in self.values for v in row]) if self.values else math.nan


def remeasure(
    baseline: Entrant,
    entrants: Sequence[Entrant],
    objective: Objective,
    plan: Plan | None = None,
    start: Callable[[EvaluatorFactory], Executor] = LocalExecutor,
) -> list[Standing]:
    """Measure as `remeasure_all` does, by one objective; gives one standing for each."""
    found = remeasure_all(baseline, entrants, [objective], plan, start)
    return [standings[objective.name] for standings in found]


def remeasure_all(
    baseline: Entrant,
    entrants: Sequence[Entrant],
    objectives: Sequence[Objective],
    plan: Plan | None = None,
    start: Callable[[EvaluatorFactory], Executor] = LocalExecutor,
) -> list[Mapping[str, Standing]]:
    """Measure entrants and baseline again, interleaved, and judge by what is beyond the noise.

    Args:
        baseline: what the others are compared with.
        entrants: the best few.
        objectives: what is compared, at least one; their values must not be negative. Each evaluation
            gives the values of all.
        plan: how much is measured; where all objectives are exact everybody is measured once, in one fresh
            process, all the same.
        start: starts an executor with fresh processes; it must evaluate a batch in its order, so give
            it one worker.

    Returns:
        The baseline's standings by the objectives' names, then the entrants' in their order.

    Raises:
        PlanishError: the baseline fails, an objective is not measured or is negative, or there are
            fewer than 3 rounds in all.
    """
    plan = _checked(plan or Plan(), objectives)
    everybody = [baseline, *entrants]
    table = [_process(everybody, plan, process, start) for process in range(plan.processes)]
    outcomes = [[rounds[place] for rounds in table] for place in range(len(everybody))]
    judged = [_judge(everybody, outcomes, objective, plan.seed) for objective in objectives]
    return [
        {objective.name: standings[place] for objective, standings in zip(objectives, judged, strict=True)}
        for place in range(len(everybody))
    ]


def _checked(plan: Plan, objectives: Sequence[Objective]) -> Plan:
    if all(objective.exact for objective in objectives):
        return replace(plan, processes=1, rounds=1)
    if plan.processes < 1 or plan.rounds < 1 or plan.processes * plan.rounds < 3:
        raise PlanishError(
            f"{plan.processes} processes of {plan.rounds} rounds show no noise", "Ask for 3 rounds in all."
        )
    return plan


def _judge(
    everybody: Sequence[Entrant],
    outcomes: Sequence[Sequence[Sequence[Outcome]]],
    objective: Objective,
    seed: int,
) -> list[Standing]:
    """Judge everybody by one objective; the first is the baseline."""
    base, *others = (_tally(e.name, o, objective) for e, o in zip(everybody, outcomes, strict=True))
    if base.failures:
        failure = base.failures[0]
        raise PlanishError(f"the baseline failed: {failure.stage}: {failure.reason}: {failure.detail}")
    return [_judged(standing, base, objective, seed) for standing in (base, *others)]


def _process(
    everybody: Sequence[Entrant],
    plan: Plan,
    process: int,
    start: Callable[[EvaluatorFactory], Executor],
) -> list[list[Outcome]]:
    """Run all rounds in one fresh process; gives the outcomes by entrant, then by round."""
    places = [
        int(place)
        for number in range(plan.rounds)
        for place in rng(plan.seed, process, number).permutation(len(everybody))
    ]
    batch = [Candidate((Turn(place), *everybody[place].candidate.steps)) for place in places]
    outcomes: list[list[Outcome]] = [[] for _ in everybody]
    with closing(start(Panel(tuple(e.factory for e in everybody)))) as executor:
        answers = sorted(executor.submit(batch), key=lambda answer: answer.position)
    for place, answer in zip(places, answers, strict=True):
        outcomes[place].append(answer.outcome)
    return outcomes


def _tally(name: str, outcomes: Sequence[Sequence[Outcome]], objective: Objective) -> Standing:
    flat = [outcome for rounds in outcomes for outcome in rounds]
    samples = [s for o in flat if isinstance(o, Measured) for s in o.samples.get(objective.name, ())]
    failures = tuple(o for o in flat if isinstance(o, Failed))
    values = () if failures else tuple(tuple(_value(o, objective, name) for o in row) for row in outcomes)
    return Standing(name, values, tuple(samples), failures, None, "failed")


def _value(outcome: Outcome, objective: Objective, name: str) -> float:
    assert isinstance(outcome, Measured)
    value = outcome.values.get(objective.name)
    if value is None:
        raise PlanishError(
            f"'{name}' does not measure {objective.name}", f"It measures {sorted(outcome.values)}."
        )
    if value < 0:
        raise PlanishError(
            f"{objective.name} of '{name}' is {value}", "A ratio needs values that are not negative."
        )
    return value


def _judged(standing: Standing, base: Standing, objective: Objective, seed: int) -> Standing:
    if standing.failures:
        return standing
    over = ratio(standing.values, base.values, seed)
    return replace(standing, ratio=over, verdict=over.verdict(objective))
