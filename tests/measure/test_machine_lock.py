"""Where the machine's lock is: nowhere that others could have prepared; and what is said of who holds it."""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from measure.finder import Finder
from planish.core import Candidate, Measured, PlanishError, cache_folder, evaluate, private_folder
from planish.executors import LocalExecutor
from planish.measure import clock, exclusive
from planish.measure.machine_lock import holder_of, machine_lock, opened_lock

HOLDER = """
import sys
from pathlib import Path
from planish.measure import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc/locks")


@contextmanager
def held(lock: Path) -> Generator[subprocess.Popen[bytes]]:
    """Have another process hold a lock."""
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a user who has no lock yet."""
    machine_lock.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.delenv("PLANISH_LOCK", raising=False)
    monkeypatch.setattr("planish.measure.machine_lock.node", lambda: "box")
    return tmp_path


def test_the_lock_is_in_a_folder_of_the_user(own: Path) -> None:
    lock = machine_lock()
    assert lock == own / "cache/planish/timing-box.lock"
    assert lock.parent.stat().st_mode & 0o777 == 0o700
    with exclusive():
        assert lock.stat().st_mode & 0o777 == 0o600


def test_what_others_could_have_prepared_is_not_used(own: Path) -> None:
    (own / "cache").mkdir()
    (own / "elsewhere").mkdir()
    (own / "cache/planish").symlink_to(own / "elsewhere")
    assert machine_lock() == own / "run/planish/timing-box.lock"
    machine_lock.cache_clear()
    (own / "run").chmod(0o777)
    with pytest.raises(PlanishError, match=r"others may write to .*PLANISH_LOCK=FILE"):
        machine_lock()
    with pytest.raises(PlanishError, match="is no folder"):
        cache_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(PermissionError, match="belongs to another user"):
        private_folder(tmp_path / "theirs")
    with pytest.raises(PermissionError, match="others may write"):
        private_folder(tmp_path / "theirs/mine")


def test_an_open_folder_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(0o775)
    assert private_folder(tmp_path / "mine").stat().st_mode & 0o777 == 0o755


def test_an_administrator_may_name_one_for_all(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = own / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("PLANISH_LOCK", str(shared / "lock"))
    with pytest.raises(PlanishError, match="make the file beforehand"):
        machine_lock()
    (shared / "lock").touch()
    assert machine_lock() == shared / "lock"
    with exclusive():
        assert holder_of(shared / "lock") is not None or sys.platform != "linux"


@pytest.mark.parametrize("name", ["folder", "pipe", "link", "file/lock", "missing/lock"])
def test_a_name_that_cannot_be_a_lock_is_an_error(
    own: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (own / "folder").mkdir()
    os.mkfifo(own / "pipe")
    (own / "file").touch()
    (own / "link").symlink_to(own / "file")
    monkeypatch.setenv("PLANISH_LOCK", str(own / name))
    with pytest.raises(
        PlanishError, match=rf"PLANISH_LOCK={own / name} cannot be used: .*PLANISH_LOCK=FILE"
    ) as error:
        machine_lock()
    assert ("it is a folder" in str(error.value)) == (name == "folder")
    if name != "folder":  # one is enough to see that it is a command's only error
        return
    command = [sys.executable, "-c", "from planish.cli import main; main()", "tune", "Y[i] = X[i] + X[i]"]
    done = subprocess.run([*command, "--size", "i=8"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("error:")) == (2, 1)
    assert f"PLANISH_LOCK={own / name} cannot be used" in done.stderr
    assert len(done.stderr.splitlines()) <= 3


def test_a_pipe_does_not_hang_who_opens_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(OSError, match="no plain file"):
        opened_lock(tmp_path / "lock")


@linux_only
def test_the_holder_is_told(tmp_path: Path) -> None:
    assert holder_of(tmp_path / "lock") is None
    with held(tmp_path / "lock") as process:
        found = holder_of(tmp_path / "lock")
        assert found is not None
        assert found.pid == process.pid
        assert found.command.startswith(sys.executable)
    assert holder_of(tmp_path / "lock") is None


@linux_only
def test_the_wait_is_shown_and_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("planish.measure.machine_lock.SHOWN_S", 0.05)
    monkeypatch.setattr("planish.measure.machine_lock.PATIENCE_S", 0.2)
    lock, entered = tmp_path / "lock", 0
    with held(lock) as process, caplog.at_level(logging.WARNING, "planish"):
        for _ in range(3):
            with exclusive(lock):
                entered += 1
        told = [record.message for record in caplog.records]
        assert told[0].startswith("waiting for the machine, 0.2 s at most: process ")
        assert f"process {process.pid} (" in told[0]
        assert "times may be disturbed" in told[1]
        assert len(told) == 2, "who is known not to let go is not waited for again"
    with exclusive(lock):
        assert holder_of(lock) is not None, "the lock that was waited for in vain is not kept from us"
    assert entered == 3
    assert holder_of(lock) is None


@linux_only
def killed_once_noted(process: subprocess.Popen[bytes], executor: LocalExecutor) -> None:
    deadline = time.monotonic() + 60
    while not executor.notes and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()


def test_an_executor_shows_who_keeps_the_machine_from_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(clock, "SHOWN_S", 0.05)
    monkeypatch.setattr(clock, "PATIENCE_S", 0.2)
    with held(tmp_path / "lock") as process, caplog.at_level(logging.WARNING, "planish"):
        executor = LocalExecutor(Finder(), lock=tmp_path / "lock")
        threading.Thread(target=killed_once_noted, args=(process, executor)).start()
        for answer in evaluate(executor, [Candidate()]):
            assert isinstance(answer.outcome, Measured)
        executor.close()
    # On a busy machine it may be told twice: that it is waited for, and that it was in vain.
    assert any(f"process {process.pid} (" in note for note in executor.notes)
    assert [record.message for record in caplog.records if "waiting" in record.message]
