"""One timed run on a machine at a time."""

import fcntl
import gc
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from platform import node

import pytest

from measure.finder import Finder
from planish.core import Candidate, Measured, PlanishError, cache_folder, evaluate, private_folder
from planish.measure import exclusive
from planish.measure.clock import LockWaits
from planish.measure.executors import LocalExecutor
from planish.measure.machine_lock import holder_of, is_held, machine_lock, opened_lock

HOLDER = """
import sys
from pathlib import Path
from platform import node
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
    """Return a user without a lock."""
    machine_lock.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.delenv("PLANISH_LOCK", raising=False)
    return tmp_path


def test_the_lock_is_in_a_folder_of_the_user(own: Path) -> None:
    lock = machine_lock()
    assert lock == own / f"cache/planish/timing-{node()}.lock"
    assert lock.parent.stat().st_mode & 0o777 == 0o700
    with exclusive():
        assert lock.stat().st_mode & 0o777 == 0o600


def test_what_others_could_have_prepared_is_not_used(own: Path) -> None:
    (own / "cache").mkdir()
    (own / "elsewhere").mkdir()
    (own / "cache/planish").symlink_to(own / "elsewhere")
    assert machine_lock() == own / f"run/planish/timing-{node()}.lock"
    machine_lock.cache_clear()
    (own / "run").chmod(0o777)
    with pytest.raises(PlanishError, match=r"others may write to .*PLANISH_LOCK=FILE"):
        machine_lock()
    with pytest.raises(PlanishError, match="is not a folder"):
        cache_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
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
    command = [
        sys.executable,
        "-c",
        "from planish.cli.script import main; main()",
        "tune",
        "Y[i] = X[i] + X[i]",
    ]
    done = subprocess.run([*command, "--size", "i=8"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("error:")) == (2, 1)
    assert f"PLANISH_LOCK={own / name} cannot be used" in done.stderr
    assert len(done.stderr.splitlines()) <= 3


def test_a_pipe_does_not_block_its_opener(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(OSError, match="not a regular file"):
        opened_lock(tmp_path / "lock")


@linux_only
def test_the_holder_is_reported(tmp_path: Path) -> None:
    assert holder_of(tmp_path / "lock") is None
    with held(tmp_path / "lock") as process:
        found = holder_of(tmp_path / "lock")
        assert found is not None
        assert found.pid == process.pid
        assert found.command.startswith(sys.executable)
    assert holder_of(tmp_path / "lock") is None


@linux_only
def test_the_wait_is_shown_and_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lock, entered = tmp_path / "lock", 0
    with held(lock) as process, caplog.at_level(logging.WARNING, "planish"):
        for _ in range(3):
            with exclusive(lock, patience_s=0.2, shown_s=0.05):
                entered += 1
        shown = [record.message for record in caplog.records]
        assert shown[0].startswith("waiting for the machine, at most 0.2 s: process ")
        assert f"process {process.pid} (" in shown[0]
        assert "times may be disturbed" in shown[1]
        assert len(shown) == 2, "a process that is known not to let go is not waited for again"
    with exclusive(lock):
        assert holder_of(lock) is not None, "the lock that was waited for in vain is not kept from us"
    assert entered == 3
    # A process that another thread is starting has a copy of the open file until it runs its program.
    assert any(holder_of(lock) is None or time.sleep(0.05) for _ in range(100))


@linux_only
def killed_once_noted(process: subprocess.Popen[bytes], executor: LocalExecutor) -> None:
    deadline = time.monotonic() + 240
    while not executor.notes and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()


def test_an_executor_shows_which_process_keeps_the_machine_from_its_workers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    waits = partial(LockWaits, patience_s=0.2, shown_s=0.05)
    with held(tmp_path / "lock") as process, caplog.at_level(logging.WARNING, "planish"):
        executor = LocalExecutor(Finder(), lock=tmp_path / "lock", waits=waits)
        threading.Thread(target=killed_once_noted, args=(process, executor)).start()
        for answer in evaluate(executor, [Candidate()]):
            assert isinstance(answer.outcome, Measured)
        executor.close()
    # On a busy machine it may be shown twice: that it is waited for, and that it was in vain.
    assert any(f"process {process.pid} (" in note for note in executor.notes)
    assert [record.message for record in caplog.records if "waiting" in record.message]


# Each turn writes its name twice, with a pause in which another process might write.
TURNS = """
import sys, time
from pathlib import Path
from platform import node
from planish.measure import exclusive
lock, log, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
for _ in range(20):
    with exclusive(lock), log.open("a", buffering=1) as file:
        print(name, file=file)
        time.sleep(0.001)
        print(name, file=file)
