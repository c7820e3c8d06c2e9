"""Processes that write at the same time, and processes that are killed while they write."""

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from planish.core import StoreError
from planish.store import open_store
from planish.testing.stored import STEPS, make_task, make_trial
from planish.testing.stores import begin

WRITER = Path(__file__).with_name("writer.py")
ENDLESS = 10**9
GROUPS = (1, 16, 1)

Writer = subprocess.Popen[str]
Start = Callable[[str, int, int], Writer]


@pytest.fixture
def start() -> Generator[Start]:
    """Start writers that wait for a line; whatever happens, they end with the test."""
    writers: list[Writer] = []

    def start_one(place: str, count: int, group: int) -> Writer:
        command = [sys.executable, str(WRITER), place, str(count), str(group)]
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
    """Wait for the end; gives the lines not read yet."""
    assert writer.stdout is not None
    lines = [] if writer.stdout.closed else writer.stdout.read().split("\n")[:-1]
    writer.communicate()
    return lines


def _kill(writer: Writer) -> list[str]:
    writer.kill()
    return _rest(writer)


def test_processes_make_one_store_and_write_to_it_at_once(place: str, start: Start) -> None:
    writers = [start(place, 150, group) for group in (1, 1, 15)]
    for writer in writers:
        _go(writer)
    told = [_rest(writer) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    with open_store(place, read_only=True) as store:
        assert {(run.id, run.status) for run in store.runs()} == {(lines[0], "finished") for lines in told}
        for run in store.runs():
            assert store.run_trials(run.id, STEPS) == [make_trial(i) for i in range(150)]


def test_a_process_killed_while_writing_loses_no_trial_that_it_was_told_is_stored(
    place: str, start: Start
) -> None:
    moments = random.Random(1)
    writers = [start(place, ENDLESS, group) for group in GROUPS]
    for writer, group in zip(writers, GROUPS, strict=True):
        _go(writer)
        run_id, first = _line(writer), _line(writer)
        time.sleep(moments.uniform(0, 0.06))
        told = int([first, *_kill(writer)][-1])
        with open_store(place) as store:
            kept = store.run_trials(run_id, STEPS)
            assert kept == [make_trial(i) for i in range(len(kept))]
            assert len(kept) in (told, told + group)
            assert store.run(run_id).status == "interrupted"
            store.resume_run(run_id)
            store.add_trials(run_id, [make_trial(len(kept))])
            store.finish_run(run_id)


def test_a_process_killed_while_making_the_store_leaves_one_that_can_be_opened(
    place: str, start: Start
) -> None:
    moments = random.Random(5)
    for writer in [start(place, ENDLESS, 1) for _ in range(3)]:
        _go(writer)
        time.sleep(moments.uniform(0, 0.15))
        told = _kill(writer)
        with open_store(place) as store:
            assert len(told) < 2 or store.run(told[0]).trials >= int(told[-1])
            begin(store)


def test_a_run_of_a_living_process_is_refused_to_others(place: str, start: Start) -> None:
    writer = start(place, ENDLESS, 1)
    _go(writer)
    run_id, _ = _line(writer), _line(writer)
    with open_store(place) as store:
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
    place = tmp_path / "planish.db"
    writer = start(str(place), ENDLESS, 1)
    _go(writer)
    run_id, _ = _line(writer), _line(writer)
    _kill(writer)
    assert (tmp_path / f"planish.db-run-{run_id}").exists()
    with open_store(place) as store:
        store.finish_run(begin(store))
    assert [path.name for path in tmp_path.iterdir()] == ["planish.db"]
    connection = sqlite3.connect(place)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
