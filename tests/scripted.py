"""Executors whose results a test writes: nothing is evaluated."""

import math
from collections.abc import Callable, Iterator, Sequence

from planish.core import Candidate, Evaluation, EvaluatorSpec, Failed, Measured, Outcome
from planish.executors import InlineExecutor
from planish.measure.rounds import VariantTag
from planish.testing.acting import Actor


class Scripted(InlineExecutor):
    """Returns what `_evaluate` does, which a subclass overrides, by whatever evaluator it is to serve."""

    def __init__(self) -> None:
        super().__init__(Actor())

    def serve(self, spec: EvaluatorSpec) -> None:
        del spec

    def close(self) -> None:
        """Stay open: one object may stand for one process after the other."""

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        raise NotImplementedError


def first(count: int) -> int:
    """Choose what was submitted first."""
    del count
    return 0


class Unsteady(Scripted):
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


class UnsteadyMachine:
    """Starts processes that measure unsteadily.

    Attributes:
        started: how many.
    """

    def __init__(self) -> None:
        self.started = 0

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> Unsteady:
        del spec, workers
        self.started += 1
        return Unsteady(self.started)


class Disordered(Scripted):
    """Measures nothing: a candidate's hash decides, so that all searches see the same, in whatever order.

    Args:
        objectives: the names of what is measured.
        capacity: how many candidates are to be under way.
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
        """Tell what becomes of a candidate."""
        bits = int(candidate.hash[:12], 16)
        if bits % 7 == 0:
            return Failed("run", "unlucky")
        return Measured(
            {name: 1.0 + (bits >> 4 * place) % 4096 for place, name in enumerate(self._objectives)}
        )


class Here(InlineExecutor):
    """Evaluates in this process whatever else was asked for; it leaves deadlines to who asks it."""

    def __init__(self, spec: EvaluatorSpec, **_: object) -> None:
        super().__init__(spec())

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        del deadline
        super().submit(candidates)
