"""Tasks of small models, whose candidates are evaluated in this process and timed three times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from onnx import ModelProto

from levels.graph.models import convolutions, write
from planish.core import Candidate, EvaluatorSpec, Measured, Outcome, StageClock, Task, evaluate_in_order
from planish.levels.graph.evaluator import GraphEvaluator, GraphEvaluatorSpec
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.model_cache import Rewriter
from planish.levels.graph.passes import Selection, selection_of
from planish.levels.graph.rewriting import apply_pass
from planish.levels.graph.task_setup import evaluator_spec_of
from planish.measure import Timing
from planish.measure.executors import InlineExecutor
from planish.sandbox.shared_cache import shared_cache

ONCE = Timing(budget_s=0.0, block_s=0.0, fewest=3, most=3)


def task_of_file(file: Path, *objectives: str, **options: str) -> Task[Any]:
    """Make a task of one core."""
    level = GraphLevel()
    program = level.load(str(file), options)
    wanted = tuple(level.objectives[name] for name in objectives or ("latency",))
    return Task(program, level.target(program, 1), wanted, level.version)


def make(
    folder: Path, *objectives: str, shape: Sequence[int | str] = (1, 3, 8, 8), **options: str
) -> Task[Any]:
    """Make a task of two convolutions."""
    return task_of_file(write(convolutions(shape), folder / "net.onnx"), *objectives, **options)


Apply = Callable[..., ModelProto]
"""Applies one rewriting pass to a model."""


def evaluator_of(spec: GraphEvaluatorSpec, apply: Apply = apply_pass, **parts: Any) -> GraphEvaluator:
    """Make an evaluator in this process whose rewriting passes are applied by a function."""
    rewriter = Rewriter(spec.program, shared_cache(), Path(mkdtemp()), apply=apply)
    return GraphEvaluator(spec, rewriter, **parts)


def outcomes_of(
    task: Task[Any], *candidates: Candidate, remember: bool = True, apply: Apply = apply_pass, **parts: Any
) -> list[Outcome]:
    """Evaluate candidates in their order."""
    spec = replace(evaluator_spec_of(task), timing=ONCE, remember=remember)
    executor = InlineExecutor(evaluator_of(spec, apply, **parts))
    return [result.outcome for result in evaluate_in_order(executor, candidates) if result]


class FixedExecutor(InlineExecutor):
    """Answers for each selection what a function says, whatever evaluator it is given."""

    def __init__(self, values: Callable[[Selection], Mapping[str, float]]) -> None:
        self._values = values
        super().__init__(self)

    def serve(self, spec: EvaluatorSpec) -> None:
        del spec

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        del clock
        return Measured(self._values(selection_of(candidate)))
