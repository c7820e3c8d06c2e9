"""The comparison at the end: the best few and the baseline are measured again, side by side.

The best of many noisy measurements looks better than it is (the winner's curse), and what was measured
at different times is not comparable. So everything is measured anew: several fresh worker processes
one after the other, in each several rounds, in each round everybody once, in an order that a seed
shuffles. One process for each round would be purer, and costs its start (0.2 s) each time; one process
for all would take its luck for a property of the candidate.

Where an interval straddles 1, or is wider than the gain, more processes follow, while there is time.

Where the time for it is short, each process has a share of it. There are as many rounds as fit in
every share, and one at least; who could not be measured in the first share is left out. So there are always
as many processes as planned: with fewer the interval would be too narrow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planish.core import Objective, Outcome, PlanishError, Start
from planish.core.checked_outcome import checked_for
from planish.measure.looks import Table, until_settled
from planish.measure.measuring_plan import Plan, Variant
from planish.measure.paired_samples import PairedSamples, baseline_failed, judged, tally


def remeasure(
    baseline: Variant,
    variants: Sequence[Variant],
    objective: Objective,
    start: Start,
    plan: Plan | None = None,
) -> list[PairedSamples]:
    """Measure as `remeasure_all` does, by one objective; gives the samples of each."""
    found = remeasure_all(baseline, variants, [objective], start, plan)
    return [paired[objective.name] for paired in found]


def remeasure_all(
    baseline: Variant,
    variants: Sequence[Variant],
    objectives: Sequence[Objective],
    start: Start,
    plan: Plan | None = None,
) -> list[Mapping[str, PairedSamples]]:
    """Measure variants and baseline again, interleaved, and judge by what is beyond the noise.

    Args:
        baseline: what the others are compared with.
        variants: the best few, the most telling first: where the time is short the last are left out.
        objectives: what is compared, at least one; their values must not be negative. Each evaluation
            gives the values of all.
        start: starts executors with fresh processes, of one worker each, so that it evaluates a batch in its
            order.
        plan: how much is measured; where all objectives are exact everybody is measured once, in one fresh
            process, all the same.

    Returns:
        The baseline's samples by the objectives' names, then the variants' in their order.

    Raises:
        PlanishError: the baseline fails, also where one of its values is missing or cannot be, or there are
            fewer than 3 rounds in all.
    """
    plan = _checked(plan or Plan(), objectives)
    everybody = [baseline, *variants]
    # Exact ones are settled by the first look.
    noisy = [objective for objective in objectives if not objective.exact]

    def unsettled(table: Table) -> list[int]:
        judged = [_judge(everybody, _sensible(table, objectives), objective) for objective in noisy]
        return [place for place in range(1, len(everybody)) if any(not _settled(j[place]) for j in judged)]

    outcomes = _sensible(until_settled(everybody, plan, start, unsettled), objectives)
    judged = [_judge(everybody, outcomes, objective) for objective in objectives]
    return [
        {objective.name: paired[place] for objective, paired in zip(objectives, judged, strict=True)}
        for place in range(len(everybody))
    ]


def _sensible(table: Table, objectives: Sequence[Objective]) -> Table:
    """Return the outcomes, in which one that lacks a value, or has one that cannot be, is a failure."""
    return [[[checked_for(one, objectives) for one in row] for row in rows] for rows in table]


def _settled(sampled: PairedSamples) -> bool:
    return sampled.ratio is None or sampled.ratio.settled


def _checked(plan: Plan, objectives: Sequence[Objective]) -> Plan:
    if all(objective.exact for objective in objectives):
        # What is counted and not timed is the same each time.
        return replace(plan, processes=1, rounds=1)
    if plan.processes < 1 or plan.rounds < 1 or plan.processes * plan.rounds < 3:
        raise PlanishError(
            f"{plan.processes} processes of {plan.rounds} rounds show no noise", "Ask for 3 rounds in all."
        )
    return plan


def _judge(
    everybody: Sequence[Variant],
    outcomes: Sequence[Sequence[Sequence[Outcome]]],
    objective: Objective,
) -> list[PairedSamples]:
    """Judge everybody by one objective; the first is the baseline."""
    base, *others = (tally(e.name, o, objective) for e, o in zip(everybody, outcomes, strict=True))
    if base.failures:
        raise baseline_failed(base.failures[0])
    variants = max(1, sum(bool(each.values) for each in others))
    return [judged(sampled, base, objective, variants) for sampled in (base, *others)]
