"""The executor of this process: for tests, simulation, and evaluators that cannot hurt."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from planish.core import Candidate, Evaluator
from planish.measure.clock import DIAL_BYTES, Clock, Dial
from planish.measure.guard import Answer, answer
from planish.measure.machine_lock import machine_lock


class InlineExecutor:
    """Evaluates in this process, one candidate at a time, in order.

    Exceptions become `Failed` answers as in a worker; nothing else is isolated, and no limit is kept.

    Args:
        evaluator: evaluates.
        lock: the file by which timed runs exclude each other; None for the machine's.

    Attributes:
        losses: how many evaluations were lost, by cause; none, since there are no workers.
    """

    def __init__(self, evaluator: Evaluator, *, lock: Path | None = None) -> None:
        self._evaluator = evaluator
        self.losses: Counter[str] = Counter()
        self._clock = Clock(Dial(memoryview(bytearray(DIAL_BYTES))), lock or machine_lock())

    def submit(self, candidates: Sequence[Candidate]) -> Iterator[Answer]:
        """Evaluate a batch; each candidate is evaluated when its answer is asked for."""
        for position, candidate in enumerate(candidates):
            yield answer(self._evaluator, position, candidate, self._clock)

    def close(self) -> None:
        """Do nothing: there are no workers."""
