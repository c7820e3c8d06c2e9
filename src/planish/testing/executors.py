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
from planish.testing.acting import Act, Actor, Mortal, act


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
    def actors(self) -> Iterator[Executor]:
        """An executor whose workers do what candidates say."""
        executor = self.executor(Actor)
        yield executor
        executor.close()

    def test_every_candidate_has_one_result(self, actors: Executor) -> None:
        batch = [act(value=value) for value in range(50)]
        assert Counter(result.candidate for result in evaluate(actors, batch)) == Counter(batch)

    def test_a_candidate_that_is_submitted_twice_has_two_results(self, actors: Executor) -> None:
        batch = [act(value=1.0), act(value=2.0), act(value=1.0)]
        assert Counter(result.candidate for result in evaluate(actors, batch)) == Counter(batch)

    def test_a_result_names_its_candidate(self, actors: Executor) -> None:
        batch = [act(value=value) for value in (3.0, 1.0, 2.0)]
        found = {result.candidate: result.outcome for result in evaluate(actors, batch)}
        assert found == dict(zip(batch, map(_cost, (3.0, 1.0, 2.0)), strict=True))

    def test_a_batch_is_evaluated_in_order(self, actors: Executor) -> None:
        values = [3.0, 1.0, 2.0, 1.0]
        outcomes = self._outcomes(actors, [act(value=value) for value in values])
        assert outcomes == [Measured({"cost": value}, {"cost": (value, value)}) for value in values]

    def test_the_order_of_a_batch_does_not_matter(self, actors: Executor) -> None:
        batch = [act("fail" if value % 5 == 0 else "measure", value) for value in range(40)]
        shuffled = random.Random(1).sample(batch, len(batch))
        here = dict(zip(batch, self._outcomes(actors, batch), strict=True))
        there = dict(zip(shuffled, self._outcomes(actors, shuffled), strict=True))
        assert here == there

    def test_an_empty_batch_has_no_results(self, actors: Executor) -> None:
        assert list(evaluate(actors, [])) == []

    def test_batches_follow_each_other(self, actors: Executor) -> None:
        for value in range(5):
            assert self._outcomes(actors, [act(value=value)]) == [_cost(value)]

    def test_more_may_be_submitted_while_results_come(self, actors: Executor) -> None:
        assert actors.capacity >= 1
        actors.submit([act(value=0.0), act(value=1.0)])
        found: dict[Candidate, Outcome] = {}
        for result in actors.results():
            found[result.candidate] = result.outcome
            if len(found) <= 5:
                actors.submit([act(value=float(len(found) + 1))])
        assert found == {act(value=float(value)): _cost(float(value)) for value in range(7)}

    def test_results_may_be_left_and_taken_later(self, actors: Executor) -> None:
        actors.submit([act(value=value) for value in range(9)])
        first = next(iter(actors.results()))
        actors.submit([act(value=9)])
        found = [first.candidate, *(result.candidate for result in actors.results())]
        assert Counter(found) == Counter(act(value=value) for value in range(10))

    def test_what_is_cancelled_has_no_result(self, actors: Executor) -> None:
        actors.submit([act(value=value) for value in range(9)])
        actors.cancel()
        assert list(actors.results()) == []
        assert self._outcomes(actors, [act(value=7.0)]) == [_cost(7.0)]

    def test_nothing_ends_after_the_deadline(self, actors: Executor) -> None:
        actors.submit([act(value=value) for value in range(9)], time.monotonic() - 1)
        assert list(actors.results()) == []
        assert self._outcomes(actors, [act(value=7.0)]) == [_cost(7.0)]

    def test_another_evaluator_may_be_served(self, actors: Executor) -> None:
        self._outcomes(actors, [act()])
        actors.serve(Actor)
        (answer,) = evaluate(actors, [act(value=3.0)])
        assert answer.outcome == _cost(3.0)
        assert answer.host in (platform.node(), "")

    def test_another_evaluator_is_not_served_while_something_is_under_way(self, actors: Executor) -> None:
        actors.submit([act(value=1.0)])
        with pytest.raises(PlanishError, match="under way"):
            actors.serve(Actor)
        assert [answer.outcome for answer in actors.results()] == [_cost(1.0)]
        actors.serve(Actor)

    def test_a_closed_executor_takes_nothing(self, actors: Executor) -> None:
        actors.close()
        with pytest.raises(PlanishError, match="closed"):
            actors.submit([act()])
        with pytest.raises(PlanishError, match="closed"):
            actors.serve(Actor)

    def test_seconds_are_by_stage(self, actors: Executor) -> None:
        steps = (Act(stage="build"), Act("sleep", 0.01, "verify"))
        (answer,) = evaluate(actors, [Candidate(steps)])
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
    def test_a_failure_is_an_answer(self, actors: Executor, name: str, failure: Failed) -> None:
        first, outcome, last = self._outcomes(actors, [act(), act(name), act()])
        _assert_failed(outcome, failure)
        assert first == last == _cost(1.0)

    @pytest.mark.parametrize(
        ("name", "value", "failure"),
        [
            ("crash", 1, Failed("build", "crash", "SIGSEGV")),
            ("leave", 3, Failed("build", "crash", "3")),
            ("spin", 1, Failed("build", "timeout", "0.5 s")),
            ("spin in C", 1, Failed("build", "timeout", "0.5 s")),
            ("eat", 1000, Failed("build", "out of memory")),
        ],
    )
    def test_a_disaster_is_an_answer(
        self, actors: Executor, name: str, value: float, failure: Failed
    ) -> None:
        self._needs_isolation()
        outcomes = self._outcomes(actors, [act(), act(name, value), *[act(value=2.0)] * 5])
        _assert_failed(outcomes[1], failure)
        assert [outcomes[0], *outcomes[2:]] == [_cost(1.0), *[_cost(2.0)] * 5]

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
    def test_a_candidate_whose_worker_is_killed_is_evaluated_again(
        self, tmp_path: Path, number: signal.Signals
    ) -> None:
        self._needs_isolation()
        executor = self.executor(Mortal(tmp_path / "age", 2, number))
        assert self._outcomes(executor, [act(value=value) for value in range(9)]) == [
            _cost(value) for value in range(9)
        ]
        executor.close()

    def test_who_is_killed_each_time_is_lost_and_costs_the_others_nothing(self, actors: Executor) -> None:
        self._needs_isolation()
        killed = act("signal", signal.SIGKILL)
        first, lost, *others = self._outcomes(actors, [act(), killed, *[act(value=2.0)] * 5])
        assert isinstance(lost, Lost)
        assert (lost.stage, lost.reason) == ("build", "killed")
        assert [first, *others] == [_cost(1.0), *[_cost(2.0)] * 5]

    def test_an_evaluator_may_say_that_an_evaluation_was_lost(self, actors: Executor) -> None:
        lost, other = self._outcomes(actors, [act("lose"), act()])
        assert lost == Lost("run", "killed", "its program was killed")
        assert other == _cost(1.0)

    def test_one_disaster_after_another(self, actors: Executor) -> None:
        self._needs_isolation()
        outcomes = self._outcomes(actors, [act("leave", 3)] * 4 + [act()])
        assert [type(outcome) for outcome in outcomes] == [Failed] * 4 + [Measured]

    def test_what_is_printed_does_no_harm(self, actors: Executor) -> None:
        self._needs_isolation()
        assert self._outcomes(actors, [act("spew", 1.0), act()]) == [_cost(1.0), _cost(1.0)]

    def test_a_candidate_that_forks_is_answered_once(self, actors: Executor) -> None:
        self._needs_isolation()
        batch = [act("split"), *(act(value=value) for value in range(20))] * 2
        outcomes = self._outcomes(actors, batch)
        assert outcomes == [_cost(1.0), *(_cost(value) for value in range(20))] * 2

    def test_a_batch_may_be_left(self, actors: Executor) -> None:
        answers = iter(evaluate(actors, [act(value=value) for value in range(40)]))
        next(answers)
        del answers
        assert self._outcomes(actors, [act(value=7.0)]) == [_cost(7.0)]

    def test_an_evaluator_that_cannot_be_made_is_an_error(self) -> None:
        self._needs_isolation()
        executor = self.executor(Unmakeable(LookupError("no such processor")))
        for _ in range(2):
            with pytest.raises(PlanishError, match="no such processor"):
                list(evaluate(executor, [act()]))
        executor.close()

    def test_close_is_harmless_when_repeated(self) -> None:
        executor = self.executor(Actor)
        list(evaluate(executor, [act()]))
        executor.close()
        executor.close()

    def _needs_isolation(self) -> None:
        if not self.isolates:
            pytest.skip("this executor does not isolate")

    def _outcomes(self, executor: Executor, batch: Sequence[Candidate]) -> list[Outcome]:
        return [result.outcome for result in evaluate_in_order(executor, batch) if result]


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
