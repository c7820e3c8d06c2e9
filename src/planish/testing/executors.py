"""Conformance suite of executors: subclass `ExecutorConformance` in a test module."""

import platform
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from planish.core import (
    Candidate,
    Evaluator,
    EvaluatorSpec,
    Executor,
    Failed,
    Lost,
    Measured,
    Outcome,
    PlanishError,
    evaluate,
    evaluate_in_order,
)
from planish.testing.synthetic import Action, KilledEvaluator, ScriptedEvaluator, action


class ExecutorConformance:
    """Tests of an executor, with evaluators that fail in all the ways that candidates do.

    A subclass named `Test...` overrides `executor`, and the attributes where the executor promises less.

    Attributes:
        isolates: whether a crash, a hang, or too much memory of the evaluated code is survived.
    """

    isolates: ClassVar[bool] = True

    def executor(self, spec: EvaluatorSpec) -> Executor:
        """Start an executor whose limits are half a second for "build" and 512 MiB of memory."""
        raise NotImplementedError

    @pytest.fixture
    def scripted(self) -> Iterator[Executor]:
        """Return an executor of scripted evaluators."""
        executor = self.executor(ScriptedEvaluator)
        yield executor
        executor.close()

    def test_every_candidate_has_one_result(self, scripted: Executor) -> None:
        batch = [action(value=value) for value in range(50)]
        assert Counter(result.candidate for result in evaluate(scripted, batch)) == Counter(batch)

    def test_a_candidate_that_is_submitted_twice_has_two_results(self, scripted: Executor) -> None:
        batch = [action(value=1.0), action(value=2.0), action(value=1.0)]
        assert Counter(result.candidate for result in evaluate(scripted, batch)) == Counter(batch)

    def test_a_result_names_its_candidate(self, scripted: Executor) -> None:
        batch = [action(value=value) for value in (3.0, 1.0, 2.0)]
        found = {result.candidate: result.outcome for result in evaluate(scripted, batch)}
        assert found == dict(zip(batch, map(_cost, (3.0, 1.0, 2.0)), strict=True))

    def test_a_batch_is_evaluated_in_order(self, scripted: Executor) -> None:
        values = [3.0, 1.0, 2.0, 1.0]
        outcomes = self._outcomes(scripted, [action(value=value) for value in values])
        assert outcomes == [Measured({"cost": value}, {"cost": (value, value)}) for value in values]

    def test_the_order_of_a_batch_does_not_matter(self, scripted: Executor) -> None:
        batch = [action("fail" if value % 5 == 0 else "measure", value) for value in range(40)]
        shuffled = random.Random(1).sample(batch, len(batch))
        here = dict(zip(batch, self._outcomes(scripted, batch), strict=True))
        there = dict(zip(shuffled, self._outcomes(scripted, shuffled), strict=True))
        assert here == there

    def test_an_empty_batch_has_no_results(self, scripted: Executor) -> None:
        assert list(evaluate(scripted, [])) == []

    def test_batches_follow_each_other(self, scripted: Executor) -> None:
        for value in range(5):
            assert self._outcomes(scripted, [action(value=value)]) == [_cost(value)]

    def test_more_may_be_submitted_while_results_come(self, scripted: Executor) -> None:
        assert scripted.capacity >= 1
        scripted.submit([action(value=0.0), action(value=1.0)])
        found: dict[Candidate, Outcome] = {}
        for result in scripted.results():
            found[result.candidate] = result.outcome
            if len(found) <= 5:
                scripted.submit([action(value=float(len(found) + 1))])
        assert found == {action(value=float(value)): _cost(float(value)) for value in range(7)}

    def test_results_may_be_left_and_taken_later(self, scripted: Executor) -> None:
        scripted.submit([action(value=value) for value in range(9)])
        first = next(iter(scripted.results()))
        scripted.submit([action(value=9)])
        found = [first.candidate, *(result.candidate for result in scripted.results())]
        assert Counter(found) == Counter(action(value=value) for value in range(10))

    def test_what_is_canceled_has_no_result(self, scripted: Executor) -> None:
        scripted.submit([action(value=value) for value in range(9)])
        scripted.cancel()
        assert list(scripted.results()) == []
        assert self._outcomes(scripted, [action(value=7.0)]) == [_cost(7.0)]

    def test_nothing_ends_after_the_deadline(self, scripted: Executor) -> None:
        scripted.submit([action(value=value) for value in range(9)], time.monotonic() - 1)
        assert list(scripted.results()) == []
        assert self._outcomes(scripted, [action(value=7.0)]) == [_cost(7.0)]

    def test_another_evaluator_may_be_served(self, scripted: Executor) -> None:
        self._outcomes(scripted, [action()])
        scripted.serve(ScriptedEvaluator)
        (answer,) = evaluate(scripted, [action(value=3.0)])
        assert answer.outcome == _cost(3.0)
        assert answer.host in (platform.node(), "")

    def test_another_evaluator_is_not_served_while_something_is_under_way(self, scripted: Executor) -> None:
        scripted.submit([action(value=1.0)])
        with pytest.raises(PlanishError, match="under way"):
            scripted.serve(ScriptedEvaluator)
        assert [answer.outcome for answer in scripted.results()] == [_cost(1.0)]
        scripted.serve(ScriptedEvaluator)

    def test_a_closed_executor_takes_nothing(self, scripted: Executor) -> None:
        scripted.close()
        with pytest.raises(PlanishError, match="closed"):
            scripted.submit([action()])
        with pytest.raises(PlanishError, match="closed"):
            scripted.serve(ScriptedEvaluator)

    def test_seconds_are_by_stage(self, scripted: Executor) -> None:
        steps = (Action(stage="build"), Action("sleep", 0.01, "verify"))
        (answer,) = evaluate(scripted, [Candidate(steps)])
        assert {"build", "verify", "worker"} <= set(answer.seconds)
        assert answer.seconds["verify"] >= 0.01

    @pytest.mark.parametrize(
        ("name", "failure"),
        [
            ("fail", Failed("verify", "wrong answer", "off by one")),
            ("raise", Failed("build", "ZeroDivisionError", "as asked")),
            ("illegal", Failed("build", "illegal step", "axis 'm' is split already")),
            ("quit", Failed("build", "SystemExit", "1")),
            ("nothing", Failed("worker", "no outcome", "None")),
            ("true", Failed("worker", "no outcome", "True")),
            ("stage", Failed("worker", "no outcome", "nowhere")),
            ("nan", Failed("run", "not finite", "cost is nan")),
            ("infinite", Failed("run", "not finite", "cost is inf")),
            ("huge", Failed("run", "not finite", "cost is 1000")),
            ("yes", Failed("run", "not a number", "cost is True")),
            ("text", Failed("run", "not a number", "cost is '1'")),
            ("none", Failed("run", "not a number", "cost is None")),
            ("samples", Failed("run", "not finite", "cost is nan")),
        ],
    )
    def test_a_failure_is_an_answer(self, scripted: Executor, name: str, failure: Failed) -> None:
        first, outcome, last = self._outcomes(scripted, [action(), action(name), action()])
        _assert_failed(outcome, failure)
        assert first == last == _cost(1.0)

    @pytest.mark.parametrize(
        ("name", "value", "failure"),
        [
            ("crash", 1, Failed("build", "crash", "SIGSEGV")),
            ("leave", 3, Failed("build", "crash", "3")),
            ("spin", 1, Failed("build", "timeout", "0.5 s")),
            ("spin in C", 1, Failed("build", "timeout", "0.5 s")),
            ("allocate", 1000, Failed("build", "out of memory")),
        ],
    )
    def test_a_disaster_is_an_answer(
        self, scripted: Executor, name: str, value: float, failure: Failed
    ) -> None:
        self._needs_isolation()
        outcomes = self._outcomes(scripted, [action(), action(name, value), *[action(value=2.0)] * 5])
        _assert_failed(outcomes[1], failure)
        assert [outcomes[0], *outcomes[2:]] == [_cost(1.0), *[_cost(2.0)] * 5]

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
    def test_a_candidate_whose_worker_is_killed_is_evaluated_again(
        self, tmp_path: Path, number: signal.Signals
    ) -> None:
        self._needs_isolation()
        executor = self.executor(KilledEvaluator(tmp_path / "count", 2, number))
        assert self._outcomes(executor, [action(value=value) for value in range(9)]) == [
            _cost(value) for value in range(9)
        ]
        executor.close()

    def test_who_is_killed_each_time_is_lost_and_costs_the_others_nothing(self, scripted: Executor) -> None:
        self._needs_isolation()
        killed = action("signal", signal.SIGKILL)
        first, lost, *others = self._outcomes(scripted, [action(), killed, *[action(value=2.0)] * 5])
        assert isinstance(lost, Lost)
        assert (lost.stage, lost.reason) == ("build", "killed")
        assert [first, *others] == [_cost(1.0), *[_cost(2.0)] * 5]

    def test_an_evaluator_may_say_that_an_evaluation_was_lost(self, scripted: Executor) -> None:
        lost, other = self._outcomes(scripted, [action("lose"), action()])
        assert lost == Lost("run", "killed", "its program was killed")
        assert other == _cost(1.0)

    def test_one_disaster_after_another(self, scripted: Executor) -> None:
        self._needs_isolation()
        outcomes = self._outcomes(scripted, [action("leave", 3)] * 4 + [action()])
        assert [type(outcome) for outcome in outcomes] == [Failed] * 4 + [Measured]

    def test_what_is_printed_does_no_harm(self, scripted: Executor) -> None:
        self._needs_isolation()
        assert self._outcomes(scripted, [action("print", 1.0), action()]) == [_cost(1.0), _cost(1.0)]

    def test_a_candidate_that_forks_is_answered_once(self, scripted: Executor) -> None:
        self._needs_isolation()
        batch = [action("split"), *(action(value=value) for value in range(20))] * 2
        outcomes = self._outcomes(scripted, batch)
        assert outcomes == [_cost(1.0), *(_cost(value) for value in range(20))] * 2

    def test_a_batch_may_be_left(self, scripted: Executor) -> None:
        answers = iter(evaluate(scripted, [action(value=value) for value in range(40)]))
        next(answers)
        del answers
        assert self._outcomes(scripted, [action(value=7.0)]) == [_cost(7.0)]

    def test_an_evaluator_that_cannot_be_made_is_an_error(self) -> None:
        self._needs_isolation()
        executor = self.executor(Unmakeable(LookupError("no such processor")))
        for _ in range(2):
            with pytest.raises(PlanishError, match="no such processor"):
                list(evaluate(executor, [action()]))
        executor.close()

    def test_close_is_harmless_when_repeated(self) -> None:
        executor = self.executor(ScriptedEvaluator)
        list(evaluate(executor, [action()]))
        executor.close()
        executor.close()

    def _needs_isolation(self) -> None:
        if not self.isolates:
            pytest.skip("this executor does not isolate")

    def _outcomes(self, executor: Executor, batch: Sequence[Candidate]) -> list[Outcome]:
        return outcomes_of(executor, batch)


