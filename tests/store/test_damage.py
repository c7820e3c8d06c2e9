"""Stores that another program or a crash has changed: one clear error, or the same data."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from planish.core import StoreError
from planish.store import Reader, ResultRow, open_store
from planish.testing.stores import STEPS, begin, make_candidate, make_task, make_trial

FLIPS = 400


def _everything(store: Reader) -> list[Any]:
    runs = sorted(store.runs(), key=lambda run: run.id)
    tasks = {run.task_key: store.task(run.task_key) for run in runs}
    return [
        runs,
        tasks,
        [store.runs(key) for key in tasks],
        [store.run_trials(run.id, STEPS) for run in runs],
        [store.result_rows(run.id, STEPS) for run in runs],
        [store.trials(key, STEPS) for key in tasks],
        [store.run(run.id) for run in runs],
    ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store of six runs for three tasks."""
    location = tmp_path_factory.mktemp("whole") / "planish.db"
    with open_store(location) as store:
        for text in ("flat", "round", "flat", "square", "round", "flat"):
            run_id = begin(store, make_task(text))
            for first in range(0, 24, 8):
                store.add_trials(run_id, [make_trial(i, cached=i % 5 == 4) for i in range(first, first + 8)])
            store.save_result(run_id, [ResultRow(make_candidate(n), 2.0 - n, {"rank": n}) for n in range(3)])
            store.finish_run(run_id, seconds={"run": 1.5})
    return location


def _flipped(whole: Path, location: Path, seed: int) -> None:
    """Change a byte, or a few in a row."""
    chance = random.Random(seed)
    content = bytearray(whole.read_bytes())
    first = chance.randrange(len(content))
    for at in range(first, min(len(content), first + chance.choice([1, 1, 1, 2, 4]))):
        content[at] ^= chance.randrange(1, 256)
    location.write_bytes(content)


@pytest.mark.slow
def test_a_flipped_byte_is_reported_or_changes_nothing(whole: Path, tmp_path: Path) -> None:
    with open_store(whole, read_only=True) as store:
        expected = _everything(store)
    location, reported = tmp_path / "planish.db", 0
    for seed in range(FLIPS):
        _flipped(whole, location, seed)
        try:
            with open_store(location, read_only=seed % 2 == 0) as store:
                assert _everything(store) == expected, f"seed {seed}"
        except StoreError as error:
            assert error.hint, f"seed {seed}: {error}"  # noqa: PT017
            assert str(location) in str(error)  # noqa: PT017
            reported += 1
        for path in tmp_path.iterdir():
            path.unlink()
    assert reported > FLIPS / 10


def _planish(location: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quick_runs", "loops", *words, "--store", str(location)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=location.parent
    )


