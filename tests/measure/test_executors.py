"""Every executor passes the suite that plug-ins are held to."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from planish.core import Candidate, Evaluation, EvaluatorSpec, Executor, Lost, Measured, Outcome, evaluate
from planish.measure.executors import ForkedExecutor, InlineExecutor, LocalExecutor
from planish.sandbox import Limits
from planish.testing.executors import ExecutorConformance, outcomes_of
from planish.testing.recorded import ReplayExecutor
from planish.testing.synthetic import ScriptedEvaluator, action

LIMITS = Limits(build=0.5, worker=10.0, memory_bytes=512 << 20)


class TestLocalExecutor(ExecutorConformance):
    @pytest.fixture(autouse=True)
    def _settings(self, tmp_path: Path) -> None:
        self.lock = tmp_path / "lock"

    def executor(self, spec: EvaluatorSpec) -> Executor:
        return LocalExecutor(spec, workers=2, limits=LIMITS, lock=self.lock)


class TestForkedExecutor(TestLocalExecutor):
    def executor(self, spec: EvaluatorSpec) -> Executor:
        return ForkedExecutor(spec, workers=2, limits=LIMITS, lock=self.lock)


class Recorded(ReplayExecutor):
    """Replays what is recorded just before, by an evaluator in this process."""

    def __init__(self, spec: EvaluatorSpec) -> None:
        self._outcomes: dict[str, Outcome] = {}
        self._spent: dict[str, Mapping[str, float]] = {}
        super().__init__(self._outcomes, self._spent)
        self._recorder = InlineExecutor(spec())

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        super().submit(candidates, deadline)
        for result in evaluate(self._recorder, candidates):
            self._outcomes[result.candidate.hash] = result.outcome
            self._spent[result.candidate.hash] = result.seconds


class TestReplayExecutor(ExecutorConformance):
    isolates = False

    def executor(self, spec: EvaluatorSpec) -> Executor:
        return Recorded(spec)


class TestInlineExecutor(ExecutorConformance):
    isolates = False

    def executor(self, spec: EvaluatorSpec) -> Executor:
        return InlineExecutor(spec())


class Starved(InlineExecutor):
    """Loses the first evaluations, as on a machine that is busy with other work."""

    left = 3

    def results(self) -> Iterator[Evaluation]:
        for result in super().results():
            lost = Lost("build", "starved", "its worker was starved")
            yield replace(result, outcome=lost) if self.left else result
            self.left = max(0, self.left - 1)


def test_the_suite_evaluates_again_what_a_busy_machine_had_no_time_for() -> None:
    batch = [action(value=1.0), action(value=2.0)]
    outcomes = outcomes_of(Starved(ScriptedEvaluator()), batch)
    assert outcomes == [Measured({"cost": value}, {"cost": (value, value)}) for value in (1.0, 2.0)]
