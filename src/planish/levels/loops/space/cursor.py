"""LoopTune's space: a cursor on the main nest's loops, and actions on the loop under it.

Thesis 3.6.2 and figure 3.8. Its write-back nest follows the main nest here, so the cursor never leaves that.
`AnnotationSpace` adds the decisions that the thesis leaves to the back end: what is a vector, unrolled and
packed. They are offered so that what they cost can be measured.

The agent observes twenty integers for each loop, and a graph's edges (3.6.4). The graph of figure 3.9 has
loops, data and computations. Here the loops are rows in the order of nesting (its black edges), data are
columns, what is written before what is read (blue edges), and a stride stands where a loop moves an access
(red edges). The histogram of figure 3.10 says how many accesses a loop moves so far, but not which: those of
a matmul's m and of a transposed one's k look alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from planish.core import Candidate, FeatureSchema, PlanishError, ScheduleError, Space, Step, Target
from planish.levels.loops.context import CONTEXT, Peak, context_of, unknown_peak
from planish.levels.loops.ir.schedule import Nest, Order, Schedule, loop_text, unscheduled
from planish.levels.loops.lang.program import Program, accesses
from planish.levels.loops.space.facts import machine_of
from planish.levels.loops.steps import (
    Fuse,
    LoopStep,
    Merge,
    Pack,
    Parallel,
    Reorder,
    Split,
    Stage,
    Swap,
    Unroll,
    Vectorize,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

# Observation

BINS = 16
"""Of the histogram of strides: bin N has those above 2**(N-1), up to 2**N; the last one all that are more."""

DATA = 4
"""Accesses of a statement that have columns of their own: what is written, and the first that are read."""

OBSERVED = FeatureSchema(
    "loops/cursor",
    3,
    (
        "cursor",  # 1 where the cursor is on the loop
        "size",  # whole iterations of its first execution
        "tail",  # elements that are left for a last, shorter iteration
        "computes",  # 1 for a loop of the nest that the cursor walks, 0 for one of another nest
        *(f"stride {2**n}" for n in range(BINS)),  # accesses that move by this each iteration
        "moves written",  # elements by which an iteration moves the written access
        *(f"moves read {n}" for n in range(1, DATA)),  # the same for what is read
        *CONTEXT,  # of the program and the target, the same in each row
    ),
)
"""The thesis' row, the edges of its graph, and the context, which the thesis has not.

Its write-back nest is our other nests: they fill the rows that the main nest leaves.
"""
EDGES = 4 + BINS
"""The first column of the graph's edges."""


def observe(schedule: Schedule, cursor: int, rows: int, context: Sequence[int]) -> NDArray[np.int64]:
    """Describe a schedule and the cursor on its main nest.

    Args:
        schedule: what the agent has made.
        cursor: the index of its loop.
        rows: how many loops are described at most; rows that are left are zeros.
        context: the numbers of `CONTEXT`.

    Returns:
        (rows, 33): the main nest's loops, outermost first, then those of the other nests.
    """
    import numpy as np

    seen = np.zeros((rows, OBSERVED.width), np.int64)
    main = schedule.graph.main
    others = (number for number in range(len(schedule.graph.nests)) if number != main)
    row = 0
    for number in (main, *others):
        nest, order = schedule.graph.nests[number], schedule.loops[number]
        moves = {axis: [*moves_of(schedule, nest, axis)] for axis in {axis for axis, _ in order}}
        for index, (size, tail) in enumerate(_trips(schedule, order)):
            if row == rows:
                return seen
            axis, step = order[index]
            seen[row, :4] = (number == main and index == cursor, size, tail, number == main)
            for column, moved in enumerate(moves[axis]):
                if moved:
                    # The bit length of n - 1 is the logarithm rounded up: bin N ends at 2 ** N.
                    seen[row, 4 + min((moved * step - 1).bit_length(), BINS - 1)] += 1
                if column < DATA:
                    seen[row, EDGES + column] = moved * step
            seen[row, EDGES + DATA :] = context
            row += 1
    return seen