"""


def test_processes_exclude_each_other(tmp_path: Path) -> None:
    lock, log = tmp_path / "lock", tmp_path / "log"
    command = [sys.executable, "-c", TURNS, str(lock), str(log)]
    processes = [subprocess.Popen([*command, name]) for name in "abc"]
    assert [process.wait() for process in processes] == [0, 0, 0]
    names = log.read_text().split()
    assert sorted(names) == sorted("abc" * 40)
    assert names[::2] == names[1::2]


def test_threads_exclude_each_other(tmp_path: Path) -> None:
    inside: list[int] = []

    def enter() -> None:
        for _ in range(50):
            with exclusive(tmp_path / "lock"):
                inside.append(1)
                assert len(inside) == 1
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside == []


def test_a_dead_holder_blocks_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        threading.Timer(0.2, holder.kill).start()
        with exclusive(tmp_path / "lock"):
            assert holder.wait(10) == -9


def test_who_has_little_patience_goes_on_beside_the_holder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with exclusive(tmp_path / "lock", patience_s=0.01):
            assert holder.poll() is None
        holder.kill()
    with exclusive(tmp_path / "lock"):
        assert is_held(tmp_path / "lock")


# An interrupt between opening a file and its `with` leaves the closing to Python, which warns of it.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <_io.FileIO name=./proc/:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.parametrize("shown_s", [60.0, 0.05])
def test_who_is_interrupted_while_waiting_keeps_nothing(tmp_path: Path, shown_s: float) -> None:
    """It waits by the alarm first, then in a thread; both let the file go."""
    lock = tmp_path / "lock"
    gc.collect()  # what other tests left open may be closed at any moment
    before = len(list(Path("/proc/self/fd").iterdir()))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        threading.Timer(0.5, signal.pthread_kill, [threading.get_ident(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt), exclusive(lock, shown_s=shown_s):
            pass
        holder.communicate()
    with lock.open() as file:
        end = time.monotonic() + 10
        while time.monotonic() < end:  # the thread releases the file once it has it
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.01)
        else:
            pytest.fail("the machine is kept")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_it_nests_and_ends(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with exclusive(lock):
        with exclusive(lock):
            assert is_held(lock)
        assert is_held(lock)
        assert not is_held(tmp_path / "other")
    assert not is_held(lock)


def test_the_file_is_for_this_user_and_may_be_deleted(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with exclusive(lock):
        assert lock.stat().st_mode & 0o777 == 0o600
        lock.unlink()
    with exclusive(lock):
        assert lock.exists()


def test_who_waited_for_a_file_that_was_deleted_takes_the_new_one(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    entered = threading.Event()
    command = [sys.executable, "-c", HOLDER, str(lock)]

    def enter() -> None:
        with exclusive(lock):
            entered.set()

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as old:
        assert old.stdout is not None
        old.stdout.readline()
        waiter = threading.Thread(target=enter)
        waiter.start()
        assert not entered.wait(0.1)
        lock.unlink()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as new:
            assert new.stdout is not None
            new.stdout.readline()
            old.kill()
            assert not entered.wait(0.2)
            new.kill()
        waiter.join()
    assert entered.is_set()


def test_a_file_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlanishError, match="lock of timed runs"), exclusive(tmp_path / "no" / "lock"):
        pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(PlanishError, match="lock of timed runs"), exclusive(tmp_path / "lock"):
        pass
    assert not (tmp_path / "victim").exists()
