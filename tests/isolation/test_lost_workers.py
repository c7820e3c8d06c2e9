"""What others do to a worker is not the fault of its candidate: kills, stops, load."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from isolation.actors import Dying, Humble, Hurry
from isolation.processes import diary
from planish.core import Candidate, Failed, Lost, Measured, PlanishError, Stage, evaluate
from planish.executors import LocalExecutor
from planish.isolation import Limits
from planish.testing.acting import Act, Mortal, act

LIMITS = Limits(build=1.0, verify=1.0, run=1.0, worker=10.0)


@pytest.fixture
def limits() -> Limits:
    return LIMITS


@contextmanager
def striking(book: Path, *blows: tuple[float, signal.Signals]) -> Generator[None]:
    """Send the first who writes into the diary signals, each so many seconds after the last."""

    def strike() -> None:
        while not diary(book):
            time.sleep(0.005)
        for after, number in blows:
            time.sleep(after)
            os.kill(diary(book)[0][0], number)

    striker = threading.Thread(target=strike)
    striker.start()
    yield
    striker.join()


@pytest.mark.parametrize("stage", ["transform", "build", "verify", "run", "worker"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_who_is_killed_in_a_stage_is_measured_by_another(
    executor: LocalExecutor, book: Path, stage: Stage, number: signal.Signals
) -> None:
    candidate = Candidate((Act("sleep", 0.3, stage),))
    with striking(book, (0.1, number)):
        (answer,) = evaluate(executor, [candidate])
    assert isinstance(answer.outcome, Measured)
    assert len({pid for pid, _ in diary(book)}) == 2
    assert [cause.startswith(f"killed by {number.name}") for cause in executor.losses] == [True]


def test_a_pause_shorter_than_the_limit_costs_nothing(executor: LocalExecutor, book: Path) -> None:
    with striking(book, (0.3, signal.SIGSTOP), (0.5, signal.SIGCONT)):
        (answer,) = evaluate(executor, [Candidate((Act("sleep", 0.8),))])
    assert isinstance(answer.outcome, Measured)


def test_who_is_stopped_for_long_is_measured_by_another(executor: LocalExecutor, book: Path) -> None:
    with striking(book, (0.0, signal.SIGSTOP)):
        (answer,) = evaluate(executor, [Candidate((Act("sleep", 0.3),))])
    assert isinstance(answer.outcome, Measured)
    assert executor.losses == {"its worker was stopped": 1}


def test_a_failure_after_a_stop_is_not_believed(tmp_path: Path, book: Path) -> None:
    with LocalExecutor(Hurry(book), lock=tmp_path / "lock") as executor:
        with striking(book, (0.05, signal.SIGSTOP), (1.6, signal.SIGCONT)):
            (answer,) = evaluate(executor, [Candidate((Act("sleep", 0.3),))])
        assert isinstance(answer.outcome, Measured)
        (late,) = evaluate(executor, [Candidate((Act("sleep", 1.6),))])
        assert isinstance(late.outcome, Failed)


def test_who_is_stopped_each_time_is_lost(tmp_path: Path) -> None:
    stopping = Mortal(tmp_path / "age", 99, signal.SIGSTOP)
    with LocalExecutor(stopping, limits=Limits(build=0.3), lock=tmp_path / "lock") as executor:
        (answer,) = evaluate(executor, [act()])
    assert answer.outcome == Lost("build", "stopped", "its worker was stopped")


def test_a_hang_is_no_excuse(executor: LocalExecutor) -> None:
    outcomes = [answer.outcome for answer in evaluate(executor, [act("spin in C"), act("spin")])]
    assert outcomes == [Failed("build", "timeout", "over 1 s")] * 2


def test_who_gets_no_processor_is_lost_and_no_failure(tmp_path: Path) -> None:
    processor = min(os.sched_getaffinity(0))
    burner = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nprint(flush=True)\nwhile True: pass"
    limits, lock = Limits(build=0.4, attempts=1), tmp_path / "lock"
    with (
        subprocess.Popen([sys.executable, "-c", burner], stdout=subprocess.PIPE) as burning,
        LocalExecutor(Humble(processor), limits=limits, lock=lock) as executor,
    ):
        try:
            assert burning.stdout is not None
            burning.stdout.readline()
            (answer,) = evaluate(executor, [act("spin")])
        finally:
            burning.kill()
    assert answer.outcome == Lost("build", "starved", "its worker was starved")


def test_workers_that_are_killed_as_they_start_are_replaced(tmp_path: Path) -> None:
    with LocalExecutor(Dying(tmp_path / "age", 2), lock=tmp_path / "lock") as executor:
        (answer,) = evaluate(executor, [act()])
    assert isinstance(answer.outcome, Measured)


def test_but_not_for_ever(tmp_path: Path) -> None:
    with (
        LocalExecutor(Dying(tmp_path / "age", 99), lock=tmp_path / "lock") as executor,
        pytest.raises(PlanishError, match="cannot make its evaluator: killed by SIGKILL"),
    ):
        list(evaluate(executor, [act()]))
