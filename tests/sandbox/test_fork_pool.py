"""Forked children: pools of them, and one alone."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from planish.sandbox import ExitStatus
from planish.sandbox.fork_pool import ForkLimits, ForkPool, Watchdog, forked, in_child
from sandbox.processes import dies_out, living


def _abort() -> None:
    signal.raise_signal(signal.SIGSEGV)


def _exit() -> None:
    os._exit(1)


def _compute_for_ever() -> None:
    while True:
        pass


def _sleep() -> None:
    time.sleep(60)


@pytest.mark.parametrize("die", [_abort, _exit, _compute_for_ever, _sleep])
def test_what_ends_a_child_is_refused_and_the_rest_is_done(die: Callable[[], None]) -> None:
    def work(item: str, watchdog: Watchdog) -> list[bool]:
        allowed: list[bool] = []
        for evaluation in range(3):
            allowed.append(watchdog.enter(f"{item}:{evaluation}"))
            if allowed[-1] and (item, evaluation) in {("b", 1), ("e", 2)}:
                die()
        return allowed

    done = {
        one.item: one
        for one in forked("abcdefg", work, list[bool], 2, at_once=3, limits=ForkLimits(seconds=0.04))
    }

    assert {item: one.answer for item, one in done.items()} == {
        item: [True, item != "b", item != "e"] for item in "abcdefg"
    }
    assert {item: one.refused for item, one in done.items() if one.refused} == {"b": ("b:1",), "e": ("e:2",)}


def test_an_item_that_always_kills_is_given_up() -> None:
    def work(item: int, watchdog: Watchdog) -> int:
        index = 0
        while True:
            index += 1
            if watchdog.enter(f"{item}, {index}") and item == 2:
                _exit()
            if item != 2:
                return item

    done = {one.item: one.answer for one in forked(range(5), work, int, 1)}

    assert done == {0: 0, 1: 1, 2: None, 3: 3, 4: 4}


def test_a_death_between_evaluations_gives_the_item_up_at_once() -> None:
    def work(item: int, _: Watchdog) -> int:
        if item == 1:
            _exit()
        return item

    done = {one.item: one.answer for one in forked(range(3), work, int, 1)}

    assert done == {0: 0, 1: None, 2: 2}


def test_an_exception_of_the_work_is_raised_here() -> None:
    def work(item: int, _: Watchdog) -> int:
        return 1 // item

    with pytest.raises(ZeroDivisionError):
        list(forked([1, 0], work, int, 1))


def test_no_child_outlives_a_caller_that_stops_listening(tmp_path: Path) -> None:
    def work(item: int, _: Watchdog) -> int:
        (tmp_path / str(os.getpid())).touch()
        if item:
            time.sleep(60)
        return item

    answers = forked(range(4), work, int, 2, at_once=1)
    assert next(answers).answer == 0
    answers.close()

    children = [int(file.name) for file in tmp_path.iterdir()]
    assert children
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_what_a_child_started_ends_with_it(tmp_path: Path) -> None:
    def work(item: int, _: Watchdog) -> int:
        sleeper = subprocess.Popen(["sleep", "1000"])
        (tmp_path / "group").write_text(f"{os.getpid()} {sleeper.pid}")
        if item:
            _exit()
        time.sleep(60)
        return item

    (done,) = forked([1], work, int, 1)
    assert done.given_up is not None
    assert dies_out(int((tmp_path / "group").read_text().split()[0]))

    with closing(ForkPool(work, int, 1)) as pool:
        pool.add([0])
        (tmp_path / "group").unlink()
        list(pool.over(0.0))
        while not (tmp_path / "group").exists() or not (tmp_path / "group").read_text():
            time.sleep(0.01)
    assert dies_out(int((tmp_path / "group").read_text().split()[0]))


PARENT = """
import os, subprocess, sys, time
from pathlib import Path
from planish.sandbox.fork_pool import forked
def work(item, watchdog):
    subprocess.Popen(["sleep", "1000"])
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(1000)
list(forked(range(2), work, int, 2))
"""


def test_children_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    book = tmp_path / "book"
    with subprocess.Popen([sys.executable, "-c", PARENT, str(book)]) as parent:
        while not book.exists() or len(book.read_text().splitlines()) < 2:
            assert parent.poll() is None
            time.sleep(0.01)
        groups = list(map(int, book.read_text().split()))
        assert all(len(living(group)) == 2 for group in groups)
        parent.kill()
    assert all(map(dies_out, groups))


@pytest.mark.parametrize(("times", "answer"), [(1, 2), (2, 2), (3, None)])
def test_a_child_killed_from_outside_refuses_no_candidate(
    times: int, answer: int | None, tmp_path: Path
) -> None:
    def work(item: int, watchdog: Watchdog) -> int:
        assert watchdog.enter(str(item))
        if item == 2 and len(list(tmp_path.iterdir())) < times:
            (tmp_path / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    done = {one.item: one for one in forked(range(4), work, int, 2)}

    assert {item: one.answer for item, one in done.items()} == {0: 0, 1: 1, 2: answer, 3: 3}
    assert not any(one.refused for one in done.values())
    assert (done[2].given_up is not None) == (answer is None)


def test_more_may_be_added_while_something_is_under_way() -> None:
    def work(item: int, _: Watchdog) -> int:
        return item + 1

    found: list[int] = []
    with closing(ForkPool(work, int, 2)) as pool:
        pool.add([0])
        while pool.busy:
            for done in pool.over():
                assert done.answer is not None
                found.append(done.answer)
                pool.add([done.answer] * (done.answer < 3))
    assert found == [1, 2, 3]


def test_what_a_child_prints_is_reported_with_its_end_alone(capfd: pytest.CaptureFixture[str]) -> None:
    def work(item: str, _: Watchdog) -> None:
        os.write(1, item.encode())
        if item == "last":
            _exit()

    *_, done = forked(["first", "last"], work, None, 1)

    assert done.given_up is not None
    assert done.given_up.detail == "exited with code 1: last"
    assert capfd.readouterr() == ("", "")


def test_temporary_files_end_with_the_pool(temporary: Path) -> None:
    def work(_: int, __: Watchdog) -> str:
        return tempfile.mkdtemp()

    (done,) = forked([1], work, str, 1)

    assert done.answer is not None
    assert Path(done.answer).is_relative_to(temporary)
    assert not list(temporary.iterdir())


def test_a_death_is_noticed_though_another_process_holds_the_pipe(tmp_path: Path) -> None:
    def work(item: int, _: Watchdog) -> int:
        if item == 1:
            holder = os.fork()
            if not holder:
                os.setsid()  # it is out of reach, with all that it has inherited
                (tmp_path / "away").touch()
                time.sleep(20)
                os._exit(0)
            (tmp_path / "holder").write_text(str(holder))
            while not (tmp_path / "away").exists():
                time.sleep(0.01)
            _exit()
        return item

    done = {one.item: one for one in forked(range(3), work, int, 1, at_once=3)}

    holder = int((tmp_path / "holder").read_text())
    assert living(holder), "what holds the pipe was waited for"
    os.kill(holder, signal.SIGKILL)
    assert {item: one.answer for item, one in done.items()} == {0: 0, 1: None, 2: 2}


def test_what_a_child_has_sent_before_it_died_counts(tmp_path: Path) -> None:
    def work(item: int, _: Watchdog) -> bytes:
        if item == 2:
            (tmp_path / "dead").touch()
            _exit()
        return bytes(20_000)  # two messages fit into a pipe

    with closing(ForkPool(work, bytes, 1, at_once=3)) as pool:
        pool.add([0, 1, 2])
        found = list(pool.over(0.0))  # on a busy machine some are over by then
        while not (tmp_path / "dead").exists():
            time.sleep(0.01)
        time.sleep(0.05)
        while pool.busy:
            found += pool.over()
    done = [(one.item, one.answer is not None) for one in found]
    assert sorted(done) == [(0, True), (1, True), (2, False)]


def test_a_part_with_a_long_name_is_refused_too() -> None:
    def work(item: int, watchdog: Watchdog) -> list[bool]:
        names = [f"{'long' * 5000}{index}" for index in range(3)]
        allowed: list[bool] = []
        for index, name in enumerate(names):
            allowed.append(watchdog.enter(name))
            if allowed[-1] and index == item:
                _exit()
        return allowed

    (done,) = forked([1], work, list[bool], 1)

    assert done.answer == [True, False, True]


def test_a_fork_that_is_refused_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError("no more processes")

    def work(item: int, _: Watchdog) -> int:
        return item

    with closing(ForkPool(work, int, 1)) as pool:
        pool.add([1])
        while pool.busy:
            list(pool.over())
        before = len(list(Path("/proc/self/fd").iterdir()))
        pool.add([2])
        with monkeypatch.context() as patch:
            patch.setattr(os, "fork", refused)
            with pytest.raises(BlockingIOError):
                list(pool.over())
        assert len(list(Path("/proc/self/fd").iterdir())) == before


GIBIBYTE = 1 << 30
SHORT = ForkLimits(seconds=0.3)


def test_a_child_gives_its_answer_and_changes_nothing_here() -> None:
    seen: list[int] = []
    assert in_child(lambda: (seen.append(1), "ä\n42")[1], str) == "ä\n42"
    assert not seen


def test_an_answer_may_be_none() -> None:
    assert in_child(lambda: None, None) is None


def crash() -> str:
    signal.raise_signal(signal.SIGSEGV)
    return "alive"


def leave() -> str:
    os.write(2, b"LLVM ERROR: no fixpoint\n")
    os._exit(1)


def spin() -> str:
    while True:
        pass


CRASHED, LEFT = "killed by SIGSEGV", "exited with code 1"


@pytest.mark.parametrize(
    ("work", "end"),
    [
        (crash, ExitStatus(CRASHED, CRASHED, external=False)),
        (leave, ExitStatus(LEFT, f"{LEFT}: LLVM ERROR: no fixpoint", external=False, exited=True)),
        (spin, ExitStatus("killed by SIGPROF", "killed by SIGPROF", external=False, hung=True)),
        (
            lambda: os._exit(0),
            ExitStatus("exited with code 0", "exited with code 0", external=False, exited=True),
        ),
    ],
)
def test_a_child_that_ends_early_is_reported(work: Callable[[], str], end: ExitStatus) -> None:
    assert in_child(work, str, SHORT) == end


def raise_crash() -> str:
    signal.raise_signal(signal.SIGSEGV)
    return ""


def test_a_crash_ends_a_child_though_a_library_ignores_it_here() -> None:
    libc = ctypes.CDLL(None)
    libc.signal.restype, libc.signal.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
    faulthandler.disable()  # pytest's would restore the handler of before
    before = libc.signal(signal.SIGSEGV, signal.SIG_IGN)
    try:
        assert in_child(raise_crash, str, SHORT) == ExitStatus(CRASHED, CRASHED, external=False)
    finally:
        libc.signal(signal.SIGSEGV, before)
        faulthandler.enable()


def test_our_own_mistakes_are_not_taken_for_crashes() -> None:
    def mistaken() -> str:
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours") as raised:
        in_child(mistaken, str)
    assert "in mistaken" in str(raised.value.__cause__)


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not keep this limit")
def test_a_child_cannot_have_all_memory() -> None:
    with pytest.raises(MemoryError):
        in_child(lambda: str(len(bytearray(8 * GIBIBYTE))), str, ForkLimits(memory_bytes=4 * GIBIBYTE))