_BUSY = 10
"""Evaluations of a candidate whose workers get no processor."""


def outcomes_of(executor: Executor, batch: Sequence[Candidate]) -> list[Outcome]:
    """Evaluate a batch and return the outcomes in its order.

    A worker that gets less than a tenth of a processor is lost, whatever its candidate does. On a busy
    machine that says nothing about the executor, and the candidate is evaluated again.
    """
    outcomes = [result.outcome for result in evaluate_in_order(executor, batch) if result]
    for _ in range(_BUSY):
        starved = [i for i, each in enumerate(outcomes) if _is_starved(each)]
        if not starved:
            break
        for i, result in zip(starved, evaluate_in_order(executor, [batch[i] for i in starved]), strict=True):
            if result:
                outcomes[i] = result.outcome
    return outcomes


def _is_starved(outcome: Outcome) -> bool:
    return isinstance(outcome, Lost) and outcome.reason == "starved"


@dataclass(frozen=True)
class Unmakeable:
    """A spec that fails.

    Args:
        error: what it raises.
    """

    error: Exception

    def __call__(self) -> Evaluator:
        raise self.error


def _cost(value: float) -> Measured:
    return Measured({"cost": value}, {"cost": (value, value)})


def _assert_failed(outcome: Outcome, expected: Failed) -> None:
    assert isinstance(outcome, Failed)
    assert (outcome.stage, outcome.reason) == (expected.stage, expected.reason)
    assert expected.detail in outcome.detail
