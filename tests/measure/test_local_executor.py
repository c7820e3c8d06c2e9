"""Workers: limits, reuse, and what becomes of a batch."""

import fcntl
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from planish.core import Candidate, Evaluation, Failed, Measured, Outcome, PlanishError, TargetError, evaluate
from planish.measure import exclusive
from planish.measure.executors import LocalExecutor
from planish.sandbox import Limits
from planish.testing.executors import Unmakeable
from planish.testing.synthetic import Action, LoggingSpec, ScriptedEvaluator, action
from sandbox.evaluators import WithEnvironment, WithLimits, WithNotes
from sandbox.processes import dies_out, living, read_log

LIMITS = Limits(build=0.5, run=0.5)
BROKEN = Unmakeable(LookupError("no such processor"))


@pytest.fixture
def limits() -> Limits:
    return LIMITS


def _only(answers: Iterator[Evaluation]) -> Outcome:
    (answer,) = answers
    return answer.outcome


def test_one_worker_keeps_the_order(executor: LocalExecutor) -> None:
    batch = [action("leave" if value == 20 else "measure", value) for value in range(50)]
    assert [result.candidate for result in evaluate(executor, batch)] == batch


def test_a_crash_costs_its_candidate_only(executor: LocalExecutor, log: Path) -> None:
    batch = [action("crash" if value % 10 == 5 else "measure", value) for value in range(30)]
    failed = [r.candidate for r in evaluate(executor, batch) if isinstance(r.outcome, Failed)]
    assert failed == [batch[5], batch[15], batch[25]]
    assert [text for _, text in read_log(log)] == [str(candidate) for candidate in batch]


def test_several_workers_share_a_batch(tmp_path: Path, log: Path) -> None:
    with LocalExecutor(LoggingSpec(log), workers=2, lock=tmp_path / "lock") as executor:
        list(evaluate(executor, [action("sleep", 0.02)] * 40))
    assert len({pid for pid, _ in read_log(log)}) == 2


def test_a_limit_holds_for_the_sum_of_a_stage(executor: LocalExecutor) -> None:
    outcome = _only(evaluate(executor, [Candidate((Action("sleep", 0.1),) * 20)]))
    assert outcome == Failed("build", "timeout", "over 0.5 s")


def test_every_stage_has_its_own_limit(executor: LocalExecutor) -> None:
    steps = (Action("sleep", 0.3, "build"), Action("sleep", 0.3, "run"), Action("sleep", 0.3, "verify"))
    assert isinstance(_only(evaluate(executor, [Candidate(steps)])), Measured)


def test_the_wait_for_the_machine_has_no_limit(executor: LocalExecutor, tmp_path: Path) -> None:
    list(evaluate(executor, [action()]))  # the worker has started
    descriptor = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    threading.Timer(1.6, os.close, [descriptor]).start()
    (answer,) = evaluate(executor, [action(stage="run")])
    assert isinstance(answer.outcome, Measured)
    assert answer.seconds["wait"] > 0.4


def test_timed_runs_of_two_workers_exclude_each_other(tmp_path: Path, log: Path) -> None:
    with LocalExecutor(LoggingSpec(log), workers=2, lock=tmp_path / "lock") as executor:
        while len({pid for pid, _ in read_log(log)}) < 2:  # both workers have started
            list(evaluate(executor, [action("sleep", 0.05)] * 4))
        answers = list(evaluate(executor, [action("sleep", 0.05, stage="run")] * 6))
        assert sum(answer.seconds["wait"] for answer in answers) > 0.05


def test_who_holds_the_machine_cannot_wait_for_workers(executor: LocalExecutor, tmp_path: Path) -> None:
    with exclusive(tmp_path / "lock"), pytest.raises(PlanishError, match="for ever"):
        list(evaluate(executor, [action()]))


def test_no_worker_is_blamed_for_a_slow_listener(executor: LocalExecutor) -> None:
    """A worker that prints much is blocked until we listen again; that is not its fault."""
    outcomes: list[Outcome] = []
    for answer in evaluate(executor, [action(), action("print", 1.0), action("print", 1.0)]):
        outcomes.append(answer.outcome)
        time.sleep(0.8)
    assert [type(outcome) for outcome in outcomes] == [Measured] * 3


def test_children_die_with_a_worker_that_is_ended(executor: LocalExecutor, log: Path) -> None:
    forks_and_hangs = Candidate((Action("fork"), Action("spin")))
    assert isinstance(_only(evaluate(executor, [forks_and_hangs])), Failed)
    assert dies_out(read_log(log)[0][0])