TUNE = ("tune", "C[m] += A[m,k]", "--size", "m=8,k=8", "--trials", "3", "--finalists", "1")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the store of a finished run of three trials."""
    location = tmp_path_factory.mktemp("tuned") / "planish.db"
    done = _planish(location, *TUNE)
    assert done.returncode == 0, done.stderr
    return location


def _copy(tuned: Path, folder: Path) -> Path:
    """Copy a store that no process has open."""
    return Path(shutil.copy(tuned, folder / "planish.db"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "change", "commands"),
    [
        ("trials", "outcome = replace(outcome, '1', '2')", ("show", "report")),
        ("results", "data = replace(data, '1', '2')", ("show", "report", "export")),
    ],
)
def test_commands_that_read_what_is_damaged_end_with_code_4(
    tuned: Path, tmp_path: Path, table: str, change: str, commands: Sequence[str]
) -> None:
    location = _copy(tuned, tmp_path)
    with closing(sqlite3.connect(location, isolation_level=None)) as connection:
        (run_id,) = connection.execute("SELECT id FROM runs").fetchone()
        connection.execute(f"UPDATE {table} SET {change} WHERE rowid = 1")
    for command in commands:
        done = _planish(location, command, run_id, *(["out"] if command == "export" else []))
        assert done.returncode == 4, (command, done.stderr)
        assert done.stderr.startswith(f"planish: error: the store {location} is damaged: row ")
        assert f"of table {table}" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_winner_is_exported_though_a_trial_is_damaged(tuned: Path, tmp_path: Path) -> None:
    location = _copy(tuned, tmp_path)
    with closing(sqlite3.connect(location, isolation_level=None)) as connection:
        (run_id,) = connection.execute("SELECT id FROM runs").fetchone()
        connection.execute("UPDATE trials SET outcome = replace(outcome, '1', '2')")
    done = _planish(location, "export", run_id, "out")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "out").glob("*.s"))


@pytest.mark.slow
def test_a_trial_that_was_cut_short_is_measured_again(tuned: Path, tmp_path: Path) -> None:
    location = _copy(tuned, tmp_path)
    with closing(sqlite3.connect(location, isolation_level=None)) as connection:
        (run_id,) = connection.execute("SELECT id FROM runs").fetchone()
        connection.execute("UPDATE trials SET outcome = substr(outcome, 1, 100) WHERE id = 2")
        (length,) = connection.execute("SELECT length(outcome) FROM trials WHERE id = 2").fetchone()
    assert length == 100
    again = _planish(location, *TUNE)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count(f"deleted 1 damaged trial of run {run_id}; measuring again") == 1
    with open_store(location, read_only=True) as store:
        (run,) = store.runs()
        assert (run.id, run.trials, run.status) == (run_id, 3, "finished")
    shown = _planish(location, "show", run_id)
    assert shown.returncode == 0
    assert "damaged" not in shown.stderr


STATEMENTS = {
    "trials": "UPDATE trials SET outcome = '[' || outcome WHERE id = 3",
    "cut short": "UPDATE trials SET outcome = substr(outcome, 1, min(100, length(outcome) / 2)) WHERE id = 3",
    "candidate cut short": "UPDATE trials SET candidate = substr(candidate, 1, 9) WHERE id = 3",
    "result cut short": "UPDATE results SET data = substr(data, 1, length(data) / 2) WHERE rank = 1",
    "program cut short": "UPDATE tasks SET program = substr(program, 1, length(program) / 2)",
    "run cut short": "UPDATE runs SET versions = substr(versions, 1, length(versions) / 2)",
    "nested": "UPDATE trials SET outcome = printf('%.*c', 100000, '[') WHERE id = 3",
    "number": 'UPDATE trials SET "index" = 1e300 WHERE id = 3',
    "nothing": "UPDATE trials SET checksum = NULL WHERE id = 3",
    "kind": "UPDATE trials SET outcome = x'ff00', host = 7 WHERE id = 3",
    "no text": "UPDATE trials SET host = CAST(x'ff' AS TEXT) WHERE id = 3",
    "trial lost": "DELETE FROM trials WHERE id = 3",
    "result lost": "DELETE FROM results WHERE rank = 2",
    "result": "UPDATE results SET ratio = 9 WHERE rank = 0",
    "task": "UPDATE tasks SET program = 'rm'",
    "task lost": "DELETE FROM tasks",
    "run": "UPDATE runs SET seed = 4",
    "started": "UPDATE runs SET started = 'soon'",
    "no version": "DELETE FROM planish_version",
    "strange version": "UPDATE planish_version SET version_num = 'new'",
    "old version": "UPDATE planish_version SET version_num = '0000'",
    "no table": "DROP TABLE results",
}


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=list(STATEMENTS))
def test_what_others_have_written_is_one_clear_error(whole: Path, tmp_path: Path, statement: str) -> None:
    location = tmp_path / "planish.db"
    location.write_bytes(whole.read_bytes())
    with closing(sqlite3.connect(location, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)
    for read_only in (True, False):
        with (
            pytest.raises(StoreError, match="is damaged") as caught,
            open_store(location, read_only=read_only) as store,
        ):
            _everything(store)
        assert caught.value.exit_code == 4
        assert caught.value.hint


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("size", [50, 100, 10_000])
def test_a_file_that_is_cut_short_is_one_clear_error(whole: Path, tmp_path: Path, size: int) -> None:
    location = tmp_path / "planish.db"
    location.write_bytes(whole.read_bytes()[:size])
    for words in (("runs",), ("tune", "C[m] += A[m,k]", "--size", "m=8,k=8", "--trials", "1")):
        done = _planish(location, *words)
        assert done.returncode == 4
        assert done.stderr.startswith(f"planish: error: the store {location} is ")
        assert done.stderr.count("\n") == 1
    assert location.stat().st_size == size


def test_json_that_is_too_deep_or_strange_is_an_error_even_with_a_checksum(tmp_path: Path) -> None:
    """A hand that knows how could seal them."""
    from planish.store.schema import COVERED, checksum, total

    location = tmp_path / "planish.db"
    for column, text in (
        ("candidate", "[" * 100_000),
        ("outcome", "[" * 100_000),
        ("outcome", "7"),
        ("outcome", "null"),
        ("outcome", "{}"),
        ("outcome", '{"values": 3}'),
        ("outcome", '{"values": [[]]}'),
        ("outcome", '{"stage": []}'),
        ("outcome", "1e999999"),
    ):
        location.unlink(missing_ok=True)
        with open_store(location) as store:
            run_id = begin(store)
            store.add_trials(run_id, [make_trial(0)])
        with closing(sqlite3.connect(location, isolation_level=None)) as connection:
            connection.execute(f"UPDATE trials SET {column} = ?", [text])
            connection.row_factory = sqlite3.Row
            row = dict(connection.execute("SELECT * FROM trials").fetchone())
            seal = checksum({**row, "cached": False}[name] for name in COVERED["trials"])
            connection.execute("UPDATE trials SET checksum = ?", [seal])
            connection.execute("UPDATE runs SET trials_sum = ?", [total([seal])])
        with (
            open_store(location) as store,
            pytest.raises(StoreError, match="row 1 of table trials cannot be read"),
        ):
            store.run_trials(run_id, STEPS)


TRIALS = 30
FRAME = 24 + 4096
WRITER = f"""
import os, sys
from pathlib import Path
from planish.store import open_store
from planish.testing.stores import make_task, make_trial
from planish.testing.stores import begin
store = open_store(Path(sys.argv[1]))
run = begin(store, make_task("flat"))
for index in range({TRIALS}):
    store.add_trials(run, [make_trial(index)])
