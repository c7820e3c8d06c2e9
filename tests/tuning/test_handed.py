"""Whatever evaluates is handed what starts its executors, and starts nothing by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from planish.core import (
    NO_ANALYSIS,
    Analyze,
    Candidate,
    CrossCheck,
    EvaluatorSpec,
    Executor,
    ExecutorFactory,
    Measured,
    Outcome,
    Task,
    evaluate,
)
from planish.measure.executors import InlineExecutor
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.batch import Part, tune_parts
from planish.tuning.compare import SearchConfig, compare_results, compare_searches
from planish.tuning.settings import Budget, Settings
from tuning.tradeoff_level import Full, Measuring, Text

pytestmark = pytest.mark.usefixtures("no_process")

BUDGET = Budget(trials=20)


class Asked(Measuring):
    """What a level has evaluated besides its objectives."""


class AskedFirst(Asked):
    """The first of two such."""


@dataclass
class Asking(Full):
    """A level that has its cross-checks, scores and analyses evaluated."""

    def cross_check(
        self, task: Task, candidates: Sequence[Candidate], start: ExecutorFactory
    ) -> Sequence[CrossCheck]:
        del task
        with start(AskedFirst()) as executor:
            return [CrossCheck(isinstance(each.outcome, Measured)) for each in evaluate(executor, candidates)]

    def scores(
        self, task: Task, candidates: Sequence[Candidate], start: ExecutorFactory
    ) -> Sequence[Outcome]:
        del task
        with start(Asked()) as executor:
            return [each.outcome for each in evaluate(executor, candidates)]

    def analyzer(self, task: Task) -> Analyze:
        del task
        return self._analyze

    def _analyze(self, candidate: Candidate, executor: Executor) -> Mapping[str, Any]:
        (answer,) = evaluate(executor, [candidate])
        assert isinstance(answer.outcome, Measured)
        return {"values": [*answer.outcome.values]}

    def describe(
        self, task: Task, candidate: Candidate, analysis: Mapping[str, Any] = NO_ANALYSIS
    ) -> Mapping[str, str]:
        del task, candidate
        return {"analysis": str(analysis)}


@dataclass
class Starter:
    """Starts executors in this process.

    Attributes:
        started: the kind of evaluators of each, and how many workers it was to have.
        open: those that are not closed.
    """

    started: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    open: list[Noting] = field(default_factory=list["Noting"])

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> AbstractContextManager[Executor]:
        self.started.append((type(spec).__name__, workers))
        self.open.append(Noting(spec, self.open))
        return self.open[-1]


class Noting(InlineExecutor):
    def __init__(self, spec: EvaluatorSpec, others: list[Noting]) -> None:
        super().__init__(spec())
        self._others = others

    def close(self) -> None:
        super().close()
        self._others.remove(self)


def test_a_whole_run_evaluates_by_what_it_is_handed(tmp_path: Path) -> None:
    start = Starter()
    settings = Settings(objectives=("time", "error"), searcher="random", workers=1)
    with open_store(tmp_path / "a.db") as store:
        found = tune_program(Asking(), Text(), budget=BUDGET, settings=settings, store=store, start=start)
    assert found.comparison is not None
    assert found.comparison.secondary_baseline is not None
    assert found.finalist is not None
    assert found.finalist.scores
    assert found.finalist.cross_check.agrees
    assert found.finalist.analysis
    assert any(each.main_effects for each in found.finalists)
    search, minimizing, *comparing, cross_checks, scores, reference, effects, analyses = start.started
    assert [search, minimizing, effects, analyses] == [("Measuring", 1)] * 4
    assert {*comparing, reference} == {("MultiEvaluatorSpec", 1)}
    assert [cross_checks, scores] == [("AskedFirst", 1), ("Asked", 1)]
    assert start.open == []


def test_who_searches_may_be_handed_in_and_the_others_are_started(tmp_path: Path) -> None:
    start, settings = Starter(), Settings(objectives=("time",), searcher="random", workers=1)
    with InlineExecutor(Measuring(noise=0.0)()) as executor, open_store(tmp_path / "a.db") as store:
        tune_program(
            Asking(),
            Text(),
            budget=BUDGET,
            settings=settings,
            store=store,
            executor=executor,
            start=start,
        )
    assert start.started[0] == ("MultiEvaluatorSpec", 1)
    assert start.open == []


def test_many_programs_share_one_executor(tmp_path: Path) -> None:
    start, settings = Starter(), Settings(objectives=("error",), searcher="random", workers=1)
    programs = {"one": Text("one"), "two": Text("two")}
    found = tune_parts(
        Full(), programs, budget=BUDGET, settings=settings, store=tmp_path / "a.db", start=start
    )
    assert all(isinstance(part, Part) for part in found)
    assert [kind for kind, _ in start.started] == ["Measuring", "MultiEvaluatorSpec", "MultiEvaluatorSpec"]
    assert start.open == []


def test_searchers_and_winners_are_compared_by_what_is_handed_in(tmp_path: Path) -> None:
    start, settings = Starter(), Settings(searcher="random", workers=1)
    config = SearchConfig("one", "C[m] += A[m,k] * B[k]", settings, {"size": "m=8,k=8"})
    with open_store(tmp_path / "a.db") as store:
        (curves,) = compare_searches([config], trials=2, seeds=2, store=store, start=start)
        kinds = [kind for kind, _ in start.started]
        assert len(kinds) == 2
        winners = compare_results(curves.runs, store=store, processes=5, start=start)
    assert [each.gain is not None for each in winners] == [True, True]
    assert {kind for kind, _ in start.started[2:]} == {"MultiEvaluatorSpec"}
    assert start.open == []
