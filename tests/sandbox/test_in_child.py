"""Children that answer, crash, exit, hang, and raise."""

import os
import signal
import sys
from collections.abc import Callable

import pytest

from planish.sandbox import ExitStatus, ForkLimits, in_child

GIBIBYTE = 1 << 30
SHORT = ForkLimits(seconds=0.3)


def test_a_child_gives_its_answer_and_changes_nothing_here() -> None:
    seen: list[int] = []
    assert in_child(lambda: (seen.append(1), "ä\n42")[1], str) == "ä\n42"
    assert not seen


def test_an_answer_may_be_none() -> None:
    assert in_child(lambda: None, None) is None


def crash() -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
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
        (crash, ExitStatus(CRASHED, CRASHED, from_outside=False)),
        (leave, ExitStatus(LEFT, f"{LEFT}: LLVM ERROR: no fixpoint", from_outside=False)),
        (spin, ExitStatus("killed by SIGPROF", "killed by SIGPROF", from_outside=False, hung=True)),
        (lambda: os._exit(0), ExitStatus("exited with code 0", "exited with code 0", from_outside=False)),
    ],
)
def test_a_child_that_ends_early_is_told_of(work: Callable[[], str], end: ExitStatus) -> None:
    assert in_child(work, str, SHORT) == end


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
