"""One timed run at a time, across processes, whatever becomes of the processes and the file."""

import fcntl
import gc
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from planish.core import PlanishError
from planish.measure import machine_lock
from planish.measure.machine_lock import exclusive, is_held

# Each turn writes its name twice, with a pause in which somebody else might write.
TURNS = """
import sys, time
from pathlib import Path
from planish.measure import exclusive
lock, log, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
for _ in range(20):
    with exclusive(lock), log.open("a", buffering=1) as file:
        print(name, file=file)
        time.sleep(0.001)
        print(name, file=file)
"""
HOLDER = """
import sys
from pathlib import Path
from planish.measure import exclusive
with exclusive(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
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


def test_a_dead_holder_blocks_nobody(tmp_path: Path) -> None:
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
def test_who_is_interrupted_while_waiting_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown_s: float
) -> None:
    """It waits by the alarm first, then in a thread; both let the file go."""
    lock = tmp_path / "lock"
    monkeypatch.setattr(machine_lock, "SHOWN_S", shown_s)
    gc.collect()  # what other tests left open may be closed at any moment
    before = len(list(Path("/proc/self/fd").iterdir()))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        threading.Timer(0.5, signal.pthread_kill, [threading.get_ident(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt), exclusive(lock):
            pass
        holder.communicate()
    with lock.open() as file:
        end = time.monotonic() + 10
        while time.monotonic() < end:  # the thread gives the file back once it has it
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
