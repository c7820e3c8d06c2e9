"""Signals at any moment, from the first on: no traceback, nothing lost, no process left behind."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Planish
from planish.core import StoppedError
from planish.store import open_store

TESTS = Path(__file__).parents[1]
QUICK = [sys.executable, "-m", "quick_runs", "loops"]
REAL = [sys.executable, "-c", "from planish.cli.script import main; main()"]
TUNE = ["tune", "C[m,n] += A[m,k] * B[k,n]", "--size", "m=24,n=32,k=16", "--workers", "1"]
STRANGE = ("Traceback", "Exception ignored", "error in planish", "Error:")


@pytest.fixture(autouse=True, scope="module")
def hangup_ends() -> Iterator[None]:
    """Undo what nohup did to the tests themselves: children inherit that SIGHUP is ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def starts(store: Path, *words: str, command: list[str] = REAL, **options: object) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PLANISH_STORE": str(store),
        "PYTHONWARNINGS": "error",
        "PYTHONPATH": str(TESTS),
    }
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *words], env=environment, **{**pipes, **options})  # pyright: ignore[reportCallIssue, reportArgumentType]


def listens(process: subprocess.Popen[str]) -> None:
    """Wait until a process handles SIGTERM: Python by itself does not, and until then Ctrl-C is Python's."""
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.001)


def left_behind(store: Path) -> list[int]:
    """List the processes that work for a store."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"PLANISH_STORE={store}\0".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def is_deserted(store: Path, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while left_behind(store) and time.monotonic() < end:
        time.sleep(0.02)
    return not left_behind(store)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("twice", [False, True])
def test_a_signal_at_any_moment(tmp_path: Path, number: signal.Signals, twice: bool) -> None:
    store, moments = tmp_path / "a.db", random.Random(number + 100 * twice)
    for latest in (0.02, 0.3, 1.0, 3.0):
        with starts(store, *TUNE, "--seconds", "600") as process:
            if number == signal.SIGINT:
                listens(process)
            time.sleep(moments.uniform(0, latest))
            process.send_signal(number)
            if twice:
                time.sleep(moments.uniform(0, 0.2))
                process.send_signal(number)
            out, err = process.communicate(timeout=300)
        assert not [word for word in STRANGE if word in out + err], err
        assert process.returncode in (0, -number, 128 + number), err
        assert is_deserted(store)
    with starts(store, *TUNE, "--trials", "5", "--finalists", "1") as process:
        _, err = process.communicate()
    assert process.returncode == 0, err
    with open_store(store, read_only=True) as opened:
        assert {run.status for run in opened.runs()} <= {"finished", "stopped", "interrupted"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_batch_system_ends_a_search_as_ctrl_c_does(tmp_path: Path, number: signal.Signals) -> None:
    """A search that nohup started goes on where its terminal is closed."""
    store, nohup = tmp_path / "a.db", number == signal.SIGTERM
    words = [*TUNE, "--seconds", "600", "--finalists", "1"]
    with starts(store, *words, command=QUICK, preexec_fn=_ignore_hang_ups if nohup else None) as process:
        _wait_for(process, "trials")
        if nohup:
            process.send_signal(signal.SIGHUP)
            _wait_for(process, "trials")
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "Stopped. Run the same command to resume." in out
    with open_store(store, read_only=True) as opened:
        (run,) = opened.runs()
    assert run.status == "stopped"


def test_what_is_stopped_before_anything_is_measured_tells_by_which_signal(tmp_path: Path) -> None:
    with starts(tmp_path / "a.db", *TUNE) as process:
        listens(process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (
        128 + signal.SIGTERM,
        "planish: error: interrupted. What was measured before is stored.\n",
    )
    assert StoppedError("stopped", number=signal.SIGHUP).exit_code == 129


def _ignore_hang_ups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    while (line := process.stderr.readline()) and text not in line:
        pass
    assert line


ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("number", ENDING)
def test_a_comparison_of_searchers_tells_by_which_signal_it_was_stopped(
    tmp_path: Path, number: signal.Signals
) -> None:
    words = ["compare", TUNE[1], *TUNE[2:], "--trials", "100000", "--seeds", "1"]
    with starts(tmp_path / "a.db", *words) as process:
        _wait_for(process, "trials")
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 128 + number
    assert not [word for word in STRANGE if word in err], err


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have this process handle the signals, as the command line does."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in ENDING}
    monkeypatch.setattr("planish.core.process._last", signal.SIGINT)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


STOPPED = {
    "planish.train.corpus.build.packages_of": ("corpus", "build", "out", "--ir", "nowhere"),
    "planish.train.labeling.run.label_corpus": ("corpus", "label", "corpus", "out"),
    "planish.cli.batch_table.tune_parts": ("tune", "module.ll", "--per-function"),
    "planish.tuning.batch.tune_parts": ("bench-passes", "module.ll", "--trials", "1"),
}


@pytest.mark.usefixtures("handled")
@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("work", STOPPED)
def test_each_command_tells_by_which_signal_it_was_stopped(
    planish: Planish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str, number: signal.Signals
) -> None:
    def stopped(*_: object, **__: object) -> Iterator[None]:
        signal.raise_signal(number)
        return iter(())

    def parts(*_: object, **__: object) -> Iterator[None]:
        signal.raise_signal(number)
        yield

    monkeypatch.chdir(tmp_path)
    Path("module.ll").write_text("define i32 @f(i32 %x) {\n  ret i32 %x\n}\n")
    monkeypatch.setattr(work, parts if work.endswith("tune_parts") else stopped)
    said = planish(*STOPPED[work])
    assert said.code == 128 + number, said
    assert said.error.startswith("stopped")
