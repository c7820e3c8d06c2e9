"""Processes that write at the same time, are killed, or are interrupted."""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from planish.core import Candidate, StoreError
from planish.store import Store, open_store
from planish.store.session import uninterrupted
from planish.testing.stores import STEPS, begin, make_candidate, make_task, make_trial

WRITER = Path(__file__).with_name("writer.py")
ENDLESS = 10**9
GROUPS = (1, 16, 1)

Writer = subprocess.Popen[str]
Start = Callable[[str, int, int], Writer]


@pytest.fixture
def start() -> Generator[Start]:
    """Start writers that wait for a line; whatever happens, they end with the test."""
    writers: list[Writer] = []

    def start_one(location: str, count: int, group: int) -> Writer:
        command = [sys.executable, str(WRITER), location, str(count), str(group)]
        writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        writers.append(writer)
        return writer

    yield start_one
    for writer in writers:
        _kill(writer)


def _line(writer: Writer) -> str:
    assert writer.stdout is not None
    return writer.stdout.readline().strip()


def _go(writer: Writer) -> None:
    assert _line(writer) == "ready"
    assert writer.stdin is not None
    writer.stdin.write("go\n")
    writer.stdin.flush()


def _rest(writer: Writer) -> list[str]:
    """Wait for the end; return the lines not read yet."""
    assert writer.stdout is not None
    lines = [] if writer.stdout.closed else writer.stdout.read().split("\n")[:-1]
    writer.communicate()
    return lines


def _kill(writer: Writer) -> list[str]:
    writer.kill()
    return _rest(writer)


