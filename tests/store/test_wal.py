"""The log that a killed process leaves behind: what is damaged in it is told, what is torn is not."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planish.core import StoreError
from planish.store import open_store
from planish.testing.stored import STEPS, make_task

TRIALS = 30
FRAME = 24 + 4096
WRITER = f"""
import os, sys
from pathlib import Path
from planish.store import open_store
from planish.testing.stored import make_task, make_trial
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
    place = tmp_path_factory.mktemp("killed") / "planish.db"
    subprocess.run([sys.executable, "-c", WRITER, str(place)], check=True)
    assert place.with_name("planish.db-wal").stat().st_size > TRIALS * FRAME
    return place


def copied(killed: Path, folder: Path) -> tuple[Path, Path]:
    """Copy a store and its log; the index of the log is made anew, as on another machine."""
    for suffix in ("", "-wal"):
        shutil.copy(f"{killed}{suffix}", folder)
    return folder / killed.name, folder / f"{killed.name}-wal"


def stored(place: Path, *, read_only: bool = False) -> int:
    with open_store(place, read_only=read_only) as store:
        return len(store.trials(make_task("flat").key, STEPS))


def test_a_log_that_is_left_behind_is_taken_up(killed: Path, tmp_path: Path) -> None:
    assert stored(copied(killed, tmp_path)[0]) == TRIALS


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_byte_damaged_in_the_midst_is_told_and_nothing_is_lost(
    killed: Path, tmp_path: Path, seed: int, read_only: bool
) -> None:
    place, log = copied(killed, tmp_path)
    whole = log.read_bytes()
    chance = random.Random(seed)
    at = chance.randrange(len(whole) - 3 * FRAME) if seed else 20
    content = bytearray(whole)
    content[at] ^= chance.randrange(1, 256)
    log.write_bytes(content)
    with pytest.raises(StoreError, match=r"is damaged: .* of its log planish\.db-wal") as caught:
        stored(place, read_only=read_only)
    assert caught.value.exit_code == 4
    assert log.read_bytes() == content
    log.write_bytes(whole)
    assert stored(place, read_only=read_only) == TRIALS


@pytest.mark.parametrize("seed", range(6))
def test_a_tail_that_is_torn_is_no_damage(killed: Path, tmp_path: Path, seed: int) -> None:
    place, log = copied(killed, tmp_path)
    chance = random.Random(seed)
    size = log.stat().st_size
    torn = size - chance.randrange(1, FRAME)
    if seed % 2:
        os.truncate(log, torn)
    else:
        log.write_bytes(log.read_bytes()[:torn] + bytes(size - torn))
    kept = stored(place)
    assert kept in (TRIALS - 1, TRIALS)


def test_frames_of_an_earlier_log_are_no_damage(tmp_path: Path) -> None:
    """A log that begins anew leaves its old frames behind its end."""
    place = tmp_path / "planish.db"
    restart = "import sqlite3; sqlite3.connect(sys.argv[1]).execute('PRAGMA wal_checkpoint(RESTART)')"
    more = "for index in range(3):\n    store.add_trials(run, [make_trial(index + 100)])"
    writer = WRITER.replace("os._exit(0)", f"{restart}\n{more}\nos._exit(0)")
    subprocess.run([sys.executable, "-c", writer, str(place)], check=True)
    assert stored(place) == TRIALS + 3


def test_commands_end_with_code_4(killed: Path, tmp_path: Path) -> None:
    place, log = copied(killed, tmp_path)
    content = bytearray(log.read_bytes())
    content[5 * FRAME] ^= 1
    log.write_bytes(content)
    command = [sys.executable, "-c", "from planish.cli import main; main()", "show", "--store", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
