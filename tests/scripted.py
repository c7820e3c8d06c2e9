"""An executor whose answers a test writes: nothing is evaluated."""

from planish.core import Candidate, EvaluatorSpec
from planish.executors import InlineExecutor
from planish.isolation import Answer
from planish.testing.acting import Actor


class Scripted(InlineExecutor):
    """Answers as `_answer` says, which a subclass overrides, by whatever evaluator it is to serve."""

    def __init__(self) -> None:
        super().__init__(Actor())

    def serve(self, factory: EvaluatorSpec) -> None:
        del factory

    def _answer(self, position: int, candidate: Candidate) -> Answer:
        raise NotImplementedError