def _trips(schedule: Schedule, order: Order) -> Iterator[tuple[int, int]]:
    """Return each loop's whole iterations and what they leave, in the first execution."""
    left = dict(schedule.program.size)
    for axis, step in order:
        yield divmod(left[axis], step)
        left[axis] = min(step, left[axis])


def moves_of(schedule: Schedule, nest: Nest, axis: str) -> Iterator[int]:
    """Return by how many elements each access of a statement moves with an axis, the written one first."""
    for access in (nest.statement.target, *accesses(nest.statement.value)):
        kind = schedule.program.type.get(access.tensor)  # a position is not in memory
        strides = zip(kind.strides(), access.index, strict=True) if kind else ()
        yield sum(stride * dict(index.terms).get(axis, 0) for stride, index in strides)


# Cursor

State = tuple[Schedule, int]
"""A schedule, and which loop of its main nest the cursor is on."""

FACTORS = (4, 8, 16)
LOOPS_MAX = 10
ACTIONS_MAX = 10


@dataclass(frozen=True)
class CursorStep(Step):
    """An action on the loop under the cursor, which begins on the outermost."""

    def move(self, state: State) -> State:
        """Return the state after the action; raises ScheduleError where the action is illegal here."""
        raise NotImplementedError


@dataclass(frozen=True)
class Up(CursorStep):
    """Move the cursor one loop outward.

    ::

        m, [n], k   -- Up() -->   [m], n, k
    """

    def move(self, state: State) -> State:
        return state[0], _neighbor(state, -1)


@dataclass(frozen=True)
class Down(CursorStep):
    """Move the cursor one loop inward.

    ::

        m, [n], k   -- Down() -->   m, n, [k]
    """

    def move(self, state: State) -> State:
        return state[0], _neighbor(state, 1)


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


class CursorSpace(Space):
    """Sequences of cursor actions. The space is not bounded in length: a searcher has its own depth.

    Args:
        program: what is scheduled.
        factors: of the split actions; the thesis has 4, 8 and 16.
        loops_max: how many loops the main nest may have; the thesis has 10.
        target: where it runs; None where nothing is known of it.
        peak: of the target, for observations.
    """

    def __init__(
        self,
        program: Program,
        factors: Sequence[int] = FACTORS,
        loops_max: int = LOOPS_MAX,
        target: Target | None = None,
        peak: Peak = unknown_peak,
    ) -> None:
        self._peak = peak
        self.machine, self._cores = target and machine_of(target), target.cores if target else 0
        self.conditions: Mapping[str, str | int] = {"element type": program.arithmetic}
        moves: tuple[CursorStep, ...] = (Up(), Down(), SwapUp(), SwapDown())
        self.actions: Sequence[CursorStep] = (*moves, *(SplitBy(factor) for factor in factors))
        self._program = program
        self._loops_max = loops_max
        # Recursive on the prefix, which a neighbor has mostly left here: each candidate takes one step.
        self._state_after = lru_cache(maxsize=4096)(self._compute_state)

    def start(self) -> Candidate:
        """Return the unscheduled program.

        Raises:
            PlanishError: it has more loops than are observed, so that no action would be legal.
        """
        if (loops := len(_order(self._state_after(())[0]))) > self._loops_max:
            what = f"the program has {loops} loops, and the space of a cursor has {self._loops_max} at most"
            raise PlanishError(what, "Name the space template, or none.")
        return Candidate()

    def steps(self, candidate: Candidate) -> Sequence[CursorStep]:
        """List the actions that are legal in the state after the candidate's steps."""
        state = self._state_after(candidate.steps)
        return [action for action in self.actions if self._after(state, action)]

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        """Add an action."""
        return candidate.then(step)

    def state_key(self, candidate: Candidate) -> str:
        """Return a key of the schedule and the cursor, which counts because what can follow depends on it."""
        schedule, cursor = self._state_after(candidate.steps)
        order = _order(schedule)
        return f"{schedule.text} @ {loop_text(order[cursor]) if order else ''}"

    def program_key(self, candidate: Candidate) -> str:
        """Return a key of the schedule, wherever the cursor is."""
        return self._state_after(candidate.steps)[0].text

    @property
    def observed(self) -> FeatureSchema:
        """The thesis' twenty integers for each loop (3.6.4), the edges of its graph, and the context."""
        return OBSERVED

    def observe(self, candidate: Candidate) -> NDArray[np.int64]:
        """Describe the loops after a candidate's steps; (the most loops that there may be, 33)."""
        return observe(*self._state_after(candidate.steps), self._loops_max, self.context)

    @cached_property
    def context(self) -> tuple[int, ...]:
        """The numbers of `CONTEXT`, which are observed in each row."""
        return context_of(self._program, self.machine, self._cores, self._peak)

    def sample(self, rng: Generator) -> Candidate:
        """Take 1 to 10 random actions from the start (the thesis's random search)."""
        candidate = self.start()
        for _ in range(int(rng.integers(1, ACTIONS_MAX + 1))):
            actions = self.steps(candidate)
            if not actions:
                break
            candidate = candidate.then(actions[int(rng.integers(len(actions)))])
        return candidate

    def _compute_state(self, steps: tuple[Step, ...]) -> State:
        if not steps:
            return start(self._program)
        last = steps[-1]
        if not isinstance(last, CursorStep):
            raise ScheduleError(
                f"expected an action of a cursor, got {last}", "Use this space's own candidates."
            )
        return last.move(self._state_after(steps[:-1]))

    def _after(self, state: State, action: CursorStep) -> State | None:
        """Return the state after an action; None where that is illegal or has too many loops."""
        try:
            after = action.move(state)
        except ScheduleError:
            return None
        return after if len(_order(after[0])) <= self._loops_max else None


