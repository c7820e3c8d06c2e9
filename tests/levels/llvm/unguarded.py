"""A spec that workers import by name."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import Evaluator
from planish.levels.llvm import evaluator as module
from planish.levels.llvm.evaluator import LlvmEvaluatorSpec


def _as_it_is(texts: tuple[str, ...]) -> str:
    return ",".join(texts)


@dataclass(frozen=True)
class Unguarded:
    """Makes an evaluator that takes pipelines as they are, legal or not."""

    spec: LlvmEvaluatorSpec

    def __call__(self) -> Evaluator:
        setattr(module, "print_pipeline", _as_it_is)  # noqa: B010
        return self.spec()
