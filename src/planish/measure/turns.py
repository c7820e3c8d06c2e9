"""Measuring some in turns: in fresh processes one after the other, in rounds, while there is time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from planish.core import Candidate, EvaluatorFactory, Executor, Outcome, rng
from planish.measure.panel import Panel, Turn

Start = Callable[[EvaluatorFactory], Executor]
Round = list[Outcome]
"""The outcomes of the entrants that were not left out, in their order."""

_LEAST = 2
"""The baseline and the first entrant are never left out."""


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
        rounds: how often each process measures everybody at most; 3 in all are the least.
        seed: of the orders.
        seconds: that all of it should take, by the clock. It takes longer where one round in each process
            does, of the baseline, the first entrant and who else fits in the first process's share.
        most: processes in all, where the comparison goes on since too little is known.
    """

    processes: int = 5
    rounds: int = 3
    seed: int = 0
    seconds: float = math.inf
    most: int = 20


def in_turns(everybody: Sequence[Entrant], plan: Plan, start: Start) -> list[list[Round]]:
    """Measure the baseline and entrants, interleaved; each process has a share of the time that is left.

    The first has two shares, since evaluators may keep for the others what takes long to make; but it leaves
    them the time for a round each. There are as many rounds as fit in the share of every process, and one at
    least. In the very first round entrants are measured in their order, and who does not fit in the share is
    left out of all; in the other rounds a seed shuffles them.

    Args:
        everybody: the baseline, then the entrants, the most telling first.
        plan: how much is measured.
        start: starts an executor with fresh processes.

    Returns:
        Outcomes by entrant, then by process, then by round; none of those who were left out.
    """
    over, kept, rounds = time.monotonic() + plan.seconds, list(everybody), plan.rounds
    table: list[list[Round]] = []
    for process in range(plan.processes):
        share = 1 / (plan.processes - process) if process else 2 / (plan.processes + 1)
        now = time.monotonic()
        ends = (now + share * (over - now), over)
        table.append(_process(kept, plan, process, rounds, ends, start))
        kept, rounds = kept[: len(table[0][0])], len(table[-1])
    return [[[each[place] for each in found[:rounds]] for found in table] for place in range(len(kept))]


def _process(
    everybody: Sequence[Entrant],
    plan: Plan,
    process: int,
    rounds: int,
    ends: tuple[float, float],
    start: Start,
) -> list[Round]:
    """Measure in one fresh process, until its end and the end of all by the clock, but one round at least."""
    found: list[Round] = []
    took, began, later = 0.0, time.monotonic(), plan.processes - process - 1
    with closing(start(Panel(tuple(entrant.factory for entrant in everybody)))) as executor:
        starting = time.monotonic() - began
        while len(found) < rounds and (not found or _fits(took, later * (starting + took), ends)):
            began = time.monotonic()
            if process == 0 and not found:
                found.append(_first(executor, everybody, ends[0]))
                everybody = everybody[: len(found[0])]
            else:
                order = rng(plan.seed, process, len(found)).permutation(len(everybody)).tolist()
                found.append(_measured(executor, everybody, order))
            took = time.monotonic() - began
    return found


def _fits(round_: float, others: float, ends: tuple[float, float]) -> bool:
    """Whether another round leaves this process within its end, and those after it within the end of all."""
    now = time.monotonic() + round_
    return now <= ends[0] and now + others <= ends[1]


def _first(executor: Executor, everybody: Sequence[Entrant], end: float) -> Round:
    """Measure in order while there is time; all at once where it cannot end."""
    if math.isinf(end):
        return _measured(executor, everybody, range(len(everybody)))
    found: Round = []
    for place in range(len(everybody)):
        if place < _LEAST or time.monotonic() < end:
            found += _measured(executor, everybody, [place])
    return found


def _measured(executor: Executor, everybody: Sequence[Entrant], order: Sequence[int]) -> Round:
    """Measure some in an order; gives their outcomes by place."""
    batch = [Candidate((Turn(place), *everybody[place].candidate.steps)) for place in order]
    answers = {order[answer.position]: answer.outcome for answer in executor.submit(batch)}
    return [answers[place] for place in sorted(answers)]
