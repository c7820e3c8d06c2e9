"""LoopTune's space with the back end's decisions among the actions: what is a vector, unrolled and packed.

The thesis leaves these to the back end (3.6.2), which keeps its space small. Here they are offered, so that
what that costs can be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planish.core import Candidate, FeatureSchema, Machine, ScheduleError
from planish.loops.ir.schedule import Schedule, loop_text
from planish.loops.lang.program import Program, accesses
from planish.loops.space.cursor import FACTORS, LOOPS_MAX, CursorSpace, CursorStep, State
from planish.loops.space.observing import OBSERVED
from planish.loops.steps import Pack, Unroll, Vectorize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKED = 2
"""Of what the main nest reads, so many can be packed: the first ones in its text."""


@dataclass(frozen=True)
class VectorizeHere(CursorStep):
    """Make the loop under the cursor the innermost; the cursor stays in its place.

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
    """Ask for the loop under the cursor to be unrolled.

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
        read: which of the tensors that the main nest reads, by their first place in its text; from 0.
    """

    read: int

    def move(self, state: State) -> State:
        schedule, cursor = state
        names = _read(schedule)
        if self.read >= len(names):
            raise ScheduleError(f"the nest reads {len(names)} tensors", "Pack one of them.")
        return Pack(names[self.read], _here(state)).apply(schedule), cursor


MARKED = FeatureSchema(
    "loops/marking",
    2,
    (
        *OBSERVED.names,
        "unrolled",  # 1 where the loop is asked to be unrolled
        *(f"packs {n}" for n in range(PACKED)),  # 1 where a tensor is packed at the loop
    ),
)
"""What `MarkingSpace` shows of a loop: LoopTune's integers, and its marks."""


class MarkingSpace(CursorSpace):
    """Sequences of cursor actions, those that the thesis leaves to the back end among them.

    Args:
        program: what is scheduled.
        machine: the processor of the target; None where nothing is known of it.
    """

    def __init__(self, program: Program, machine: Machine | None = None) -> None:
        super().__init__(program, FACTORS, LOOPS_MAX, machine)
        more = VectorizeHere(), UnrollHere(), *(PackHere(read) for read in range(PACKED))
        self.actions = (*self.actions, *more)

    @property
    def observed(self) -> FeatureSchema:
        """The thesis' integers, and the marks of each loop."""
        return MARKED

    def observe(self, candidate: Candidate) -> NDArray[np.int64]:
        """Describe the loops where a candidate leads; (the most loops that there may be, 27)."""
        import numpy as np

        schedule, _ = self.reached(candidate)
        main, names = schedule.graph.main, _read(schedule)
        marks = np.zeros((LOOPS_MAX, 1 + PACKED), np.int64)
        packs = [(pack.tensor, pack.at) for pack in schedule.packs if pack.nest == main]
        for row, loop in enumerate(_order(schedule)):
            marks[row, 0] = (main, loop) in schedule.unrolled
            marks[row, 1:] = [(name, loop) in packs for name in names[:PACKED]] + [0] * (PACKED - len(names))
        return np.concatenate([super().observe(candidate), marks], axis=1)


def _order(schedule: Schedule) -> tuple[tuple[str, int], ...]:
    return schedule.loops[schedule.graph.main]


def _here(state: State) -> str:
    schedule, cursor = state
    if not (order := _order(schedule)):
        raise ScheduleError("there is no loop under the cursor", "Every axis has one element.")
    return loop_text(order[cursor])


def _read(schedule: Schedule) -> list[str]:
    """Name the tensors that the main nest reads."""
    value = schedule.graph.nests[schedule.graph.main].statement.value
    known = schedule.program.type  # positions are no tensors
    return list(dict.fromkeys(access.tensor for access in accesses(value) if access.tensor in known))
