"""The level, with evaluators whose clocks say what they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planish.core import Candidate, Evaluator, EvaluatorSpec, Measured, Outcome, StageClock, Task
from planish.levels.llvm.function_steps import FunctionPasses
from planish.levels.llvm.hot.lists import first_lists, pipeline
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.program import IRProgram
from planish.measure.executors import InlineExecutor

SECOND = pipeline(list(first_lists())[1])
Times = Callable[[Candidate, bool], float]
"""A candidate's seconds, in the search or at its end."""


@dataclass(frozen=True)
class Clocked:
    """Makes evaluators whose clocks say what they are told; in this process alone.

    Args:
        times: seconds.
        final: whether the search is over.
        function: in which nine tenths of the time are spent.
    """

    times: Times
    final: bool
    function: str

    def __call__(self) -> Evaluator:
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        del clock
        apart = any(isinstance(step, FunctionPasses) for step in candidate.steps)
        parts = {} if apart else {self.function: 0.9, "(libraries, the system)": 0.1}
        return Measured({"time_s": self.times(candidate, self.final)}, parts=parts)


class ClockedLevel(LlvmLevel):
    """The level, whose evaluators have such clocks.

    Args:
        times: seconds.
        function: in which nine tenths of the time are spent.
    """

    def __init__(self, times: Times, function: str = "busy") -> None:
        self._times, self._function = times, function

    def evaluator(self, task: Task[IRProgram], *, final: bool = False) -> Any:
        del task
        return Clocked(self._times, final, self._function)

    def analyzer(self, task: Task[IRProgram]) -> Any:
        del task


def inline(spec: EvaluatorSpec, /, *, workers: int = 1) -> InlineExecutor:
    """Start an executor in this process."""
    del workers
    return InlineExecutor(spec())


def by_clock(second: float, at_the_end: float | None = None) -> Times:
    """Return times by which the second list that is tried takes another time than all else."""

    def seconds(candidate: Candidate, final: bool) -> float:
        is_second = any(isinstance(s, FunctionPasses) and s.pipeline == SECOND for s in candidate.steps)
        own = at_the_end if final and at_the_end else second
        return own if is_second else 1.0

    return seconds
