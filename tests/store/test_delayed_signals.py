"""Ctrl-C at any moment leaves the store whole and usable."""

import random
import signal
import threading
from collections.abc import Generator
from typing import Any

import pytest

from planish.store import open_store
from planish.store.session import uninterrupted
from planish.testing.stored import STEPS, make_trial
from planish.testing.stores import begin


@pytest.fixture
def alarm() -> Generator[None]:
    """Let the alarm clock press Ctrl-C."""
    before = signal.signal(signal.SIGALRM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_a_run_that_is_interrupted_while_it_writes_goes_on(place: str) -> None:
    moments = random.Random(2)
    with open_store(place) as store:
        for _ in range(40):
            run_id, told = begin(store), 0
            try:
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(0.0005, 0.004))
                while True:
                    store.add_trials(run_id, [make_trial(told)])
                    told += 1
            except KeyboardInterrupt:
                pass
            stored = store.run(run_id).trials
            assert stored in (told, told + 1)
            store.add_trials(run_id, [make_trial(stored)])
            assert store.run_trials(run_id, STEPS) == [make_trial(i) for i in range(stored + 1)]
            store.finish_run(run_id)


def _pressed(times: int, reached: list[str]) -> None:
    with uninterrupted():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        reached.append("the end")


@pytest.mark.parametrize(("times", "expected"), [(1, ["the end"]), (2, [])])
def test_the_first_ctrl_c_waits_and_the_second_does_not(times: int, expected: list[str]) -> None:
    reached: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        _pressed(times, reached)
    assert reached == expected


def test_what_handled_ctrl_c_before_handles_it_after() -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: calls.append(number))
    try:
        with uninterrupted(), uninterrupted():
            signal.raise_signal(signal.SIGINT)
            assert calls == []
        assert calls == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_comes_while_handlers_are_put_back_costs_no_later_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    put = signal.signal

    def interrupted(number: int, handler: Any) -> Any:
        found = put(number, handler)
        if number == signal.SIGINT and handler is signal.default_int_handler:
            raise KeyboardInterrupt
        return found

    before = put(signal.SIGTERM, lambda number, _: calls.append(number))
    try:
        with pytest.raises(KeyboardInterrupt), uninterrupted():
            monkeypatch.setattr(signal, "signal", interrupted)
        monkeypatch.undo()
        with uninterrupted():
            pass
        signal.raise_signal(signal.SIGTERM)
        assert calls == [signal.SIGTERM]
    finally:
        put(signal.SIGTERM, before)


def test_other_threads_need_no_care() -> None:
    done: list[bool] = []

    def work() -> None:
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
