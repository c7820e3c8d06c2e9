"""The executor of this process: for tests, simulation, and evaluators that cannot hurt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planish.core import Candidate, Evaluator, EvaluatorSpec, HasNotes
from planish.executors.in_order import InOrder
from planish.measure.clock import Clock
from planish.measure.machine_lock import machine_lock
from planish.sandbox.protocol import DIAL_BYTES, Answer, Dial, answer


class InlineExecutor(InOrder):
    """Evaluates in this process, one candidate at a time, in order, when its answer is asked for.

    Exceptions become `Failed` answers as in a worker; nothing else is isolated, and no limit is kept.

    Args:
        evaluator: evaluates.
        lock: the file by which timed runs exclude each other; None for the machine's.
    """

    def __init__(self, evaluator: Evaluator, *, lock: Path | None = None) -> None:
        super().__init__()
        self._evaluator = evaluator
        self._clock = Clock(Dial(memoryview(bytearray(DIAL_BYTES))), lock or machine_lock())

    @property
    def notes(self) -> Sequence[str]:
        """What the evaluator has to tell the user."""
        return tuple(self._evaluator.notes) if isinstance(self._evaluator, HasNotes) else ()

    def _take(self, spec: EvaluatorSpec) -> None:
        self._evaluator = spec()

    def _answer(self, position: int, candidate: Candidate) -> Answer:
        return answer(self._evaluator, position, candidate, self._clock)
