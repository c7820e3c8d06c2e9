"""What is kept at the end of a run is verified once more; what fails gives way to the next best."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_executors import SameProcessExecutor
from levels.loops.mutants import mutants
from planish.core import Candidate, Target, Task
from planish.levels.loops.backends import kernel_of, schedule_steps
from planish.levels.loops.evaluator import LoopsEvaluator
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsEvaluatorSpec, LoopsLevel
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.workloads import matmul
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.recorder import Progress, Silent
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings


class Breaking(Silent):
    """Names what the generator makes wrong kernels of, once the search is over.

    Args:
        everything: all of it, or only what was best in the search.
    """

    def __init__(self, *, everything: bool) -> None:
        self._everything = everything
        self.best: Candidate | None = None

    def ending(self, progress: Progress, what: str) -> None:
        del what
        assert progress.best is not None
        self.best = progress.best.candidate

    def breaks(self, candidate: Candidate) -> bool:
        return self.best is not None and (self._everything or schedule_steps(candidate) == self.best)


@dataclass(frozen=True)
class BreakingSpec(LoopsEvaluatorSpec):
    """Makes an evaluator with a generator that makes wrong kernels."""

    listener: Breaking = field(default_factory=lambda: Breaking(everything=True))

    def __call__(self) -> LoopsEvaluator:
        def build(program: Program, candidate: Candidate, target: Target, tree: LoopTree) -> Kernel:
            wrong = dict(mutants(tree))["iterations repeated"]
            return kernel_of(program, candidate, target, wrong if self.listener.breaks(candidate) else tree)

        return LoopsEvaluator(self.program, self.target, final=self.final, build=build)


class BreakingLevel(LoopsLevel):
    def __init__(self, listener: Breaking) -> None:
        self._listener = listener

    def evaluator(self, task: Task[Program], *, final: bool = False) -> LoopsEvaluatorSpec:
        return BreakingSpec(task.program, task.target, final, self._listener)


def tuned(folder: Path, listener: Breaking) -> Result:
    settings = Settings(workers=1, searcher="random", space="template")
    budget, program = Budget(trials=6), matmul(24, 24, 24)
    with open_store(folder / "a.db") as store:
        return tune_program(
            BreakingLevel(listener),
            program,
            budget=budget,
            settings=settings,
            store=store,
            listener=listener,
            start=SameProcessExecutor,
        )


def test_the_next_best_takes_the_place_of_a_winner_that_fails(tmp_path: Path) -> None:
    listener = Breaking(everything=False)
    result = tuned(tmp_path, listener)
    assert result.best.candidate == listener.best
    kept: list[Any] = [schedule_steps(member.candidate) for member in result.finalists]
    assert kept
    assert listener.best not in kept
    assert result.candidate != listener.best
    assert result.comparison is not None
    assert result.comparison.unmeasured
    for index, failed in enumerate(result.comparison.unmeasured, len(kept) + 1):
        assert schedule_steps(failed.candidate) == listener.best
        assert (failed.name, failed.status_text) == (f"#{index}", "failed: verify: wrong answer")


def test_where_all_fail_the_result_is_the_baseline(tmp_path: Path) -> None:
    result = tuned(tmp_path, Breaking(everything=True))
    assert result.candidate == LoopsLevel().baseline(result.task)
