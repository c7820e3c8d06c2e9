"""Rounds of a comparison, measured in fresh processes."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from planish.core import (
    Candidate,
    Evaluator,
    EvaluatorSpec,
    Executor,
    ExecutorFactory,
    Failed,
    Lost,
    LostError,
    Measured,
    Outcome,
    StageClock,
    Step,
    evaluate,
    rng,
)
from planish.measure.clock import deadline
from planish.measure.intervals import baseline_failed
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.limits import Limits

Round = list[Outcome]
"""The outcomes of the variants that were not dropped, in their order."""


@dataclass(frozen=True)
class Variant:
    """One side of a comparison: the baseline, or a candidate.

    Args:
        name: for people.
        candidate: what is measured.
        spec: makes its evaluator; variants may share one.
    """

    name: str
    candidate: Candidate
    spec: EvaluatorSpec


@dataclass(frozen=True)
class Plan:
    """Size of a comparison: its processes, rounds and time.

    Args:
        processes: fresh worker processes; where the time is short there are fewer, and the interval is
            wider. Two are the least, where two were asked for.
        rounds: how often each process measures every variant at most; 3 in all are the least.
        seed: of the orders.
        seconds: that all of it should take, by the clock. It takes longer where one round in each of two
            processes does, of the baseline and the first variant.
        most: processes in all, where the comparison goes on since it is undecided.
    """

    processes: int = 5
    rounds: int = 3
    seed: int = 0
    seconds: float = math.inf
    most: int = 20

    def seconds_for_all(self, repeats: int, dropped: float = 1.0) -> int:
        """Return a budget in seconds in which all repeats fit, where only so many fitted into `seconds`.

        The comparison has a part of its command's time, and the machine may be busier then: it is twice as
        much as these repeats took. To start a process counts as part of its rounds: it is an upper bound.

        Args:
            repeats: that fitted.
            dropped: how many times more sides a comparison has in which none is dropped for lack of time.
        """
        repeated = self.seconds * dropped * self.processes * self.rounds / max(1, repeats)
        return 5 * max(1, math.ceil(2 * repeated / 5))


@dataclass(frozen=True)
class VariantTag(Step):
    """Tag of a candidate that says which variant it belongs to: its first step, which is removed.

    Args:
        variant: index of the variant.
        later: whether the same process must have evaluated something before. An executor replaces a process
            that is killed while it is idle, and does not report it; the new one finds out by this.
    """

    variant: int
    later: bool


@dataclass(frozen=True)
class MultiEvaluatorSpec:
    """Spec of an evaluator for all variants; variants that share a spec share an evaluator.

    Args:
        specs: one for each variant.
    """

    specs: tuple[EvaluatorSpec, ...]

    @property
    def limits(self) -> Limits:
        """Return limits that suffice for every variant, with one attempt: rounds are to be whole."""
        return replace(Limits.widest(map(Limits.of, self.specs)), attempts=1)

    @property
    def sandbox(self) -> SandboxPolicy | None:
        """Return how the worker is confined: as strictly as all variants allow, with what all read."""
        return SandboxPolicy.widest(map(SandboxPolicy.of, self.specs))

    def __call__(self) -> Evaluator:
        distinct = {id(spec): spec for spec in self.specs}
        made = {key: spec() for key, spec in distinct.items()}
        return _MultiEvaluator([made[id(spec)] for spec in self.specs])


class _MultiEvaluator:
    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        self._evaluators = evaluators
        self._begun = False

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        tag, *steps = candidate.steps
        assert isinstance(tag, VariantTag)
        if tag.later and not self._begun:
            return Lost("worker", "killed", "the process was lost between two of its evaluations")
        self._begun = True
        return self._evaluators[tag.variant].evaluate(Candidate(tuple(steps)), clock)


_LEAST = 2
"""The baseline and the first variant are never dropped."""
_PATIENCE_S = 30.0
"""Processes that are lost are replaced for so long at least."""
_LOSSES = 3
"""Processes lost in a row over one variant, after which it is given up."""


@dataclass(frozen=True)
class ProcessPlan:
    """Work of one process of a comparison.

    Args:
        variants: the baseline, then the variants.
        plan: of the whole comparison.
        process: its number, from 0.
        rounds: how many there are at most.
        ends: when it should be done, and when all processes should, by the monotonic clock.
    """

    variants: Sequence[Variant]
    plan: Plan
    process: int
    rounds: int
    ends: tuple[float, float]

    def later(self, seconds: float) -> ProcessPlan:
        """Return the plan with later ends."""
        return replace(self, ends=(self.ends[0] + seconds, self.ends[1] + seconds))


@dataclass
class LossCounter:
    """Counter of lost processes by the variant's index, with the variants that are given up.

    Args:
        in_a_row: how many processes were lost since it was measured.
        given_up: the outcomes of variants that are not measured any more: too many processes were lost, or
            the variant failed once. One that hangs would keep the machine from others each time.
        excused: whether a failure came since the process began: it may have killed the process.
    """

    in_a_row: Counter[int] = field(default_factory=Counter[int])
    given_up: dict[int, Lost | Failed] = field(default_factory=dict[int, Lost | Failed])
    excused: bool = False

    def record(self, index: int, outcome: Measured | Failed) -> None:
        """Record the outcome of a variant; one that failed is given up."""
        # In a row, since the machine may kill processes at random: that says nothing of the variant.
        self.in_a_row[index] = 0
        if isinstance(outcome, Failed):
            self.given_up[index] = outcome
            self.excused = True

    def add(self, index: int, lost: Lost) -> None:
        """Count a lost process; after `_LOSSES` in a row the variant is given up.

        Where a failure may have killed the process, the next variant is not blamed.
        """
        if self.excused:
            return
        self.in_a_row[index] += 1
        if self.in_a_row[index] == _LOSSES:
            why = f"{_LOSSES} processes were lost while they measured it: {lost.detail}"
            self.given_up[index] = replace(lost, detail=why)


class CutShortError(Exception):
    """The executor ended a batch before all of it was evaluated: the time was over."""


@dataclass(frozen=True)
class RoundsDone:
    """Rounds that one process measured.

    Args:
        rounds: at least one.
        least_s: the seconds that such a process takes to start and for one round.
        lost_s: the seconds spent on processes that were lost.
    """

    rounds: list[Round]
    least_s: float
    lost_s: float = 0.0


class _ProcessLostError(Exception):
    """The process was lost while it measured a variant.

    Args:
        index: of the variant.
        lost: the outcome.
    """

    def __init__(self, index: int, lost: Lost) -> None:
        super().__init__(index, lost)
        self.index, self.lost = index, lost


def measured(work: ProcessPlan, start: ExecutorFactory, losses: LossCounter) -> RoundsDone:
    """Measure in one fresh process, until its end and the end of all by the clock, but one round at least.

    Args:
        work: what is measured.
        start: starts an executor with a fresh process.
        losses: so far; they are added to.

    Raises:
        CutShortError: the executor ended the first round early.
        PlanishError: the baseline failed, and its process ended.
        LostError: the baseline is given up, or as many processes are lost as would do for all variants.
    """
    began, lost_s, cause = time.monotonic(), 0.0, ""
    for _ in range(_LOSSES * len(work.variants)):
        if lost_s > max(work.plan.seconds, _PATIENCE_S):
            break
        try:
            # The time of losses is added to the ends: else the comparison would be shorter for variants that
            # did nothing wrong.
            return replace(_process(work.later(lost_s), start, losses), lost_s=lost_s)
        except _ProcessLostError as loss:
            losses.add(loss.index, loss.lost)
            lost_s, cause = time.monotonic() - began, loss.lost.detail
        except CutShortError:
            if work.process == 0 and cause:  # what took the time is the better reason
                raise LostError(f"one process after the other was lost: {cause}") from None
            raise
        except LostError as loss:  # while it started, which says nothing of the variants
            lost_s, cause = time.monotonic() - began, loss.message
        match losses.given_up.get(0):
            case Lost(detail=detail):
                raise LostError(detail)
            case Failed() as failure:
                raise baseline_failed(failure)
            case None:
                pass
    raise LostError(f"one process after the other was lost: {cause}")


def _process(work: ProcessPlan, start: ExecutorFactory, losses: LossCounter) -> RoundsDone:
    variants, found = work.variants, list[Round]()
    took, began, later = 0.0, time.monotonic(), work.plan.processes - work.process - 1
    losses.excused = False

    def fits_later(round_s: float) -> bool:
        """Return whether a round of a number of seconds fits into each of the later processes."""
        return time.monotonic() + later * (starting + round_s) <= work.ends[1]

    def fits(round_s: float) -> bool:
        """Return whether after another round this process and the later ones are within their ends."""
        now = time.monotonic() + round_s
        return now <= work.ends[0] and now + later * (starting + round_s) <= work.ends[1]

    with start(MultiEvaluatorSpec(tuple(variant.spec for variant in variants))) as executor:
        starting = time.monotonic() - began
        while len(found) < work.rounds and (not found or fits(took)):
            began = time.monotonic()
            try:
                # In order and not shuffled: where time is short, the most promising must be kept.
                if work.process == 0 and not found:
                    outcomes, took = _first(
                        executor, variants, work.ends[0], fits_later if later else None, losses
                    )
                    variants = variants[: len(outcomes)]
                else:
                    # Shuffled anew each round: else the order would be part of what is measured.
                    shuffle = rng(work.plan.seed, work.process, len(found))
                    order = shuffle.permutation(len(variants)).tolist()
                    outcomes = _round(executor, variants, order, losses, begun=bool(found))
                    took = time.monotonic() - began
            except CutShortError:
                if not found:
                    raise
                break
            found.append(outcomes)
            if work.process == 0:
                kept = _that_fit(work, len(variants), took, len(found), starting)
                took *= kept / len(variants)
                variants, found = variants[:kept], [outcomes[:kept] for outcomes in found]
    return RoundsDone(found, starting + took)


def _that_fit(work: ProcessPlan, count: int, round_s: float, done: int, starting: float) -> int:
    """Return how many variants leave time for as many rounds as the baseline and the first can have.

    The least promising are dropped before rounds are: of a variant with few rounds nothing can be decided.

    Args:
        work: what is measured.
        count: how many are measured by now.
        round_s: how long their last round took, in seconds.
        done: how many rounds this process has done. The first round takes longer than the others, so that
            after it only the time of the second one is asked for.
        starting: how long a process takes to start, in seconds.
    """
    later = work.plan.processes - work.process - 1
    left = work.rounds - done
    if not left and not later:
        return count

    def fits(variants: int, more: int) -> bool:
        each = round_s * variants / count
        return time.monotonic() + more * each + later * (starting + (done + more) * each) <= work.ends[1]

    for more in range(min(1, left) if done == 1 else left, -1, -1):
        if fits(min(_LEAST, count), more):
            return max(n for n in range(1, count + 1) if fits(n, more))
    return min(_LEAST, count)


def _first(
    executor: Executor,
    variants: Sequence[Variant],
    end: float,
    fits: Callable[[float], bool] | None,
    losses: LossCounter,
) -> tuple[Round, float]:
    """Measure in order while there is time, now and in the later processes; all at once without a deadline.

    Fewer variants are compared rather than all in fewer processes, which would prove nothing of any.

    Args:
        executor: evaluates.
        variants: the most promising first.
        end: when it is over, by the clock.
        fits: returns whether a round of some seconds fits in all later processes; None: there are none.
        losses: so far; they are added to.

    Returns:
        The outcomes of the variants that are kept, and the seconds that these took.
    """
    began = time.monotonic()
    if math.isinf(end):
        found = _round(executor, variants, range(len(variants)), losses, begun=False)
        return found, time.monotonic() - began
    found = []
    # The seconds after each number of variants, from none on.
    took = [0.0]
    for index in range(len(variants)):
        if index >= _LEAST and time.monotonic() >= end:
            break
        try:
            found += _round(executor, variants, [index], losses, begun=bool(found))
        except CutShortError:
            if index < _LEAST:
                raise
            break
        took.append(time.monotonic() - began)
    # From the end, where the least promising are.
    while fits and len(found) > _LEAST and not fits(took[len(found)]):
        found.pop()
    return found, took[len(found)]


def _round(
    executor: Executor, variants: Sequence[Variant], order: Sequence[int], losses: LossCounter, *, begun: bool
) -> Round:
    """Measure some variants in an order, by a process that has begun or not; return outcomes by index.

    Raises:
        CutShortError: the executor ended the batch early.
        _ProcessLostError: the process was lost.
    """
    given_up = losses.given_up
    indices = [index for index in order if index not in given_up]
    # One batch for one worker: it is evaluated in this order, as rounds need.
    batch = {
        Candidate((VariantTag(index, later=begun or at > 0), *variants[index].candidate.steps)): index
        for at, index in enumerate(indices)
    }
    answers: dict[int, Outcome] = {index: given_up[index] for index in order if index in given_up}
    lost: _ProcessLostError | None = None
    for evaluation in evaluate(executor, list(batch), deadline()):
        index, outcome = batch[evaluation.candidate], evaluation.outcome
        if isinstance(outcome, Lost):
            lost = _ProcessLostError(index, outcome)
            break  # which ends the batch
        answers[index] = outcome
        losses.record(index, outcome)
    if lost:
        raise lost
    if len(answers) < len(order):
        raise CutShortError
    return [answers[index] for index in sorted(order)]