def _order(schedule: Schedule) -> Order:
    return schedule.loops[schedule.graph.main]


def _neighbor(state: State, by: int) -> int:
    schedule, cursor = state
    if not 0 <= cursor + by < len(_order(schedule)):
        raise ScheduleError(
            f"the cursor is on the {'outermost' if by < 0 else 'innermost'} loop", "Go the other way."
        )
    return cursor + by


def _swapped(state: State, by: int) -> State:
    schedule, cursor = state
    other = _neighbor(state, by)
    order = _order(schedule)
    return Swap(loop_text(order[cursor]), loop_text(order[other])).apply(schedule), other


# Annotations

PACKED = 2
"""Operands of the main nest that can be packed: the first ones in its text."""


@dataclass(frozen=True)
class VectorizeHere(CursorStep):
    """Make the loop under the cursor the innermost; the cursor keeps its position.

    ::

        m, [n], k   -- VectorizeHere() -->   m, [k], n
    """

    def move(self, state: State) -> State:
        schedule, cursor = state
        if cursor == len(_order(schedule)) - 1:
            raise ScheduleError("the loop is the innermost", "Move the cursor.")
        return Vectorize(_here(state)).apply(schedule), cursor


@dataclass(frozen=True)
class UnrollHere(CursorStep):
    """Unroll the loop under the cursor.

    ::

        m, n, [k]   -- UnrollHere() -->   m, n, [k] unroll
    """

    def move(self, state: State) -> State:
        schedule, cursor = state
        here = _here(state)
        if (schedule.graph.main, _order(schedule)[cursor]) in schedule.unrolled:
            raise ScheduleError(f"the loop '{here}' is unrolled already", "Move the cursor.")
        return Unroll(here).apply(schedule), cursor