def test_children_die_with_a_worker_that_crashed(executor: LocalExecutor, log: Path) -> None:
    """They hold its pipes open, so that its end does not show there."""
    forks_and_dies = Candidate((Action("fork"), Action("leave", 3)))
    outcome = _only(evaluate(executor, [forks_and_dies]))
    assert outcome == Failed("build", "crash", "exited with code 3\nleaving")
    assert dies_out(read_log(log)[0][0])


def test_children_die_at_close(executor: LocalExecutor, log: Path) -> None:
    list(evaluate(executor, [action("fork")]))
    (group,) = {pid for pid, _ in read_log(log)}
    assert len(living(group)) == 2
    executor.close()
    assert dies_out(group)


@pytest.mark.parametrize("last", ["crash", "measure", "spin"])
def test_temporary_files_end_with_their_worker(tmp_path: Path, temporary: Path, last: str) -> None:
    with LocalExecutor(ScriptedEvaluator, limits=LIMITS, lock=tmp_path / "lock") as executor:
        list(evaluate(executor, [Candidate((Action("leave folder"), Action(last)))]))
        assert len(list(temporary.glob("*/*/file"))) == (last == "measure")
    assert list(temporary.iterdir()) == []


def test_what_an_evaluator_has_to_tell_is_known(tmp_path: Path) -> None:
    with LocalExecutor(WithNotes, workers=2, lock=tmp_path / "lock") as executor:
        list(evaluate(executor, [action("sleep", 0.02)] * 20))
        assert executor.notes == ("it is late",)
        executor.serve(ScriptedEvaluator)
        list(evaluate(executor, [action()]))
        assert executor.notes == ()


def test_a_worker_does_not_get_what_reaches_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "PGPASSWORD", "PLANISH_STORE"):
        monkeypatch.setenv(name, "1")
    with LocalExecutor(WithEnvironment, lock=tmp_path / "lock") as executor:
        list(evaluate(executor, [action()]))
        assert executor.notes == ("OMP_NUM_THREADS",)


@pytest.mark.slow
def test_a_worker_that_closes_its_pipes_is_replaced(executor: LocalExecutor) -> None:
    mute, last = (answer.outcome for answer in evaluate(executor, [action("close descriptors"), action()]))
    assert isinstance(mute, Failed)
    assert mute.reason == "crash"
    assert isinstance(last, Measured)


def test_a_worker_killed_while_idle_is_replaced_without_blame(executor: LocalExecutor, log: Path) -> None:
    list(evaluate(executor, [action()]))
    ((pid, _),) = read_log(log)
    os.kill(pid, signal.SIGKILL)
    assert dies_out(pid)
    assert isinstance(_only(evaluate(executor, [action()])), Measured)


def test_a_worker_is_replaced_at_the_end_of_its_life(tmp_path: Path, log: Path) -> None:
    with LocalExecutor(LoggingSpec(log), limits=Limits(lifetime=10), lock=tmp_path / "lock") as executor:
        answers = [answer for _ in range(3) for answer in evaluate(executor, [action()] * 32)]
    assert all(isinstance(answer.outcome, Measured) for answer in answers)
    lives = Counter(pid for pid, _ in read_log(log))
    assert sum(lives.values()) == 96
    assert len(lives) >= 3
    assert all(10 <= evaluations < 10 + 32 for evaluations in list(lives.values())[:-1])


def test_a_spec_may_ask_for_limits(tmp_path: Path, log: Path) -> None:
    with LocalExecutor(WithLimits(log), lock=tmp_path / "lock") as executor:
        assert _only(evaluate(executor, [action("spin")])) == Failed("build", "timeout", "over 0.3 s")
        executor.serve(WithLimits(log, Limits(build=0.4)))
        assert _only(evaluate(executor, [action("spin")])) == Failed("build", "timeout", "over 0.4 s")


def test_limits_that_suffice_for_several() -> None:
    several = Limits(build=1.0, lifetime=500), Limits(run=99.0), Limits(lifetime=7)
    assert Limits.widest(several) == Limits(run=99.0, lifetime=7)
    assert Limits.widest([Limits()]) == Limits()


def test_ctrl_c_is_left_to_the_parent(executor: LocalExecutor, log: Path) -> None:
    list(evaluate(executor, [action()]))
    ((pid, _),) = read_log(log)
    threading.Timer(0.05, os.kill, [pid, signal.SIGINT]).start()
    assert isinstance(_only(evaluate(executor, [action("sleep", 0.2)])), Measured)


