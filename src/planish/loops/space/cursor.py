"""The step space of LoopTune: a cursor on the main nest's loops, and actions on the loop under it.

Thesis 3.6.2 and figure 3.8. Its write-back nest follows the main nest here, so the cursor never leaves that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from planish.core import Candidate, FeatureSchema, Machine, PlanishError, ScheduleError, Step
from planish.loops.ir.schedule import Order, Schedule, loop_text, unscheduled
from planish.loops.lang.program import Program
from planish.loops.space.observing import OBSERVED, observe
from planish.loops.steps import Split, Swap

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

State = tuple[Schedule, int]
"""A schedule, and which loop of its main nest the cursor is on."""

FACTORS = (4, 8, 16)
LOOPS_MAX = 10
ACTIONS_MAX = 10


@dataclass(frozen=True)
class CursorStep(Step):
    """An action on the loop under the cursor, which begins on the outermost."""

    def move(self, state: State) -> State:
        """Give the state after the action.

        Raises:
            ScheduleError: the action is illegal here.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Up(CursorStep):
    """Move the cursor one loop outward.

    ::

        m, [n], k   -- Up() -->   [m], n, k
    """

    def move(self, state: State) -> State:
        return state[0], _neighbour(state, -1)


@dataclass(frozen=True)
class Down(CursorStep):
    """Move the cursor one loop inward.

    ::

        m, [n], k   -- Down() -->   m, n, [k]
    """

    def move(self, state: State) -> State:
        return state[0], _neighbour(state, 1)


@dataclass(frozen=True)
class SwapUp(CursorStep):
    """Exchange the loop with the next outer one; the cursor moves with it.

    ::

        m, [n], k   -- SwapUp() -->   [n], m, k
    """

    def move(self, state: State) -> State:
        return _swapped(state, -1)


@dataclass(frozen=True)
class SwapDown(CursorStep):
    """Exchange the loop with the next inner one; the cursor moves with it.

    ::

        m, [n], k   -- SwapDown() -->   m, k, [n]
    """

    def move(self, state: State) -> State:
        return _swapped(state, 1)


@dataclass(frozen=True)
class SplitBy(CursorStep):
    """Divide the loop: the new inner one has `factor` iterations, and the cursor stays on the outer one.

    ::

        [m], n, k       -- SplitBy(16) -->   [m:16], m, n, k
        [m:16], m, n    -- SplitBy(4) -->    [m:64], m:16, m, n

    Args:
        factor: more than 1.
    """

    factor: int

    def move(self, state: State) -> State:
        schedule, cursor = state
        if not _order(schedule):
            raise ScheduleError("there is no loop to split", "Every axis has one element.")
        # The step of the outer loop is the factor times that of the loop under the cursor, which stays as the
        # inner one.
        axis, step = _order(schedule)[cursor]
        return Split(axis, step * self.factor).apply(schedule), cursor


def start(program: Program) -> State:
    """Put the cursor on the outermost loop of the unscheduled program."""
    return unscheduled(program), 0


class CursorSpace:
    """Sequences of cursor actions. The space is not bounded in length: a searcher has its own depth.

    Args:
        program: what is scheduled.
        factors: of the split actions; the thesis has 4, 8 and 16.
        loops_max: how many loops the main nest may have; the thesis has 10.
        machine: the processor of the target; None where nothing is known of it.
    """

    def __init__(
        self,
        program: Program,
        factors: Sequence[int] = FACTORS,
        loops_max: int = LOOPS_MAX,
        machine: Machine | None = None,
    ) -> None:
        self.machine = machine
        moves: tuple[CursorStep, ...] = (Up(), Down(), SwapUp(), SwapDown())
        self.actions: Sequence[CursorStep] = (*moves, *(SplitBy(factor) for factor in factors))
        self._program = program
        self._loops_max = loops_max
        # Recursive on the prefix, which a neighbour has mostly left here: each candidate takes one step.
        self._reached = lru_cache(maxsize=4096)(self._reach)

    def start(self) -> Candidate:
        """Give the unscheduled program.

        Raises:
            PlanishError: it has more loops than are observed, so that no action would be legal.
        """
        if (loops := len(_order(self._reached(())[0]))) > self._loops_max:
            what = f"the program has {loops} loops, and the space of a cursor has {self._loops_max} at most"
            raise PlanishError(what, "Name the space template, or none.")
        return Candidate()

    def steps(self, candidate: Candidate) -> Sequence[CursorStep]:
        """List the actions that are legal where the candidate leads."""
        state = self._reached(candidate.steps)
        return [action for action in self.actions if self._after(state, action)]

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        """Add an action."""
        return candidate.then(step)

    def state(self, candidate: Candidate) -> str:
        """Name the schedule and the cursor; the cursor counts because what can follow depends on it."""
        schedule, cursor = self._reached(candidate.steps)
        order = _order(schedule)
        return f"{schedule.text} @ {loop_text(order[cursor]) if order else ''}"

    def identity(self, candidate: Candidate) -> str:
        """Name the schedule, wherever the cursor is."""
        return self._reached(candidate.steps)[0].text

    @property
    def observed(self) -> FeatureSchema:
        """The thesis' twenty integers for each loop (3.6.4), and the edges of its graph."""
        return OBSERVED

    def observe(self, candidate: Candidate) -> NDArray[np.int64]:
        """Describe the loops where a candidate leads; (the most loops that there may be, 24)."""
        return observe(*self._reached(candidate.steps), self._loops_max)

    def sample(self, rng: Generator) -> Candidate:
        """Take 1 to 10 random actions from the start (the thesis's random search)."""
        candidate = self.start()
        for _ in range(int(rng.integers(1, ACTIONS_MAX + 1))):
            actions = self.steps(candidate)
            if not actions:
                break
            candidate = candidate.then(actions[int(rng.integers(len(actions)))])
        return candidate

    def reached(self, candidate: Candidate) -> State:
        """Give the schedule, and the place of the cursor."""
        return self._reached(candidate.steps)

    def _reach(self, steps: tuple[Step, ...]) -> State:
        if not steps:
            return start(self._program)
        last = steps[-1]
        if not isinstance(last, CursorStep):
            raise ScheduleError(f"{last} is no action of a cursor", "Use this space's own candidates.")
        return last.move(self._reached(steps[:-1]))

    def _after(self, state: State, action: CursorStep) -> State | None:
        """Give the state after an action; None where that is illegal or has too many loops."""
        try:
            after = action.move(state)
        except ScheduleError:
            return None
        return after if len(_order(after[0])) <= self._loops_max else None


def _order(schedule: Schedule) -> Order:
    return schedule.loops[schedule.graph.main]


def _neighbour(state: State, by: int) -> int:
    schedule, cursor = state
    if not 0 <= cursor + by < len(_order(schedule)):
        raise ScheduleError(
            f"the cursor is on the {'outermost' if by < 0 else 'innermost'} loop", "Go the other way."
        )
    return cursor + by


def _swapped(state: State, by: int) -> State:
    schedule, cursor = state
    other = _neighbour(state, by)
    order = _order(schedule)
    return Swap(loop_text(order[cursor]), loop_text(order[other])).apply(schedule), other
