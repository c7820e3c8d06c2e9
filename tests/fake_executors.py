"""Executors whose results a test defines: nothing is evaluated."""

import math
from collections.abc import Callable, Iterator, Sequence

from planish.core import Candidate, Evaluation, EvaluatorSpec, Failed, Measured, Outcome
from planish.measure.comparison_rounds import VariantTag
from planish.measure.executors import InlineExecutor
from planish.testing.synthetic import ScriptedEvaluator


class FakeExecutor(InlineExecutor):
    """An executor of one evaluation at a time, which a subclass defines in `_evaluate`, for any evaluator."""

    def __init__(self) -> None:
        super().__init__(ScriptedEvaluator())

    def serve(self, spec: EvaluatorSpec) -> None:
        del spec

    def close(self) -> None:
        """Stay open: one object may represent several processes in turn."""

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        raise NotImplementedError


def first(count: int) -> int:
    """Choose what was submitted first."""
    del count
    return 0


class UnsteadyExecutor(FakeExecutor):
    """Measures all but the first variant by a factor that differs from process to process.

    Args:
        process: its number.
    """

    def __init__(self, process: int) -> None:
        super().__init__()
        self._factor = (0.3, 1.0, 4.0, 1.2)[process % 4]

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        tag = candidate.steps[0]
        assert isinstance(tag, VariantTag)
        return Evaluation(candidate, Measured({"time_s": self._factor if tag.variant else 1.0}))


class UnsteadyExecutors:
    """Starts processes that measure unsteadily.

    Attributes:
        started: how many.
    """

    def __init__(self) -> None:
        self.started = 0

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> UnsteadyExecutor:
        del spec, workers
        self.started += 1
        return UnsteadyExecutor(self.started)


class HashExecutor(FakeExecutor):
    """Derives outcomes from the hashes of candidates, so that they are equal in any order of results.

    Args:
        objectives: the names of what is measured.
        capacity: how many candidates are in flight.
        choose: returns the index of the result that comes next, among so many; the first where it is None.
    """

    def __init__(
        self, objectives: Sequence[str], capacity: int = 16, choose: Callable[[int], int] | None = None
    ) -> None:
        super().__init__()
        self.capacity, self.asked = capacity, list[Candidate]()
        self._objectives, self._choose = objectives, choose or first
        self._open: list[Candidate] = []

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        del deadline
        self._open += candidates
        self.asked += candidates

    def results(self) -> Iterator[Evaluation]:
        while self._open:
            candidate = self._open.pop(self._choose(len(self._open)))
            yield Evaluation(candidate, self.outcome(candidate))

    def cancel(self) -> None:
        self._open.clear()

    def outcome(self, candidate: Candidate) -> Outcome:
        """Return the outcome of a candidate."""
        bits = int(candidate.hash[:12], 16)
        if bits % 7 == 0:
            return Failed("run", "unlucky")
        return Measured(
            {name: 1.0 + (bits >> 4 * place) % 4096 for place, name in enumerate(self._objectives)}
        )


class SameProcessExecutor(InlineExecutor):
    """Evaluates in the test's process, whatever executor was asked for, and ignores deadlines."""

    def __init__(self, spec: EvaluatorSpec, **_: object) -> None:
        super().__init__(spec())

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        del deadline
        super().submit(candidates)