def test_an_interrupted_batch_ends_what_is_under_way(executor: LocalExecutor, log: Path) -> None:
    answers = evaluate(executor, [action(), action("spin")])
    next(answers)
    with pytest.raises(KeyboardInterrupt):
        answers.throw(KeyboardInterrupt)
    assert dies_out(read_log(log)[0][0])
    assert isinstance(_only(evaluate(executor, [action()])), Measured)


def test_a_batch_ends_at_its_time_whatever_is_under_way(executor: LocalExecutor, log: Path) -> None:
    answers = evaluate(executor, [action(), action("spin"), action()])
    next(answers)
    executor.submit((), time.monotonic())
    assert list(answers) == []
    assert dies_out(read_log(log)[0][0])
    assert list(evaluate(executor, [action()], time.monotonic())) == []
    executor.serve(ScriptedEvaluator)
    assert isinstance(_only(evaluate(executor, [action()])), Measured)


def test_processes_are_kept_for_another_task(executor: LocalExecutor, log: Path, tmp_path: Path) -> None:
    list(evaluate(executor, [action()]))
    other = tmp_path / "other"
    executor.serve(LoggingSpec(other))
    list(evaluate(executor, [action()]))
    assert read_log(log) == read_log(other)


def test_another_task_may_follow_a_broken_one(tmp_path: Path) -> None:
    with LocalExecutor(BROKEN, lock=tmp_path / "lock") as executor:
        executor.serve(ScriptedEvaluator)
        assert isinstance(_only(evaluate(executor, [action()])), Measured)
        executor.serve(BROKEN)
        with pytest.raises(PlanishError, match="LookupError: no such processor"):
            list(evaluate(executor, [action()]))
        executor.serve(ScriptedEvaluator)
        assert isinstance(_only(evaluate(executor, [action()])), Measured)


def test_a_worker_that_dies_before_it_has_an_evaluator_is_an_error(tmp_path: Path) -> None:
    with (
        LocalExecutor(os.abort, lock=tmp_path / "lock") as executor,  # pyright: ignore[reportArgumentType]
        pytest.raises(PlanishError, match="killed by SIGABRT"),
    ):
        list(evaluate(executor, [action()]))


def test_a_spec_that_takes_too_long_is_an_error(tmp_path: Path) -> None:
    with (
        LocalExecutor(signal.pause, limits=Limits(worker=1.0), lock=tmp_path / "lock") as executor,  # pyright: ignore[reportArgumentType]
        pytest.raises(PlanishError, match="over 1 s"),
    ):
        list(evaluate(executor, [action()]))


def test_an_error_made_for_the_user_arrives_as_it_is(tmp_path: Path) -> None:
    with (
        LocalExecutor(
            Unmakeable(TargetError("no AVX2", "Ask for another.")), lock=tmp_path / "lock"
        ) as executor,
        pytest.raises(TargetError, match=r"no AVX2\. Ask for another") as caught,
    ):
        list(evaluate(executor, [action()]))
    assert caught.value.exit_code == TargetError.exit_code


def test_an_evaluator_that_needs_too_much_memory_asks_for_smaller_sizes(tmp_path: Path) -> None:
    greedy = partial(bytearray, 1 << 30)
    with (
        LocalExecutor(greedy, limits=Limits(memory_bytes=256 << 20), lock=tmp_path / "lock") as executor,  # pyright: ignore[reportArgumentType]
        pytest.raises(TargetError, match=r"as much memory as this takes.* Give smaller sizes"),
    ):
        list(evaluate(executor, [action()]))


def test_what_cannot_be_sent_is_an_error(executor: LocalExecutor) -> None:
    with pytest.raises(PlanishError, match="cannot be sent"):
        executor.serve(lambda: ScriptedEvaluator())  # noqa: PLW0108


def test_one_batch_at_a_time(executor: LocalExecutor) -> None:
    answers = evaluate(executor, [action(), action()])
    next(answers)
    with pytest.raises(PlanishError, match="under way"):
        next(evaluate(executor, [action()]))
    with pytest.raises(PlanishError, match="under way"):
        executor.serve(ScriptedEvaluator)


def test_a_closed_executor_says_so(executor: LocalExecutor) -> None:
    executor.close()
    with pytest.raises(PlanishError, match="closed"):
        list(evaluate(executor, [action()]))


def test_no_workers_is_an_error() -> None:
    with pytest.raises(PlanishError, match="at least 1"):
        LocalExecutor(ScriptedEvaluator, workers=0)
