"""What a search may spend."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from planish.levels.llvm.modules import budget
from planish.levels.llvm.modules.budget import EvaluationBudget
from planish.sandbox import Done, Watchdog


def test_waiting_costs_a_quarter_where_seconds_are_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    by_clock, by_processor = EvaluationBudget(2.0, None, 1), EvaluationBudget(2.0, None, 1, of_processor=True)
    later = time.monotonic() + 1000
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: later))
    assert by_clock.passed >= 1000
    assert 250 <= by_processor.passed < 500


def test_load_leaves_fewer_seconds_than_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets = [
        EvaluationBudget(2.0, limit, 1, of_processor=of)
        for limit, of in ((None, True), (3, True), (3, False))
    ]
    assert [each.had for each in budgets] == [2.0, 2.0, 2.0]
    later = time.monotonic() + 1000  # and hardly any of it on the processor
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: later))
    budgets[1].done = 3
    assert budgets[0].had < 1.0
    assert [each.had for each in budgets[1:]] == [2.0, 2.0]


def test_what_a_child_uses_counts_while_it_runs() -> None:
    found = EvaluationBudget(0.2, None, 1, of_processor=True)
    heard: list[Done[int, int]] = []

    def work(item: int, watchdog: Watchdog) -> int:
        watchdog.enter("work")
        while True:  # it never ends by itself
            item += 1

    found.spend(work, int, lambda: 1, heard.append)
    assert found.passed > 0.1
    assert heard == []


def test_evaluations_end_it_too() -> None:
    found = EvaluationBudget(1000.0, 3, 1)

    def hear(over: Done[int, int]) -> None:
        assert over.answer == 7
        found.done += 1

    def work(item: int, watchdog: Watchdog) -> int:
        watchdog.enter("work")
        return item

    found.spend(work, int, lambda: 7, hear)
    assert found.done == 3


def test_what_is_under_way_when_its_share_is_over_may_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [time.monotonic()]
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    found, heard = EvaluationBudget(1000.0, None, 1), list[Done[int, int]]()

    def item() -> int:
        clock[0] += 600
        return 7

    def work(item: int, watchdog: Watchdog) -> int:
        watchdog.enter("work")
        time.sleep(0.5)  # longer than it is waited for at a time
        return item

    found.spend(work, int, item, heard.append, 0.5)
    assert [over.answer for over in heard] == [7]
