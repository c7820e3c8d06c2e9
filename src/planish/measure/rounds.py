"""Rounds of a comparison, measured in fresh processes."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from planish.core import (
    Candidate,
    Evaluator,
    EvaluatorSpec,
    Executor,
    Failed,
    Lost,
    Measured,
    Outcome,
    StageClock,
    Start,
    Step,
    evaluate,
    rng,
)
from planish.measure.clock import deadline
from planish.measure.intervals import baseline_failed
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.limits import Limits, LostError

Round = list[Outcome]
"""The outcomes of the variants that were not left out, in their order."""


@dataclass(frozen=True)
class Variant:
    """One of those that are compared: the baseline, or a candidate beside it.

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
    """How much is measured.

    Args:
        processes: fresh worker processes; where the time is short there are fewer, and the interval is
            wider. Two are the least, where two were asked for.
        rounds: how often each process measures every variant at most; 3 in all are the least.
        seed: of the orders.
        seconds: that all of it should take, by the clock. It takes longer where one round in each of two
            processes does, of the baseline and the first variant.
        most: processes in all, where the comparison goes on since too little is known.
    """

    processes: int = 5
    rounds: int = 3
    seed: int = 0
    seconds: float = math.inf
    most: int = 20

    def seconds_for_all(self, repeats: int) -> int:
        """Return a budget in seconds in which all repeats fit, where only so many fitted into `seconds`.

        The comparison has a part of its command's time, and the machine may be busier then: it is twice as
        much as these repeats took.
        """
        return 5 * max(1, math.ceil(2 * self.seconds * self.processes * self.rounds / max(1, repeats) / 5))


@dataclass(frozen=True)
class Turn(Step):
    """Whose turn it is; the first step of a candidate on its way to the panel.

    Args:
        variant: whose.
        later: whether the same process must have had a turn before. A process that is killed while it has
            nothing to do is replaced without a word; the new one tells by this that it is not the same.
    """

    variant: int
    later: bool


@dataclass(frozen=True)
class Panel:
    """Makes the evaluators of all variants; variants that share a spec share an evaluator.

    Args:
        specs: one for each variant.
    """

    specs: tuple[EvaluatorSpec, ...]

    @property
    def limits(self) -> Limits:
        """What suffices for every variant; none is evaluated again alone, since rounds are to be whole."""
        return replace(Limits.widest(map(Limits.of, self.specs)), attempts=1)

    @property
    def sandbox(self) -> SandboxPolicy | None:
        """Return how the worker is confined: as for whoever runs programs, with what all of them may read."""
        return SandboxPolicy.widest(map(SandboxPolicy.of, self.specs))

    def __call__(self) -> Evaluator:
        distinct = {id(spec): spec for spec in self.specs}
        made = {key: spec() for key, spec in distinct.items()}
        return _Switch([made[id(spec)] for spec in self.specs])


class _Switch:
    def __init__(self, evaluators: Sequence[Evaluator]) -> None:
        self._evaluators = evaluators
        self._begun = False

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        turn, *steps = candidate.steps
        assert isinstance(turn, Turn)
        if turn.later and not self._begun:
            return Lost("worker", "killed", "the process was lost between two of its turns")
        self._begun = True
        return self._evaluators[turn.variant].evaluate(Candidate(tuple(steps)), clock)


_LEAST = 2
"""The baseline and the first variant are never left out."""
_PATIENCE_S = 30.0
"""Processes that are lost are replaced for so long at least."""
_LOSSES = 3
"""Who is lost so often, in place of one process, is given up."""


