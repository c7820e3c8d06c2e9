"""Real processes: Ctrl-C, kill -9, pipes without readers, full disks, terminals."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cli.conftest import PROGRAM, Kept
from planish.cli.output import READER_GONE, UNEXPECTED
from planish.core import StoreError
from planish.store import Run, open_store
from store.mounts import grow, small_disk

TESTS = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "cli.lattices"]
REAL = [sys.executable, "-c", "from planish.cli.script import main; main()"]
LONG = ["tune", "lattice 20x20x20", "--option", "pause=0.02", "--seconds", "600", "--workers", "1"]


@pytest.fixture
def environment(place: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TESTS), "PLANISH_STORE": str(place), "PYTHONWARNINGS": "error"}


@pytest.fixture
def searching(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Return a process that searches, and has measured something."""
    with subprocess.Popen(
        [*COMMAND, *LONG], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for("trials", process)
        yield process
        process.kill()


def wait_for(text: str, process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    while (line := process.stderr.readline()) and text not in line:
        pass
    assert line


def run(environment: dict[str, str], *command: str, shell: str = "") -> subprocess.CompletedProcess[str]:
    if shell:
        command = ("bash", "-c", f'set -o pipefail; "$@" {shell}', "-", *command)
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", check=False
    )


def only_run(place: Path) -> Run:
    with open_store(place, read_only=True) as store:
        (found,) = store.runs()
        return found


def test_ctrl_c_ends_the_search_and_keeps_the_best(searching: subprocess.Popen[str], place: Path) -> None:
    searching.send_signal(signal.SIGINT)
    out, err = searching.communicate()
    assert searching.returncode == 0, err
    assert "#1" in out
    assert "faster than the baseline" in out
    assert "Stopped. Run the same command to resume." in out
    assert only_run(place).status == "stopped"


def test_ctrl_c_again_leaves_the_comparison_out(searching: subprocess.Popen[str], place: Path) -> None:
    searching.send_signal(signal.SIGINT)
    wait_for("comparing ", searching)
    searching.send_signal(signal.SIGINT)
    out, err = searching.communicate()
    assert searching.returncode == 0, err
    assert "Undecided: not compared with the baseline." in out
    assert "best time of the search" in out
    assert only_run(place).status == "stopped"


def test_ctrl_c_before_anything_is_measured_keeps_nothing(environment: dict[str, str]) -> None:
    words = ["tune", PROGRAM, "--option", "pause=30"]
    with subprocess.Popen([*COMMAND, *words], env=environment, stderr=subprocess.PIPE, text=True) as process:
        wait_for("run ", process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read().splitlines()[-1] == (
            "planish: error: stopped before anything was measured. Run the same command to resume."
        )
    assert process.returncode == 128 + signal.SIGINT


def test_a_killed_search_goes_on_where_it_was(
    searching: subprocess.Popen[str], environment: dict[str, str], place: Path
) -> None:
    searching.kill()
    searching.communicate()
    before = only_run(place)
    assert before.status == "interrupted"
    assert before.trials > 0
    run(environment, *COMMAND, *LONG[:4], "--trials", str(before.trials + 5), "--finalists", "1")
    after = only_run(place)
    assert (after.id, after.status, after.trials) == (before.id, "finished", before.trials + 5)


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("words", ["searchers", "show", "show RUN --format json", "--help"])
def test_a_pipe_without_a_reader_is_left_silently(
    kept: Kept, environment: dict[str, str], words: str
) -> None:
    command = (COMMAND if "show" in words else REAL) + words.replace("RUN", kept.run).split()
    done = run(environment, *command, shell="| { exec <&-; sleep 0.1; }")
    assert (done.returncode, done.stderr) == (READER_GONE, "")


def test_a_terminal_that_cannot_show_every_character_is_no_obstacle(
    kept: Kept, environment: dict[str, str]
) -> None:
    done = run({**environment, "PYTHONIOENCODING": "cp437"}, *COMMAND, "show", kept.run)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1.72\\xd7 faster than the baseline." in done.stdout


def test_a_search_does_not_need_anybody_to_watch_it(environment: dict[str, str], place: Path) -> None:
    words = ["tune", PROGRAM, "--trials", "30", "--finalists", "1"]
    done = run(environment, *COMMAND, *words, shell="2>&1 | { exec <&-; sleep 0.1; }")
    assert (done.returncode, done.stderr) == (READER_GONE, "")
    assert (only_run(place).status, only_run(place).trials) == ("finished", 30)


@pytest.mark.slow(after=2)
@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-", ">&-"])
def test_closed_streams_are_no_obstacle(environment: dict[str, str], place: Path, closed: str) -> None:
    words = ["tune", PROGRAM, "--trials", "20", "--finalists", "1"]
    done = run(environment, *COMMAND, *words, shell=closed)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (only_run(place).status, only_run(place).trials) == ("finished", 20)
    assert run(environment, *COMMAND, "show", shell=closed).returncode == 0
    missing = run(environment, *COMMAND, "show", "absent", shell=closed)
    assert missing.returncode == StoreError.exit_code


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_output_that_cannot_be_written_is_an_error(environment: dict[str, str], unbuffered: str) -> None:
    done = run({**environment, "PYTHONUNBUFFERED": unbuffered}, *REAL, "searchers", shell="> /dev/full")
    assert done.returncode == UNEXPECTED
    assert done.stderr.startswith("planish: error: the disk is full: the output, or a temporary file,")
    assert done.stderr.count("\n") == 1
    missing = run(environment, *REAL, "show", "absent", shell="2> /dev/full")
    assert missing.returncode == StoreError.exit_code  # where the error cannot be written either


def test_a_full_disk_loses_nothing_that_is_stored(environment: dict[str, str], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    place = disk / "planish.db"
    words = ["tune", "lattice 30x30x30", "--finalists", "1", "--store", str(place)]
    with small_disk(disk, 400):
        done = run(environment, *COMMAND, *words, "--seconds", "60")
        assert done.returncode == StoreError.exit_code
        assert "the disk is full" in done.stderr.splitlines()[-1]
        before = only_run(place)
        assert before.trials > 10
        grow(disk)
        run(environment, *COMMAND, *words, "--trials", str(before.trials + 5))
        after = only_run(place)
    assert (after.id, after.trials) == (before.id, before.trials + 5)


def test_on_a_terminal_the_display_is_alive(environment: dict[str, str]) -> None:
    words = ["tune", PROGRAM, "--trials", "40", "--finalists", "1", "--option", "pause=0.01"]
    terminal, window = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *words], env=environment | {"TERM": "xterm"}, stdin=window, stdout=window, stderr=window
    ) as process:
        os.close(window)
        screen = b""
        with suppress(OSError):  # Linux ends a terminal so
            while data := os.read(terminal, 1 << 16):
                screen += data
        os.close(terminal)
    assert process.returncode == 0
    text = screen.decode()
    for part in (" left", " trials, ", " failed (build: ", "comparing 1 candidate with", "faster than the"):
        assert part in text