@dataclass(frozen=True)
class PackHere(CursorStep):
    """Pack what the loops inside the cursor's read of a tensor.

    ::

        [n:64], k, m, n   -- PackHere(1) -->   [n:64] (k, n: B.packed = B), k, m, n (reading B.packed)

    Args:
        read: which of the tensors that the main nest reads, by their first position in its text; from 0.
    """

    read: int

    def move(self, state: State) -> State:
        schedule, cursor = state
        names = _read(schedule)
        if self.read >= len(names):
            raise ScheduleError(f"the nest reads {len(names)} tensors", "Pack one of them.")
        return Pack(names[self.read], _here(state)).apply(schedule), cursor


ANNOTATED = FeatureSchema(
    "loops/marking",
    3,
    (
        *OBSERVED.names,
        "unrolled",  # 1 where the loop is to be unrolled
        *(f"packs {n}" for n in range(PACKED)),  # 1 where a tensor is packed at the loop
    ),
)
"""Observation of a loop by `AnnotationSpace`: what `CursorSpace` observes, and its annotations."""


class AnnotationSpace(CursorSpace):
    """Sequences of cursor actions, those that the thesis leaves to the back end among them.

    Args:
        program: what is scheduled.
        target: where it runs; None where nothing is known of it.
        peak: of the target, for observations.
    """

    def __init__(self, program: Program, target: Target | None = None, peak: Peak = unknown_peak) -> None:
        super().__init__(program, FACTORS, LOOPS_MAX, target, peak)
        more = VectorizeHere(), UnrollHere(), *(PackHere(read) for read in range(PACKED))
        self.actions = (*self.actions, *more)

    @property
    def observed(self) -> FeatureSchema:
        """What `CursorSpace` observes, and the annotations of each loop."""
        return ANNOTATED

    def observe(self, candidate: Candidate) -> NDArray[np.int64]:
        """Describe the loops after a candidate's steps; (the most loops that there may be, 36)."""
        import numpy as np

        schedule, _ = self._state_after(candidate.steps)
        main, names = schedule.graph.main, _read(schedule)
        annotations = np.zeros((LOOPS_MAX, 1 + PACKED), np.int64)
        packs = [(pack.tensor, pack.at) for pack in schedule.packs if pack.nest == main]
        for row, loop in enumerate(_order(schedule)):
            annotations[row, 0] = (main, loop) in schedule.unrolled
            for column, name in enumerate(names[:PACKED], 1):
                annotations[row, column] = (name, loop) in packs
        return np.concatenate([super().observe(candidate), annotations], axis=1)


def _here(state: State) -> str:
    schedule, cursor = state
    if not (order := _order(schedule)):
        raise ScheduleError("there is no loop under the cursor", "Every axis has one element.")
    return loop_text(order[cursor])


def _read(schedule: Schedule) -> list[str]:
    """Return the names of the tensors that the main nest reads."""
    value = schedule.graph.nests[schedule.graph.main].statement.value
    known = schedule.program.type  # positions are not tensors
    return list(dict.fromkeys(access.tensor for access in accesses(value) if access.tensor in known))


# Schedules of candidates

_LOOP_STEPS = (Fuse, Merge, Pack, Parallel, Reorder, Split, Stage, Swap, Unroll, Vectorize)
_CURSOR_STEPS = (Down, PackHere, SplitBy, SwapDown, SwapUp, UnrollHere, Up, VectorizeHere)
STEPS: Mapping[str, type[Step]] = {step.__name__: step for step in (*_LOOP_STEPS, *_CURSOR_STEPS)}
"""Name to class of every step that a candidate of this level's spaces may have."""


def resolve(program: Program, candidate: Candidate) -> Schedule:
    """Replay a candidate from the unscheduled program.

    Raises:
        ScheduleError: a step is illegal, or is not a step of a schedule.
    """
    schedule, cursor = start(program)
    for step in candidate.steps:
        if isinstance(step, LoopStep):
            schedule = step.apply(schedule)
        elif isinstance(step, CursorStep):
            schedule, cursor = step.move((schedule, cursor))
        else:
            raise ScheduleError(f"expected a step of a schedule, got {step}", f"Known: {', '.join(STEPS)}.")
    return schedule