os._exit(0)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store whose writer was killed: all its trials are in the log."""
    location = tmp_path_factory.mktemp("killed") / "planish.db"
    subprocess.run([sys.executable, "-c", WRITER, str(location)], check=True)
    assert location.with_name("planish.db-wal").stat().st_size > TRIALS * FRAME
    return location


def copied(killed: Path, folder: Path) -> tuple[Path, Path]:
    """Copy a store and its log; the index of the log is made anew, as on another machine."""
    for suffix in ("", "-wal"):
        shutil.copy(f"{killed}{suffix}", folder)
    return folder / killed.name, folder / f"{killed.name}-wal"


def stored(location: Path, *, read_only: bool = False) -> int:
    with open_store(location, read_only=read_only) as store:
        return len(store.trials(make_task("flat").key, STEPS))


def test_a_log_that_is_left_behind_is_taken_up(killed: Path, tmp_path: Path) -> None:
    assert stored(copied(killed, tmp_path)[0]) == TRIALS


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_byte_damaged_in_the_midst_is_reported_and_nothing_is_lost(
    killed: Path, tmp_path: Path, seed: int, read_only: bool
) -> None:
    location, log = copied(killed, tmp_path)
    whole = log.read_bytes()
    chance = random.Random(seed)
    at = chance.randrange(len(whole) - 3 * FRAME) if seed else 20
    content = bytearray(whole)
    content[at] ^= chance.randrange(1, 256)
    log.write_bytes(content)
    with pytest.raises(StoreError, match=r"is damaged: .* of its log planish\.db-wal") as caught:
        stored(location, read_only=read_only)
    assert caught.value.exit_code == 4
    assert log.read_bytes() == content
    log.write_bytes(whole)
    assert stored(location, read_only=read_only) == TRIALS


@pytest.mark.parametrize("seed", range(6))
def test_a_tail_that_is_torn_is_no_damage(killed: Path, tmp_path: Path, seed: int) -> None:
    location, log = copied(killed, tmp_path)
    chance = random.Random(seed)
    size = log.stat().st_size
    torn = size - chance.randrange(1, FRAME)
    if seed % 2:
        os.truncate(log, torn)
    else:
        log.write_bytes(log.read_bytes()[:torn] + bytes(size - torn))
    kept = stored(location)
    assert kept in (TRIALS - 1, TRIALS)


def test_frames_of_an_earlier_log_are_no_damage(tmp_path: Path) -> None:
    """A log that begins anew leaves its old frames behind its end."""
    location = tmp_path / "planish.db"
    restart = "import sqlite3; sqlite3.connect(sys.argv[1]).execute('PRAGMA wal_checkpoint(RESTART)')"
    more = "for index in range(3):\n    store.add_trials(run, [make_trial(index + 100)])"
    writer = WRITER.replace("os._exit(0)", f"{restart}\n{more}\nos._exit(0)")
    subprocess.run([sys.executable, "-c", writer, str(location)], check=True)
    assert stored(location) == TRIALS + 3


def test_commands_on_a_damaged_log_end_with_code_4(killed: Path, tmp_path: Path) -> None:
    location, log = copied(killed, tmp_path)
    content = bytearray(log.read_bytes())
    content[5 * FRAME] ^= 1
    log.write_bytes(content)
    command = [
        sys.executable,
        "-c",
        "from planish.cli.script import main; main()",
        "show",
        "--store",
        str(location),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
