"""Comparison of candidates by paired measurements: all are measured again, interleaved.

The best of many noisy measurements looks better than it is (the winner's curse), and measurements made at
different times are not comparable. So everything is measured anew: in several fresh worker processes one
after the other, each with several rounds, each round with every variant once, in an order that a seed
shuffles. One process for each round would be purer, and costs its start (0.2 s) each time; one process for
all would take what is particular to it for a property of the candidate. Where an interval straddles 1, or is
wider than the gain, more processes follow while there is time.

Where the time is short, each process has a share of it. There are as many rounds as fit into every share, and
at least one; variants that could not be measured in the first share are dropped. So there are always as many
processes as planned: with fewer, the interval would be too narrow.

`PairedMeasurement` does with less: one process, whose rounds are compared one by one, for decisions between
candidates that differ by a step.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from planish.core import (
    NOTICED,
    Candidate,
    Executor,
    ExecutorFactory,
    Failed,
    Lost,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    evaluate_in_order,
    rng,
)
from planish.core.trial import checked_for
from planish.measure.comparison_rounds import (
    CutShortError,
    LossCounter,
    Plan,
    ProcessPlan,
    Round,
    Variant,
    measured,
)
from planish.measure.intervals import PairedSamples, baseline_failed, judged, noise, tally


def measure_interleaved(
    sides: Sequence[Variant], plan: Plan, start: ExecutorFactory, least: int = 2
) -> list[list[Round]]:
    """Measure the baseline and variants, interleaved; each process has a share of the time that is left.

    The first has two shares, since evaluators may keep for the others what takes long to make; but it leaves
    them the time for a round each. There are as many rounds as fit in the share of every process, and one at
    least; and as many processes as fit then, `least` at least. In the very first round variants are measured
    in their order, and a variant that does not fit in the share, or in the later processes, is dropped from
    all; in the other rounds a seed shuffles them.

    A process that is lost is replaced, and its rounds are done again; that takes longer by as much. A variant
    over which three processes are lost in a row is given up: nothing is known of it.

    Args:
        sides: the baseline, then the variants, the most promising first.
        plan: how much is measured.
        start: starts an executor with fresh processes. It may end a batch early.
        least: processes that are started even where the time is over.

    Returns:
        Outcomes by variant, then by process, then by round; none of variants that were dropped.

    Raises:
        CutShortError: the executor ended a batch of one of the least processes early.
        LostError: the baseline is given up, or no variant can be measured because of losses.
    """
    over, kept, rounds = time.monotonic() + plan.seconds, list(sides), plan.rounds
    least = min(least, plan.processes)
    table: list[list[Round]] = []
    losses, each_s = LossCounter(), 0.0
    for process in range(plan.processes):
        # Of the time that is left and not of all: what one process did not use is the others'.
        share = 1 / (plan.processes - process) if process else 2 / (plan.processes + 1)
        now = time.monotonic()
        if process >= least and now + each_s > over:
            break
        work = ProcessPlan(kept, plan, process, rounds, (now + share * (over - now), over))
        try:
            done = measured(work, start, losses)
        except CutShortError:
            if process < least:
                raise
            break
        table.append(done.rounds)
        # Losses are not a variant's fault, so they do not shorten what is measured.
        over, each_s = over + done.lost_s, done.least_s
        # No more rounds than the one before had: ratios are paired by round, so all processes need the same
        # number.
        kept, rounds = kept[: len(table[0][0])], len(done.rounds)
    return [[[each[index] for each in found[:rounds]] for found in table] for index in range(len(kept))]


Table = list[list[Round]]
"""Outcomes by variant, process and round. A variant that is conclusive early has only the first processes."""


def sequential_test(
    sides: Sequence[Variant], plan: Plan, start: ExecutorFactory, undecided: Callable[[Table], Sequence[int]]
) -> Table:
    """Measure all variants, then the undecided ones again in as many fresh processes (group-sequential test).

    The number of processes doubles each time, so that there are few looks at the results: each is an
    occasion to be misled by chance (see `planish.measure.intervals`). Where the time does not suffice to
    double it for all that are undecided, the most promising ones alone are measured further, so that one is
    decided rather than none.

    Args:
        sides: the baseline, then the variants, the most promising first.
        plan: how much is measured.
        start: starts an executor with fresh processes.
        undecided: returns the indices of variants that need more measurements; never the baseline's, 0.

    Returns:
        The outcomes; none of variants for which there was no time.
    """
    began = time.monotonic()
    table: Table = [*measure_interleaved(sides, plan, start)]
    table += [[] for _ in sides[len(table) :]]
    while True:
        done = len(table[0])
        # What is conclusive stays so: to look again would be one more occasion to be misled.
        open_ = [index for index in undecided(table) if len(table[index]) == done]
        spent = time.monotonic() - began
        left, side_s = plan.seconds - spent, spent / sum(map(len, table))
        # As many again as there were: doubling keeps the looks few (see `planish.measure.intervals`).
        wanted = min(done, plan.most - done)
        while len(open_) > 1 and _fitting(left, side_s * (1 + len(open_))) < wanted:
            open_.pop()
        more = min(wanted, _fitting(left, side_s * (1 + len(open_))))
        if not open_ or more <= 0:
            return table
        # Processes are counted from 0 again: another seed gives them other orders.
        further = replace(plan, processes=more, seed=plan.seed + done, seconds=left)
        # The baseline each time: ratios are of the same processes and rounds.
        again = [0, *open_]
        found = measure_interleaved([sides[p] for p in again], further, start, least=0)
        if not any(found):
            return table
        for index, rows in zip(again, found, strict=False):
            table[index] += rows


def _fitting(seconds: float, each: float) -> int:
    """Return the number of processes that fit into the remaining time."""
    return 1 << 30 if math.isinf(seconds) or each == 0 else math.floor(seconds / each)


def remeasure(
    baseline: Variant,
    variants: Sequence[Variant],
    objective: Objective,
    start: ExecutorFactory,
    plan: Plan | None = None,
) -> list[PairedSamples]:
    """Measure as `remeasure_all` does, by one objective; return the samples of each."""
    found = remeasure_all(baseline, variants, [objective], start, plan)
    return [paired[objective.name] for paired in found]


def remeasure_all(
    baseline: Variant,
    variants: Sequence[Variant],
    objectives: Sequence[Objective],
    start: ExecutorFactory,
    plan: Plan | None = None,
    on_look: Callable[[Sequence[Mapping[str, PairedSamples]]], None] = lambda _: None,
) -> list[Mapping[str, PairedSamples]]:
    """Measure variants and baseline again, interleaved, and judge by what is beyond the noise.

    Args:
        baseline: what the others are compared with.
        variants: the best few, the most promising first: where the time is short the last are dropped.
        objectives: what is compared, at least one; their values must not be negative. Each evaluation
            returns the values of all.
        start: starts executors with fresh processes, of one worker each, so that it evaluates a batch in its
            order.
        plan: how much is measured; where all objectives are exact each variant is measured once, in one fresh
            process, all the same.
        on_look: is called at each look of `sequential_test` with what is known by then, as it is returned.

    Returns:
        The baseline's samples by the objectives' names, then the variants' in their order.

    Raises:
        PlanishError: the baseline fails, also where one of its values is missing or cannot be, or there are
            fewer than 3 rounds in all.
    """
    plan = _checked(plan or Plan(), objectives)
    sides = [baseline, *variants]
    # Exact ones are conclusive at the first look.
    noisy = [objective for objective in objectives if not objective.exact]

    def judged_by_objective(table: Table) -> list[Mapping[str, PairedSamples]]:
        outcomes = _sensible(table, objectives)
        found = [_judge(sides, outcomes, objective) for objective in objectives]
        return [
            {objective.name: paired[index] for objective, paired in zip(objectives, found, strict=True)}
            for index in range(len(sides))
        ]

    def undecided(table: Table) -> list[int]:
        found = judged_by_objective(table)
        on_look(found)
        return [i for i in range(1, len(sides)) if any(not _is_conclusive(found[i][o.name]) for o in noisy)]

    return judged_by_objective(sequential_test(sides, plan, start, undecided))


def _sensible(table: Table, objectives: Sequence[Objective]) -> Table:
    """Return the outcomes, in which one that lacks a value, or has one that cannot be, is a failure."""
    return [[[checked_for(one, objectives) for one in row] for row in rows] for rows in table]


def _is_conclusive(sampled: PairedSamples) -> bool:
    return sampled.ratio is None or sampled.ratio.conclusive


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
    sides: Sequence[Variant],
    outcomes: Sequence[Sequence[Sequence[Outcome]]],
    objective: Objective,
) -> list[PairedSamples]:
    """Judge all variants by one objective; the first is the baseline."""
    base, *others = (tally(e.name, o, objective) for e, o in zip(sides, outcomes, strict=True))
    if base.failures:
        raise baseline_failed(base.failures[0])
    variants = max(1, sum(bool(each.values) for each in others))
    return [judged(sampled, base, objective, variants) for sampled in (base, *others)]


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
