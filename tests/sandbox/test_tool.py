"""Programs of others: what they are given and give, and that nothing of them outlives their time."""

import time
from pathlib import Path

import pytest

from planish.sandbox.tool import run_tool


def test_what_it_is_given_and_gives(tmp_path: Path) -> None:
    ran = run_tool(
        ["sh", "-c", 'cat; pwd; echo "$WORD" >&2; exit 3'],
        seconds=60,
        given=b"in\n",
        folder=tmp_path,
        variables={"WORD": "said"},
    )
    assert (ran.code, ran.output.decode(), ran.message) == (3, f"in\n{tmp_path}\n", "said\n")


def test_input_that_is_not_read_is_no_error() -> None:
    assert run_tool(["true"], seconds=60, given=b"x" * (1 << 20)).code == 0


def test_a_signal_is_a_negative_code() -> None:
    assert run_tool(["sh", "-c", "kill -9 $$"], seconds=60).code == -9


def test_what_it_started_ends_with_its_time(tmp_path: Path) -> None:
    """A compiler's driver starts the compiler, which must not continue where no process waits for it."""
    noted = tmp_path / "pid"
    script = f"sleep 300 & echo $! > {noted}.part; mv {noted}.part {noted}; wait"
    seconds = 0.5
    while not noted.exists():  # a busy machine may take longer to start it
        with pytest.raises(TimeoutError, match=r"sh did not end within"):
            run_tool(["sh", "-c", script], seconds=seconds)
        seconds *= 2
    assert is_gone(int(noted.read_text()))


def is_gone(pid: int, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_what_cannot_be_started() -> None:
    with pytest.raises(FileNotFoundError):
        run_tool(["no-such-program"], seconds=1)
