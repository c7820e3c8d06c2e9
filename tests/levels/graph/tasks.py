"""Tasks of small models, whose candidates are evaluated in this process and timed three times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from levels.graph.models import convolutions, write
from planish.core import Candidate, Measured, Outcome, Task, evaluate_in_order
from planish.executors import InlineExecutor
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.task_setup import evaluator_spec_of
from planish.measure import Timing

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


def outcomes_of(task: Task[Any], *candidates: Candidate, remember: bool = True) -> list[Outcome]:
    """Evaluate candidates in their order."""
    executor = InlineExecutor(replace(evaluator_spec_of(task), timing=ONCE, remember=remember)())
    return [result.outcome for result in evaluate_in_order(executor, candidates) if result]


def measured(outcome: Outcome) -> Measured:
    """Require that an outcome is measured."""
    assert isinstance(outcome, Measured), outcome
    return outcome