@pytest.mark.slow(after=1)
def test_processes_make_one_store_and_write_to_it_at_once(location: str, start: Start) -> None:
    writers = [start(location, 150, group) for group in (1, 1, 15)]
    for writer in writers:
        _go(writer)
    reported = [_rest(writer) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    with open_store(location, read_only=True) as store:
        assert {(run.id, run.status) for run in store.runs()} == {
            (lines[0], "finished") for lines in reported
        }
        for run in store.runs():
            assert store.run_trials(run.id, STEPS) == [make_trial(i) for i in range(150)]


@pytest.mark.slow(after=1)
def test_a_process_killed_while_writing_loses_no_trial_reported_as_stored(
    location: str, start: Start
) -> None:
    moments = random.Random(1)
    writers = [start(location, ENDLESS, group) for group in GROUPS]
    for writer, group in zip(writers, GROUPS, strict=True):
        _go(writer)
        run_id, first = _line(writer), _line(writer)
        time.sleep(moments.uniform(0, 0.06))
        reported = int([first, *_kill(writer)][-1])
        with open_store(location) as store:
            kept = store.run_trials(run_id, STEPS)
            assert kept == [make_trial(i) for i in range(len(kept))]
            assert len(kept) in (reported, reported + group)
            assert store.run(run_id).status == "interrupted"
            store.resume_run(run_id)
            store.add_trials(run_id, [make_trial(len(kept))])
            store.finish_run(run_id)


@pytest.mark.slow(after=1)
def test_a_process_killed_while_making_the_store_leaves_one_that_can_be_opened(
    location: str, start: Start
) -> None:
    moments = random.Random(5)
    for writer in [start(location, ENDLESS, 1) for _ in range(3)]:
        _go(writer)
        time.sleep(moments.uniform(0, 0.15))
        reported = _kill(writer)
        with open_store(location) as store:
            assert len(reported) < 2 or store.run(reported[0]).trials >= int(reported[-1])
            begin(store)


@pytest.mark.slow(after=1)
def test_a_run_of_a_living_process_is_refused_to_others(location: str, start: Start) -> None:
    writer = start(location, ENDLESS, 1)
    _go(writer)
    run_id, _ = _line(writer), _line(writer)
    with open_store(location) as store:
        assert store.run(run_id).status == "running"
        with pytest.raises(StoreError, match=f"writing to run {run_id}"):
            store.resume_run(run_id)
        assert store.trials(make_task().key, STEPS)


def test_a_run_is_refused_to_others_whatever_link_leads_to_the_store(tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "planish.db")
    with open_store(tmp_path / "planish.db") as store, open_store(link) as other:
        run_id = begin(store)
        assert other.run(run_id).status == "running"
        with pytest.raises(StoreError, match="another process is writing"):
            other.resume_run(run_id)


def test_a_killed_process_leaves_no_file_for_long(tmp_path: Path, start: Start) -> None:
    location = tmp_path / "planish.db"
    writer = start(str(location), ENDLESS, 1)
    _go(writer)
    run_id, _ = _line(writer), _line(writer)
    _kill(writer)
    assert (tmp_path / f"planish.db-run-{run_id}").exists()
    with open_store(location) as store:
        store.finish_run(begin(store))
    assert [path.name for path in tmp_path.iterdir()] == ["planish.db"]
    connection = sqlite3.connect(location)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


@pytest.fixture
def two(location: str) -> Generator[tuple[Store, Store]]:
    with open_store(location) as one, open_store(location) as other:
        yield one, other


def test_a_lease_is_of_one_run_until_it_ends(two: tuple[Store, Store]) -> None:
    one, other = two
    mine, theirs = begin(one), begin(other)
    five = [make_candidate(number) for number in range(5)]
    assert one.lease(mine, five, 3) == five[:3]
    assert other.lease(theirs, five, 5) == five[3:]
    assert one.lease(mine, five, 5) == five[:3]
    elsewhere = begin(other, make_task("round"))
    assert other.lease(elsewhere, five, 5) == five
    one.finish_run(mine)
    assert other.lease(theirs, five, 4) == five[:4]


def test_a_file_shows_whether_other_runs_are_under_way(two: tuple[Store, Store], location: str) -> None:
    one, other = two
    server = location.startswith("postgresql")  # it is for many
    begin(one)
    assert one.is_shared is server
    theirs = begin(other)
    assert one.is_shared
    other.finish_run(theirs)
    assert one.is_shared is server


def test_the_leases_of_a_killed_process_end_with_it(location: str) -> None:
    five: list[Candidate] = [make_candidate(number) for number in range(5)]
    with open_store(location) as store:
        run_id = begin(store)
        killed = open_store(location)
        assert killed.lease(begin(killed), five, 5) == five
        assert store.lease(run_id, five, 5) == []
        killed.close()
        deadline = time.monotonic() + 60
        # PostgreSQL's server notices the end of a connection a moment later.
        while not (leased := store.lease(run_id, five, 5)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert leased == five


def test_a_lease_ends_after_its_time(two: tuple[Store, Store]) -> None:
    one, other = two
    mine, theirs = begin(one), begin(other)
    one.lease_s = -1.0
    assert one.lease(mine, [make_candidate(0)], 1)
    assert other.lease(theirs, [make_candidate(0)], 1) == [make_candidate(0)]
    one.add_trials(mine, [make_trial(0)])


def test_a_lease_that_is_renewed_lasts(two: tuple[Store, Store]) -> None:
    one, other = two
    mine, theirs = begin(one), begin(other)
    usual, one.lease_s = one.lease_s, -1.0
    one.lease(mine, [make_candidate(0), make_candidate(1)], 2)
    one.lease_s = usual
    one.renew_leases(mine)
    assert other.lease(theirs, [make_candidate(0), make_candidate(1)], 2) == []


@pytest.fixture
def alarm() -> Generator[None]:
    """Let the alarm clock press Ctrl-C."""
    before = signal.signal(signal.SIGALRM, lambda _number, _frame: signal.raise_signal(signal.SIGINT))
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_a_run_that_is_interrupted_while_it_writes_goes_on(location: str) -> None:
    moments = random.Random(2)
    with open_store(location) as store:
        for _ in range(40):
            run_id, reported = begin(store), 0
            try:
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(0.0005, 0.004))
                while True:
                    store.add_trials(run_id, [make_trial(reported)])
                    reported += 1
            except KeyboardInterrupt:
                pass
            stored = store.run(run_id).trials
            assert stored in (reported, reported + 1)
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
    put = _signal.signal

    def interrupted(number: int, handler: Any) -> Any:
        found = put(number, handler)
        if number == signal.SIGINT and handler is signal.default_int_handler:
            raise KeyboardInterrupt
        return found

    before = signal.signal(signal.SIGTERM, lambda number, _: calls.append(number))
    try:
        with pytest.raises(KeyboardInterrupt), uninterrupted():
            monkeypatch.setattr(_signal, "signal", interrupted)
        monkeypatch.undo()
        with uninterrupted():
            pass
        signal.raise_signal(signal.SIGTERM)
        assert calls == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_need_no_care() -> None:
    done: list[bool] = []

    def work() -> None:
        with uninterrupted():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
