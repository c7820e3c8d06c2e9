"""Processes of a comparison that are killed: they are replaced, and their rounds done again."""

import fcntl
import math
import os
import random
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from planish.core import Candidate, EvaluatorSpec, Objective, PlanishError
from planish.executors import LocalExecutor
from planish.measure import Plan, Variant, remeasure
from planish.sandbox import Limits, LostError
from planish.testing.acting import Actor, Diary, act
from sandbox.actors import Signed, Stillborn
from sandbox.processes import diary

COST = Objective("cost")
PLAN = Plan(processes=3, rounds=2, most=3)


@contextmanager
def killing(book: Path, times: int, seed: int, number: signal.Signals) -> Generator[list[int]]:
    """Kill whoever wrote into the diary last, so many times, at random moments."""
    killed, over, moments = list[int](), threading.Event(), random.Random(seed)

    def kill() -> None:
        while len(killed) < times and not over.wait(moments.uniform(0, 0.4)):
            for pid, _ in diary(book)[-1:]:
                if pid not in killed:
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
                        killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    yield killed
    over.set()
    killer.join()


@pytest.mark.parametrize(("seed", "number"), [(0, signal.SIGKILL), (1, signal.SIGKILL), (2, signal.SIGTERM)])
def test_a_comparison_outlives_its_processes(tmp_path: Path, seed: int, number: signal.Signals) -> None:
    book = tmp_path / "diary"
    spec = Signed(book)
    base, *others = (Variant(f"#{place}", act(), spec) for place in range(4))
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    with killing(book, 2, seed, number) as killed:  # three in a row would be one too many
        paired = remeasure(base, others, COST, start, PLAN)
    assert killed
    assert [sampled.verdict for sampled in paired] == ["same"] * 4
    for sampled in paired:
        assert [len(row) for row in sampled.values] == [2, 2, 2]
    processes = [[set(sampled.samples[at : at + 2]) for at in (0, 2, 4)] for sampled in paired]
    assert all(row == processes[0] for row in processes), "who is compared was not in one process"
    assert all(len(process) == 1 for process in processes[0]), "a round was mended, not done again"
    assert len({pid for process in processes[0] for pid in process}) == 3


class _Between(LocalExecutor):
    """Loses the process that wrote into the diary last, once, while it has nothing to do.

    Args:
        book: the diary.
        killed: whom; added to.
        spec: as usual.
        workers: as usual.
        lock: as usual.
    """

    def __init__(
        self, book: Path, killed: list[int], spec: EvaluatorSpec, *, workers: int = 1, lock: Path
    ) -> None:
        super().__init__(spec, workers=workers, lock=lock)
        self._book, self._killed = book, killed

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        if not self._killed and (written := diary(self._book)):
            pid, _ = written[-1]
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it is dead, and still to be buried
            self._killed.append(pid)
        super().submit(candidates, deadline)


def test_a_process_that_is_lost_between_two_rounds_does_them_all_again(tmp_path: Path) -> None:
    spec = Signed(tmp_path / "diary", 0.0)
    base, other = (Variant(f"#{place}", act(), spec) for place in range(2))
    killed = list[int]()
    start = partial(_Between, tmp_path / "diary", killed, lock=tmp_path / "lock")
    paired = remeasure(base, [other], COST, start, PLAN)
    assert killed
    for sampled in paired:
        assert [len(row) for row in sampled.values] == [2, 2, 2]
        assert all(len(set(sampled.samples[at : at + 2])) == 1 for at in (0, 2, 4))


def test_who_is_lost_again_and_again_is_left_out_alone(tmp_path: Path) -> None:
    deadly = Variant("deadly", act("signal", signal.SIGKILL), Actor)
    base, harmless = (Variant(name, act(), Actor) for name in ("base", "harmless"))
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    _, one, other = remeasure(base, [deadly, harmless], COST, start, PLAN)
    assert (one.verdict, other.verdict) == ("undecided", "same")
    assert one.failures == ()
    assert one.why.startswith("3 processes were lost while they measured it: killed by SIGKILL")


def test_if_it_is_the_baseline_nothing_is_compared(tmp_path: Path) -> None:
    base = Variant("base", act("signal", signal.SIGKILL), Actor)
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    with pytest.raises(LostError, match="3 processes were lost while they measured it: killed by SIGKILL"):
        remeasure(base, [Variant("other", act(), Actor)], COST, start, PLAN)


@pytest.mark.parametrize("name", ["spin", "crash"])
def test_a_variant_that_ends_its_process_is_measured_once(tmp_path: Path, name: str) -> None:
    """One that hangs keeps the machine until its limit, and others wait: it is not tried again."""
    book, lock = tmp_path / "diary", tmp_path / "lock"
    bad = Variant("bad", act(name, 7.0, "run"), Diary(book))
    base, good = (Variant(each, act(), Diary(book)) for each in ("base", "good"))
    start = partial(LocalExecutor, lock=lock, limits=Limits(run=0.5))
    _, failed, other = remeasure(base, [bad, good], COST, start, PLAN)
    assert (failed.verdict, other.verdict) == ("failed", "same")
    assert failed.why == {"spin": "run: timeout", "crash": "run: crash"}[name]
    assert [len(row) for row in other.values] == [2, 2, 2]
    assert book.read_text().count(f"'{name}'") == 1
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_baseline_that_ends_its_process_is_an_error_at_once(tmp_path: Path) -> None:
    book = tmp_path / "diary"
    base, other = Variant("base", act("crash"), Diary(book)), Variant("other", act(), Diary(book))
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    with pytest.raises(PlanishError, match="the baseline failed: build: crash"):
        remeasure(base, [other], COST, start, PLAN)
    assert book.read_text().count("'crash'") == 1


def compared_after(deaths: int, folder: Path) -> list[tuple[str, list[int]]]:
    """Compare two variants, of whose processes so many are killed as they start."""
    spec = Stillborn(folder / "diary", 0.0, folder / "births", deaths)
    base, other = (Variant(f"#{place}", act(), spec) for place in range(2))
    paired = remeasure(base, [other], COST, partial(LocalExecutor, lock=folder / "lock"), PLAN)
    return [(sampled.verdict, [len(row) for row in sampled.values]) for sampled in paired]


def test_processes_that_are_killed_while_they_start_are_started_again(tmp_path: Path) -> None:
    assert compared_after(4, tmp_path) == [("same", [2, 2, 2])] * 2


def test_a_comparison_whose_processes_are_always_killed_ends(tmp_path: Path) -> None:
    with pytest.raises(LostError, match="one process after the other was lost: a worker cannot make"):
        compared_after(1000, tmp_path)
    assert (tmp_path / "births").stat().st_size == 3 * 3 * 2
