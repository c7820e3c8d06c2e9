"""Local workers that are lost, and processes that they leave."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from planish.core import Candidate, Failed, Lost, LostError, Measured, PlanishError, Stage, evaluate
from planish.measure.executors import LocalExecutor
from planish.sandbox import Limits
from planish.sandbox.linux import descendants
from planish.testing.executors import outcomes_of
from planish.testing.synthetic import Action, KilledEvaluator, LoggingSpec, action
from sandbox.evaluators import (
    FORGERIES,
    ClosedThenKilled,
    ExitingSpec,
    ForgingEvaluator,
    KilledBeforeCreated,
    KilledWhileCreated,
    LowPriority,
    TimedSpec,
)
from sandbox.processes import dies_out, living, read_log

LIMITS = Limits(build=1.0, verify=1.0, run=1.0, worker=10.0)


@pytest.fixture
def limits() -> Limits:
    return LIMITS


@contextmanager
def signalling(log: Path, *signals: tuple[float, signal.Signals]) -> Generator[None]:
    """Send the first process that writes into the log signals, each so many seconds after the last."""

    def strike() -> None:
        while not read_log(log):
            time.sleep(0.005)
        for after, number in signals:
            time.sleep(after)
            with suppress(ProcessLookupError):  # it was ended meanwhile
                os.kill(read_log(log)[0][0], number)

    striker = threading.Thread(target=strike)
    striker.start()
    yield
    striker.join()


@pytest.mark.slow(after=6)
@pytest.mark.parametrize("stage", ["run", "transform", "build", "verify", "worker"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_who_is_killed_in_a_stage_is_measured_by_another(
    executor: LocalExecutor, log: Path, stage: Stage, number: signal.Signals
) -> None:
    candidate = Candidate((Action("sleep", 0.3, stage),))
    with signalling(log, (0.1, number)):
        (answer,) = evaluate(executor, [candidate])
    assert isinstance(answer.outcome, Measured)
    assert len({pid for pid, _ in read_log(log)}) == 2
    assert [cause.startswith(f"killed by {number.name}") for cause in executor.losses] == [True]


def test_a_pause_shorter_than_the_limit_costs_nothing(executor: LocalExecutor, log: Path) -> None:
    with signalling(log, (0.3, signal.SIGSTOP), (0.5, signal.SIGCONT)):
        (answer,) = evaluate(executor, [Candidate((Action("sleep", 0.8),))])
    assert isinstance(answer.outcome, Measured)


def test_who_is_stopped_for_long_is_measured_by_another(executor: LocalExecutor, log: Path) -> None:
    with signalling(log, (0.0, signal.SIGSTOP)):
        (answer,) = evaluate(executor, [Candidate((Action("sleep", 0.3),))])
    assert isinstance(answer.outcome, Measured)
    assert executor.losses == {"its worker was stopped": 1}


def test_a_worker_that_goes_on_after_it_was_given_up_answers_no_second_time(
    tmp_path: Path, log: Path
) -> None:
    """It is stopped for several times its limit, then goes on; a retried worker may answer at that moment."""
    limits = Limits(build=0.4)
    with LocalExecutor(LoggingSpec(log), workers=2, limits=limits, lock=tmp_path / "lock") as executor:
        for until in (0.3, 0.6, 0.9):
            log.unlink(missing_ok=True)
            with signalling(log, (0.0, signal.SIGSTOP), (until, signal.SIGCONT)):
                answers = list(evaluate(executor, [Candidate((Action("sleep", 0.1),))] * 6))
            assert len(answers) == 6
            assert all(isinstance(answer.outcome, Measured) for answer in answers)


def test_after_a_hang_the_next_candidate_has_a_fresh_process(executor: LocalExecutor, log: Path) -> None:
    """It waits in native code for what is never set, and has started a process that waits too."""
    hangs = Candidate((Action("fork"), Action("spin in C")))
    first, second = (answer.outcome for answer in evaluate(executor, [hangs, action()]))
    assert first == Failed("build", "timeout", "over 1 s")
    assert isinstance(second, Measured)
    (old, _), (new, _) = read_log(log)
    assert old != new
    assert dies_out(old)


def test_an_unknown_exit_code_is_a_row_of_its_candidate_and_the_rest_goes_on(executor: LocalExecutor) -> None:
    outcomes = [
        answer.outcome for answer in evaluate(executor, [action("leave", 77), action(), action("leave", 77)])
    ]
    assert outcomes[0] == outcomes[2] == Failed("build", "crash", "exited with code 77\nleaving")
    assert isinstance(outcomes[1], Measured)


@pytest.mark.parametrize("what", FORGERIES)
def test_a_worker_whose_reply_is_forged_is_ended_and_its_candidate_fails(tmp_path: Path, what: str) -> None:
    forger = ForgingEvaluator(what, tmp_path / "executed")
    with LocalExecutor(forger, lock=tmp_path / "lock") as executor:
        outcomes = [answer.outcome for answer in evaluate(executor, [action(), Candidate(), Candidate()])]
    assert isinstance(outcomes[0], Failed)
    assert outcomes[0].detail.startswith("sent what is not an answer")
    assert [type(outcome) for outcome in outcomes[1:]] == [Measured] * 2
    assert not (tmp_path / "executed").exists()


@pytest.mark.slow
def test_a_failure_after_a_stop_is_not_believed(tmp_path: Path, log: Path) -> None:
    with LocalExecutor(TimedSpec(log), lock=tmp_path / "lock") as executor:
        with signalling(log, (0.05, signal.SIGSTOP), (1.6, signal.SIGCONT)):
            (answer,) = evaluate(executor, [Candidate((Action("sleep", 0.3),))])
        assert isinstance(answer.outcome, Measured)
        (late,) = evaluate(executor, [Candidate((Action("sleep", 1.6),))])
        assert isinstance(late.outcome, Failed)


def test_who_is_stopped_each_time_is_lost(tmp_path: Path) -> None:
    stopping = KilledEvaluator(tmp_path / "count", 99, signal.SIGSTOP)
    with LocalExecutor(stopping, limits=Limits(build=0.3), lock=tmp_path / "lock") as executor:
        (answer,) = evaluate(executor, [action()])
    assert answer.outcome == Lost("build", "stopped", "its worker was stopped")


def test_a_hang_is_no_excuse(executor: LocalExecutor) -> None:
    outcomes = outcomes_of(executor, [action("spin in C"), action("spin")])
    assert outcomes == [Failed("build", "timeout", "over 1 s")] * 2


@pytest.mark.slow
def test_who_gets_no_processor_is_lost_and_no_failure(tmp_path: Path) -> None:
    processor = min(os.sched_getaffinity(0))
    burner = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nprint(flush=True)\nwhile True: pass"
    limits, lock = Limits(build=0.4, attempts=1), tmp_path / "lock"
    with (
        subprocess.Popen([sys.executable, "-c", burner], stdout=subprocess.PIPE) as burning,
        LocalExecutor(LowPriority(processor), limits=limits, lock=lock) as executor,
    ):
        try:
            assert burning.stdout is not None
            burning.stdout.readline()
            (answer,) = evaluate(executor, [action("spin")])
        finally:
            burning.kill()
    assert answer.outcome == Lost("build", "starved", "its worker was starved")


def test_a_worker_that_is_slow_to_die_of_a_signal_is_lost_and_no_crash(tmp_path: Path) -> None:
    with LocalExecutor(ClosedThenKilled(tmp_path / "count", 1), lock=tmp_path / "lock") as executor:
        (answer,) = evaluate(executor, [action()])
    assert isinstance(answer.outcome, Measured)
    assert [cause.startswith("killed by SIGKILL") for cause in executor.losses] == [True]


def test_workers_that_are_killed_as_they_start_are_replaced(tmp_path: Path) -> None:
    with LocalExecutor(KilledWhileCreated(tmp_path / "count", 2), lock=tmp_path / "lock") as executor:
        (answer,) = evaluate(executor, [action()])
    assert isinstance(answer.outcome, Measured)


def test_workers_that_exit_as_they_start_are_replaced(tmp_path: Path, log: Path) -> None:
    exiting = KilledBeforeCreated(log, creations=tmp_path / "creations", times=2, code=77)
    with LocalExecutor(exiting, lock=tmp_path / "lock") as executor:
        (answer,) = evaluate(executor, [action()])
    assert isinstance(answer.outcome, Measured)


def test_those_that_always_do_are_given_up(tmp_path: Path, log: Path) -> None:
    exiting = KilledBeforeCreated(log, creations=tmp_path / "creations", times=99, code=77)
    with (
        LocalExecutor(exiting, lock=tmp_path / "lock") as executor,
        pytest.raises(LostError, match="cannot make its evaluator: exited with code 77"),
    ):
        list(evaluate(executor, [action()]))


def test_a_worker_that_exits_while_it_is_idle_is_replaced(tmp_path: Path, log: Path) -> None:
    with LocalExecutor(ExitingSpec(log), lock=tmp_path / "lock") as executor:
        for _ in range(2):
            (answer,) = evaluate(executor, [action()])
            assert isinstance(answer.outcome, Measured)
            assert dies_out(read_log(log)[-1][0])
    assert not executor.losses


def test_but_not_for_ever(tmp_path: Path) -> None:
    with (
        LocalExecutor(KilledWhileCreated(tmp_path / "count", 99), lock=tmp_path / "lock") as executor,
        pytest.raises(PlanishError, match="cannot make its evaluator: killed by SIGKILL"),
    ):
        list(evaluate(executor, [action()]))


PARENT = """
import sys
from pathlib import Path
from planish.core import Candidate, evaluate
from planish.measure.executors import LocalExecutor
from planish.testing.synthetic import Action, LoggingSpec
log, lock, *names = sys.argv[1:]
executor = LocalExecutor(LoggingSpec(Path(log)), lock=Path(lock))
print("answered", *evaluate(executor, [Candidate()]), flush=True)
print(*evaluate(executor, [Candidate(tuple(Action(name) for name in names))]), flush=True)
input()
"""


@pytest.mark.parametrize("actions", [["spin"], ["spin in C"], ["fork", "spin"], ["fork"]])
def test_workers_die_with_a_parent_that_is_killed(tmp_path: Path, actions: list[str]) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", PARENT, str(log), str(tmp_path / "lock"), *actions]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        _wait_for(log, lines=2)
        ((group, _), _) = read_log(log)
        while len(living(group)) < 1 + actions.count("fork"):
            assert parent.poll() is None
        parent.kill()
    assert dies_out(group)


def _wait_for(log: Path, lines: int) -> None:
    while len(read_log(log)) < lines:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_process_may_end_while_its_threads_are_looked_at() -> None:
    for _ in range(200):
        process = subprocess.Popen(["true"])
        waiting = threading.Thread(target=process.wait)
        waiting.start()
        while waiting.is_alive():
            assert descendants(process.pid)[0] == process.pid
        waiting.join()
