"""The comparison at the end: fresh processes, rounds interleaved, noise is no gain."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from planish.core import (
    Candidate,
    Evaluation,
    EvaluatorSpec,
    ExecutorFactory,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    StageClock,
)
from planish.measure import Plan, Variant
from planish.measure.comparison import remeasure, remeasure_all
from planish.measure.executors import InlineExecutor, LocalExecutor
from planish.testing.synthetic import LoggingSpec, ScriptedEvaluator, action
from sandbox.processes import read_log

COST = Objective("cost")


@pytest.fixture
def inline(tmp_path: Path) -> ExecutorFactory:
    def start(spec: EvaluatorSpec, **_: object) -> InlineExecutor:
        return InlineExecutor(spec(), lock=tmp_path / "lock")

    return start


def _scripted(name: str, value: float, action_name: str = "measure") -> Variant:
    return Variant(name, action(action_name, value), ScriptedEvaluator)


BASE = _scripted("base", 2.0)


def test_the_verdicts(inline: ExecutorFactory) -> None:
    others = [_scripted("good", 1.0), _scripted("same", 2.0), _scripted("bad", 3.0)]
    paired = remeasure(BASE, others, COST, inline)
    assert [s.name for s in paired] == ["base", "good", "same", "bad"]
    assert [s.verdict for s in paired] == ["same", "better", "same", "worse"]
    assert [s.ratio.value for s in paired if s.ratio] == [1.0, 0.5, 1.0, 1.5]
    assert [s.median for s in paired] == [2.0, 1.0, 2.0, 3.0]


def test_more_may_be_better(inline: ExecutorFactory) -> None:
    (_, more) = remeasure(BASE, [_scripted("more", 3.0)], Objective("cost", "", "up"), inline)
    assert more.verdict == "better"


def test_all_values_and_samples_are_given(inline: ExecutorFactory) -> None:
    (base,) = remeasure(BASE, [], COST, inline, Plan(processes=2, rounds=4))
    assert base.values == ((2.0,) * 4,) * 2
    assert base.samples == (2.0,) * 2 * 2 * 4


class Drifting:
    """Gives the number of the call times the candidate's cost: everything slows down, a lot."""

    def __init__(self) -> None:
        self._calls = 0

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        outcome = ScriptedEvaluator().evaluate(candidate, clock)
        assert isinstance(outcome, Measured)
        self._calls += 1
        return Measured({"cost": outcome.values["cost"] * (1 + self._calls / 100)})


def test_a_gain_within_the_noise_is_none(inline: ExecutorFactory) -> None:
    def drifting(name: str, value: float) -> Variant:
        return Variant(name, action(value=value), make)

    make = Drifting
    plan = Plan(processes=5, rounds=6)
    (_, same, half) = remeasure(
        drifting("base", 1.0), [drifting("same", 1.0), drifting("half", 0.5)], COST, inline, plan
    )
    assert (same.verdict, half.verdict) == ("same", "better")


def test_a_failure_is_reported(inline: ExecutorFactory) -> None:
    (_, broken) = remeasure(BASE, [_scripted("broken", 1.0, "raise")], COST, inline)
    assert (broken.verdict, broken.ratio, broken.values) == ("failed", None, ())
    assert {failure.reason for failure in broken.failures} == {"ZeroDivisionError"}


def test_an_exact_objective_is_measured_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    base, good = (Variant(str(value), action(value=value), LoggingSpec(log)) for value in (2.0, 1.0))
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    paired = remeasure(base, [good], Objective("cost", exact=True), start)
    assert [(s.values, s.verdict) for s in paired] == [(((2.0,),), "same"), (((1.0,),), "better")]
    assert len(read_log(log)) == 2


@pytest.mark.parametrize(
    ("baseline", "objective", "plan", "message"),
    [
        (_scripted("base", 1.0, "raise"), COST, Plan(), "baseline failed: build: ZeroDivisionError"),
        (BASE, Objective("time_s"), Plan(), "time_s is missing; measured: cost"),
        (_scripted("base", -1.0), COST, Plan(), "negative: cost is -1"),
        (BASE, COST, Plan(processes=2, rounds=1), "show no noise"),
        (BASE, COST, Plan(processes=0), "show no noise"),
    ],
)
def test_what_cannot_be_compared(
    inline: ExecutorFactory, baseline: Variant, objective: Objective, plan: Plan, message: str
) -> None:
    with pytest.raises(PlanishError, match=message):
        remeasure(baseline, [], objective, inline, plan)


class Backwards(InlineExecutor):
    """An executor that answers in the reverse order, and notes what it is asked."""

    def __init__(self, batches: list[Sequence[Candidate]], spec: EvaluatorSpec, **_: object) -> None:
        super().__init__(spec())
        self._batches = batches

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        self._batches.append(candidates)
        super().submit(candidates, deadline)

    def results(self) -> Iterator[Evaluation]:
        yield from reversed(list(super().results()))


def test_rounds_are_interleaved_and_shuffled_by_seed() -> None:
    def batches(seed: int) -> list[Sequence[Candidate]]:
        found: list[Sequence[Candidate]] = []
        others = [_scripted("a", 1.0), _scripted("b", 3.0)]
        paired = remeasure(BASE, others, COST, partial(Backwards, found), Plan(3, 4, seed))
        assert [sampled.median for sampled in paired] == [2.0, 1.0, 3.0]
        return found

    here = batches(1)
    assert here == batches(1) != batches(2)
    rounds = [tuple(batch[i : i + 3]) for batch in here for i in range(0, len(batch), 3)]
    assert len(rounds) == 3 * 4
    assert all(len(set(turn)) == 3 for turn in rounds)
    assert len(set(rounds)) > 1


class Both:
    """Gives the cost, and its inverse."""

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        outcome = ScriptedEvaluator().evaluate(candidate, clock)
        assert isinstance(outcome, Measured)
        return Measured({"cost": outcome.values["cost"], "error": 1 / outcome.values["cost"]})


def test_one_batch_tells_of_all_objectives(inline: ExecutorFactory) -> None:
    base, good, broken = (
        Variant(name, action(how, value), Both)
        for name, how, value in (("base", "measure", 2.0), ("good", "measure", 1.0), ("broken", "raise", 1.0))
    )
    objectives = [COST, Objective("error", exact=True)]
    found = remeasure_all(base, [good, broken], objectives, inline, Plan(processes=2, rounds=2))
    assert [{n: s.verdict for n, s in paired.items()} for paired in found] == [
        {"cost": "same", "error": "same"},
        {"cost": "better", "error": "worse"},
        {"cost": "failed", "error": "failed"},
    ]
    assert found[1]["error"].values == ((1.0, 1.0), (1.0, 1.0))
    assert remeasure(base, [good, broken], COST, inline, Plan(processes=2, rounds=2)) == [
        paired["cost"] for paired in found
    ]


def test_processes_are_fresh_and_specs_are_their_own(tmp_path: Path) -> None:
    logs = [tmp_path / "a", tmp_path / "b"]
    a, b = (Variant(log.name, action(value=2.0), LoggingSpec(log)) for log in logs)
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    remeasure(a, [b], COST, start, Plan(processes=3, rounds=2))
    processes = [pid for pid, _ in read_log(logs[0])]
    assert len(processes) == 6
    assert len(set(processes)) == 3
    assert processes == [pid for pid, _ in read_log(logs[1])]
