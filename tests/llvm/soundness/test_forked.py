"""Children that answer, crash, exit, hang, and raise."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from planish.llvm.soundness.forked import Ended, in_child

GIBIBYTE = 1 << 30


def test_a_child_gives_its_answer_and_changes_nothing_here(tmp_path: Path) -> None:
    seen: list[int] = []
    assert in_child(lambda: (seen.append(1), "ä\n42")[1], tmp_path, 5, 4 * GIBIBYTE) == "ä\n42"
    assert not seen


def crash() -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "alive"


def leave() -> str:
    os.write(2, b"LLVM ERROR: no fixpoint\n")
    os._exit(1)


def spin() -> str:
    while True:
        pass


@pytest.mark.parametrize(
    ("work", "ended"),
    [
        (crash, Ended(False, "Segmentation fault")),
        (leave, Ended(False, "exit code 1: LLVM ERROR: no fixpoint")),
        (spin, Ended(True, "CPU time limit exceeded")),
    ],
)
def test_a_child_that_ends_early_is_told_of(work: Callable[[], str], ended: Ended, tmp_path: Path) -> None:
    assert in_child(work, tmp_path, 1, 4 * GIBIBYTE) == ended


def test_an_answer_is_not_taken_for_that_of_the_next_child(tmp_path: Path) -> None:
    assert in_child(lambda: "first", tmp_path, 5, 4 * GIBIBYTE) == "first"
    assert in_child(lambda: os._exit(0), tmp_path, 5, 4 * GIBIBYTE) == Ended(False, "exit code 0")


def test_our_own_mistakes_are_not_taken_for_crashes(tmp_path: Path) -> None:
    def mistaken() -> str:
        raise KeyError("ours")

    with pytest.raises(RuntimeError, match="KeyError: 'ours'"):
        in_child(mistaken, tmp_path, 5, 4 * GIBIBYTE)


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not keep this limit")
def test_a_child_cannot_have_all_memory(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="MemoryError"):
        in_child(lambda: str(len(bytearray(8 * GIBIBYTE))), tmp_path, 5, 4 * GIBIBYTE)