@dataclass(frozen=True)
class Turns:
    """What one process has to do.

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

    def later(self, seconds: float) -> Turns:
        """Return the same with later ends."""
        return replace(self, ends=(self.ends[0] + seconds, self.ends[1] + seconds))


@dataclass
class Losses:
    """Variants that are not measured any more, and processes that were lost, by the variant's index.

    Args:
        in_a_row: how many processes were lost since it was measured.
        given_up: the outcomes of variants that are not measured any more: too many processes were lost, or
            the variant failed once. One that hangs would keep the machine from others each time.
        excused: whether a failure came since the process began: it may have ended the process.
    """

    in_a_row: Counter[int] = field(default_factory=Counter[int])
    given_up: dict[int, Lost | Failed] = field(default_factory=dict[int, Lost | Failed])
    excused: bool = False

    def note(self, place: int, outcome: Measured | Failed) -> None:
        """Note what was measured of a variant; one that failed is given up."""
        # In a row, since the machine may kill processes at random: that says nothing of whom it met.
        self.in_a_row[place] = 0
        if isinstance(outcome, Failed):
            self.given_up[place] = outcome
            self.excused = True

    def add(self, place: int, lost: Lost) -> None:
        """Count one; it may be one too many. Where a failure ended the process, the next is not blamed."""
        if self.excused:
            return
        self.in_a_row[place] += 1
        if self.in_a_row[place] == _LOSSES:
            why = f"{_LOSSES} processes were lost while they measured it: {lost.detail}"
            self.given_up[place] = replace(lost, detail=why)


class CutShortError(Exception):
    """The executor ended a batch before all of it was evaluated: the time was over."""


@dataclass(frozen=True)
class RoundsDone:
    """What one process did.

    Args:
        rounds: at least one.
        least_s: the seconds that such a process takes to start and for one round.
        lost_s: the seconds that went to processes that were lost.
    """

    rounds: list[Round]
    least_s: float
    lost_s: float = 0.0


class _ProcessLostError(Exception):
    """The process was lost while it measured a variant.

    Args:
        place: whom.
        lost: how.
    """

    def __init__(self, place: int, lost: Lost) -> None:
        super().__init__(place, lost)
        self.place, self.lost = place, lost


def measured(turns: Turns, start: Start, losses: Losses) -> RoundsDone:
    """Measure in one fresh process, until its end and the end of all by the clock, but one round at least.

    Args:
        turns: what is to be done.
        start: starts an executor with a fresh process.
        losses: so far; they are added to.

    Raises:
        CutShortError: the executor ended the first round early.
        PlanishError: the baseline failed, and its process ended.
        LostError: the baseline is given up, or as many processes are lost as would do for all variants.
    """
    began, lost_s, cause = time.monotonic(), 0.0, ""
    for _ in range(_LOSSES * len(turns.variants)):
        if lost_s > max(turns.plan.seconds, _PATIENCE_S):
            break
        try:
            # What losses took is added to the ends: else the comparison would be shorter for those who did
            # nothing wrong.
            return replace(_process(turns.later(lost_s), start, losses), lost_s=lost_s)
        except _ProcessLostError as loss:
            losses.add(loss.place, loss.lost)
            lost_s, cause = time.monotonic() - began, loss.lost.detail
        except CutShortError:
            if turns.process == 0 and cause:  # what took the time is the better reason
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


def _process(turns: Turns, start: Start, losses: Losses) -> RoundsDone:
    variants, found = turns.variants, list[Round]()
    took, began, later = 0.0, time.monotonic(), turns.plan.processes - turns.process - 1
    losses.excused = False
    with start(Panel(tuple(variant.spec for variant in variants))) as executor:
        starting = time.monotonic() - began
        while len(found) < turns.rounds and (not found or _fits(took, later * (starting + took), turns.ends)):
            began = time.monotonic()
            try:
                # In order and not shuffled: where time is short, the most telling must be those that are
                # kept.
                if turns.process == 0 and not found:
                    fits = partial(_fits_later, later, starting, turns.ends[1])
                    outcomes, took = _first(executor, variants, turns.ends[0], fits, losses)
                    variants = variants[: len(outcomes)]
                else:
                    # Shuffled anew each round: else who follows whom would be part of what is measured.
                    shuffle = rng(turns.plan.seed, turns.process, len(found))
                    order = shuffle.permutation(len(variants)).tolist()
                    outcomes = _round(executor, variants, order, losses, begun=bool(found))
                    took = time.monotonic() - began
            except CutShortError:
                if not found:
                    raise
                break
            found.append(outcomes)
            if turns.process == 0:
                kept = _that_fit(turns, len(variants), took, len(found), starting)
                took *= kept / len(variants)
                variants, found = variants[:kept], [outcomes[:kept] for outcomes in found]
    return RoundsDone(found, starting + took)


def _that_fit(turns: Turns, count: int, round_s: float, done: int, starting: float) -> int:
    """Return how many variants leave time for as many rounds as the baseline and the first can have.

    The least promising are dropped before rounds are: of a variant with few rounds nothing can be decided.

    Args:
        turns: what is to be done.
        count: how many are measured by now.
        round_s: how long their last round took, in seconds.
        done: how many rounds this process has done. The first round takes longer than the others, so that
            after it only the time of the second one is asked for.
        starting: how long a process takes to start, in seconds.
    """
    later = turns.plan.processes - turns.process - 1
    left = turns.rounds - done
    if not left and not later:
        return count

    def fits(variants: int, more: int) -> bool:
        each = round_s * variants / count
        return time.monotonic() + more * each + later * (starting + (done + more) * each) <= turns.ends[1]

    for more in range(min(1, left) if done == 1 else left, -1, -1):
        if fits(min(_LEAST, count), more):
            return max(n for n in range(1, count + 1) if fits(n, more))
    return min(_LEAST, count)


def _fits_later(later: int, starting: float, over: float, round_: float) -> bool:
    """Whether a round of so many seconds in each of the later processes, if any, would be over in time."""
    return not later or time.monotonic() + later * (starting + round_) <= over


def _fits(round_: float, others: float, ends: tuple[float, float]) -> bool:
    """Whether another round leaves this process within its end, and those after it within the end of all."""
    now = time.monotonic() + round_
    return now <= ends[0] and now + others <= ends[1]


def _first(
    executor: Executor,
    variants: Sequence[Variant],
    end: float,
    fits: Callable[[float], bool],
    losses: Losses,
) -> tuple[Round, float]:
    """Measure in order while there is time, now and in the later processes; all at once where it cannot end.

    Fewer are compared rather than all in fewer processes, which would prove nothing of anybody.

    Args:
        executor: evaluates.
        variants: the most telling first.
        end: when it is over, by the clock.
        fits: tells whether a round of so many seconds fits in all later processes.
        losses: so far; they are added to.

    Returns:
        The outcomes of those who are kept, and the seconds that these took.
    """
    began = time.monotonic()
    if math.isinf(end):
        found = _round(executor, variants, range(len(variants)), losses, begun=False)
        return found, time.monotonic() - began
    found = []
    # The seconds after so many variants, from none on.
    took = [0.0]
    for place in range(len(variants)):
        if place >= _LEAST and time.monotonic() >= end:
            break
        try:
            found += _round(executor, variants, [place], losses, begun=bool(found))
        except CutShortError:
            if place < _LEAST:
                raise
            break
        took.append(time.monotonic() - began)
    # From the end, where the least telling stand.
    while len(found) > _LEAST and not fits(took[len(found)]):
        found.pop()
    return found, took[len(found)]


def _round(
    executor: Executor, variants: Sequence[Variant], order: Sequence[int], losses: Losses, *, begun: bool
) -> Round:
    """Measure some in an order, by a process that has begun or not; gives their outcomes by place.

    Raises:
        CutShortError: the executor ended the batch early.
        _ProcessLostError: the process was lost.
    """
    given_up = losses.given_up
    places = [place for place in order if place not in given_up]
    # One batch for one worker: it is evaluated in this order, as rounds need.
    batch = {
        Candidate((Turn(place, later=begun or at > 0), *variants[place].candidate.steps)): place
        for at, place in enumerate(places)
    }
    answers: dict[int, Outcome] = {place: given_up[place] for place in order if place in given_up}
    lost: _ProcessLostError | None = None
    for evaluation in evaluate(executor, list(batch), deadline()):
        place, outcome = batch[evaluation.candidate], evaluation.outcome
        if isinstance(outcome, Lost):
            lost = _ProcessLostError(place, outcome)
            break  # which ends the batch
        answers[place] = outcome
        losses.note(place, outcome)
    if lost:
        raise lost
    if len(answers) < len(order):
        raise CutShortError
    return [answers[place] for place in sorted(order)]
