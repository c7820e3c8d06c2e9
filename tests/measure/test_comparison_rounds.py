"""Interleaved rounds of variants, and rounds that are lost."""

import fcntl
import math
import os
import pickle
import random
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fake_executors import FakeExecutor
from measure.finder import Finder
from planish.core import (
    Candidate,
    Evaluation,
    EvaluatorSpec,
    LostError,
    Measured,
    Objective,
    PlanishError,
    evaluate,
    rng,
)
from planish.measure import (
    Clocks,
    CutShortError,
    PairedTimer,
    Plan,
    Runs,
    Samples,
    SharedBaselineTime,
    Timing,
    Variant,
    comparison,
    comparison_rounds,
)
from planish.measure.comparison import remeasure
from planish.measure.comparison_rounds import VariantTag
from planish.measure.executors import LocalExecutor
from planish.sandbox import Limits
from planish.testing.synthetic import LoggingSpec, ScriptedEvaluator, action
from sandbox.evaluators import KilledBeforeCreated, PidSpec
from sandbox.processes import read_log

COST = Objective("cost")


class Slow(FakeExecutor):
    """A machine on which a process takes some seconds to start, and each evaluation some.

    Args:
        start: seconds.
        each: seconds by variant; the baseline is the first.
    """

    def __init__(self, start: float, each: Sequence[float]) -> None:
        super().__init__()
        self.now, self.processes = 0.0, 0
        self.turns: list[tuple[int, int]] = []
        self._start, self._each = start, each

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> "Slow":
        del spec, workers
        self.now += self._start
        self.processes += 1
        return self

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        tag = candidate.steps[0]
        assert isinstance(tag, VariantTag)
        self.now += self._each[tag.variant]
        self.turns.append((self.processes, tag.variant))
        return Evaluation(candidate, Measured({"cost": 1.0 + tag.variant}))


def measured(
    machine: Slow, count: int, seconds: float, objective: Objective = COST
) -> tuple[list[str], tuple[int, int]]:
    """Compare so many variants; return the verdicts, and processes and rounds of the baseline."""
    variants = [Variant(str(index), action(), ScriptedEvaluator) for index in range(count + 1)]
    with pytest.MonkeyPatch.context() as patch:
        for module in (comparison, comparison_rounds):
            patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: machine.now))
        base, *others = remeasure(variants[0], variants[1:], objective, machine, Plan(seconds=seconds))
    return [sampled.verdict for sampled in others], (len(base.values), len(base.values[0]))


def test_with_time_nothing_is_cut() -> None:
    machine = Slow(1, [1, 1, 1])
    assert measured(machine, 2, seconds=50) == (["worse", "worse"], (5, 3))
    assert machine.now == 5 * (1 + 3 * 3)


def test_the_last_entrants_go_first() -> None:
    machine = Slow(1, [1, 1, 1])
    assert measured(machine, 2, seconds=40) == (["worse", "undecided"], (5, 3))
    assert machine.now == (1 + 2 * 3 + 2) + 4 * (1 + 3 * 2)
    assert {variant for process, variant in machine.turns if process > 1} == {0, 1}


def test_then_rounds_go() -> None:
    machine = Slow(1, [1, 2])
    assert measured(machine, 1, seconds=40) == (["worse"], (5, 2))
    assert machine.now == (1 + 3 * 3) + 4 * (1 + 2 * 3)


def test_who_fits_into_the_rounds_of_the_first_is_kept() -> None:
    machine = Slow(1, [1, 2, 2, 2])
    assert measured(machine, 3, seconds=32) == (["worse", "worse", "undecided"], (5, 1))
    assert {variant for process, variant in machine.turns if process > 1} == {0, 1, 2}


def test_then_processes_go() -> None:
    machine = Slow(1, [1, 2, 2, 2])
    assert measured(machine, 3, seconds=17) == (["worse", "undecided", "undecided"], (3, 1))
    assert machine.now <= 17


def test_the_baseline_and_the_first_are_measured_in_two_processes() -> None:
    machine = Slow(10, [10, 10, 10])
    assert measured(machine, 2, seconds=1) == (["worse", "undecided"], (2, 1))
    assert machine.now == 2 * (10 + 20)


def test_a_machine_that_becomes_slow_has_fewer_rounds_of_all() -> None:
    class Slower(Slow):
        def __call__(self, spec: EvaluatorSpec, /, *, workers: int = 1) -> Slow:
            self._start *= 4
            return super().__call__(spec, workers=workers)

    verdicts, shape = measured(Slower(0.01, [1, 1]), 1, seconds=30)
    assert verdicts == ["worse"]
    assert shape[1] == 1


@pytest.mark.parametrize(("most", "processes"), [(5, 2), (7, 3), (8, 3)])
def test_a_batch_that_is_ended_early_ends_the_comparison_if_two_processes_are_done(
    most: int, processes: int
) -> None:
    class Cut(Slow):
        def results(self) -> Iterator[Evaluation]:
            for answer in super().results():
                if len(self.turns) > most:
                    return
                yield answer

    assert measured(Cut(1, [1, 1]), 1, seconds=11) == (["worse"], (processes, 1))


def test_a_batch_that_is_ended_before_two_processes_are_done_tells_nothing() -> None:
    class Cut(Slow):
        def results(self) -> Iterator[Evaluation]:
            yield from list(super().results())[: 3 - len(self.turns)]

    with pytest.raises(CutShortError):
        measured(Cut(1, [1, 1]), 1, seconds=9)


@example(start=0.25, each=[1 / 64, 1 / 64], seconds=1.0)
@given(st.floats(0, 5), st.lists(st.floats(0.01, 9), min_size=2, max_size=7), st.floats(1, 200))
def test_it_ends_in_time_or_does_the_least(start: float, each: list[float], seconds: float) -> None:
    machine = Slow(start, each)
    verdicts, (processes, rounds) = measured(machine, len(each) - 1, seconds)
    out = verdicts.count("undecided")
    assert verdicts == ["worse"] * (len(verdicts) - out) + ["undecided"] * out
    assert 2 <= processes <= 5
    kept = each[: len(each) - out]
    assert out == len(each) - 2 or processes == 5, "variants go before processes"
    assert machine.now <= max(seconds, 2 * (start + sum(kept))) + max(each) + 1e-6
    assert rounds >= 1


@pytest.mark.parametrize(("seconds", "verdicts"), [(8, ["worse"] * 3), (4, ["worse", "worse", "undecided"])])
def test_what_is_exact_is_measured_once_while_there_is_time(seconds: float, verdicts: list[str]) -> None:
    machine = Slow(1, [1, 1, 1, 1])
    assert measured(machine, 3, seconds, Objective("cost", exact=True)) == (verdicts, (1, 1))


def test_an_executor_that_ends_at_the_deadline_costs_the_late_ones_alone() -> None:
    class FinalState(Slow):
        def results(self) -> Iterator[Evaluation]:
            yield from (answer for answer in super().results() if self.now <= 4.5)

    machine = FinalState(1, [1, 1, 1, 9])
    exact = Objective("cost", exact=True)
    assert measured(machine, 3, 4.5, exact) == (["worse", "worse", "undecided"], (1, 1))


PLAN = Plan(processes=3, rounds=2, most=3)


@contextmanager
def killing(log: Path, times: int, seed: int, number: signal.Signals) -> Generator[list[int]]:
    """Kill the process that wrote into the log last, so many times, at random moments."""
    killed, over, moments = list[int](), threading.Event(), random.Random(seed)

    def kill() -> None:
        while len(killed) < times and not over.wait(moments.uniform(0, 0.4)):
            for pid, _ in read_log(log)[-1:]:
                if pid not in killed:
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
                        killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    yield killed
    over.set()
    killer.join()


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(("seed", "number"), [(0, signal.SIGKILL), (2, signal.SIGTERM), (1, signal.SIGKILL)])
def test_a_comparison_outlives_its_processes(tmp_path: Path, seed: int, number: signal.Signals) -> None:
    log = tmp_path / "log"
    spec = PidSpec(log)
    base, *others = (Variant(f"#{index}", action(), spec) for index in range(4))
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    with killing(log, 2, seed, number) as killed:  # three in a row would be one too many
        paired = remeasure(base, others, COST, start, PLAN)
    assert killed
    assert [sampled.verdict for sampled in paired] == ["same"] * 4
    for sampled in paired:
        assert [len(row) for row in sampled.values] == [2, 2, 2]
    processes = [[set(sampled.samples[at : at + 2]) for at in (0, 2, 4)] for sampled in paired]
    assert all(row == processes[0] for row in processes), "what is compared was not in one process"
    assert all(len(process) == 1 for process in processes[0]), "a round was mended, not done again"
    assert len({pid for process in processes[0] for pid in process}) == 3


class _Between(LocalExecutor):
    """Loses the process that wrote into the log last, once, while it has nothing to do.

    Args:
        log: the log.
        killed: whom; added to.
        spec: as usual.
        workers: as usual.
        lock: as usual.
    """

    def __init__(
        self, log: Path, killed: list[int], spec: EvaluatorSpec, *, workers: int = 1, lock: Path
    ) -> None:
        super().__init__(spec, workers=workers, lock=lock)
        self._log, self._killed = log, killed

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        if not self._killed and (written := read_log(self._log)):
            pid, _ = written[-1]
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it is dead, and still to be buried
            self._killed.append(pid)
        super().submit(candidates, deadline)


def test_a_process_that_is_lost_between_two_rounds_does_them_all_again(tmp_path: Path) -> None:
    spec = PidSpec(tmp_path / "log", 0.0)
    base, other = (Variant(f"#{index}", action(), spec) for index in range(2))
    killed = list[int]()
    start = partial(_Between, tmp_path / "log", killed, lock=tmp_path / "lock")
    paired = remeasure(base, [other], COST, start, PLAN)
    assert killed
    for sampled in paired:
        assert [len(row) for row in sampled.values] == [2, 2, 2]
        assert all(len(set(sampled.samples[at : at + 2])) == 1 for at in (0, 2, 4))


def test_who_is_lost_again_and_again_is_left_out_alone(tmp_path: Path) -> None:
    deadly = Variant("deadly", action("signal", signal.SIGKILL), ScriptedEvaluator)
    base, harmless = (Variant(name, action(), ScriptedEvaluator) for name in ("base", "harmless"))
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    _, one, other = remeasure(base, [deadly, harmless], COST, start, PLAN)
    assert (one.verdict, other.verdict) == ("undecided", "same")
    assert one.failures == ()
    assert one.why.startswith("3 processes were lost while they measured it: killed by SIGKILL")


def test_if_it_is_the_baseline_nothing_is_compared(tmp_path: Path) -> None:
    base = Variant("base", action("signal", signal.SIGKILL), ScriptedEvaluator)
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    with pytest.raises(LostError, match="3 processes were lost while they measured it: killed by SIGKILL"):
        remeasure(base, [Variant("other", action(), ScriptedEvaluator)], COST, start, PLAN)


@pytest.mark.parametrize("name", ["spin", "crash"])
def test_a_variant_that_ends_its_process_is_measured_once(tmp_path: Path, name: str) -> None:
    """One that hangs keeps the machine until its limit, and others wait: it is not tried again."""
    log, lock = tmp_path / "log", tmp_path / "lock"
    bad = Variant("bad", action(name, 7.0, "run"), LoggingSpec(log))
    base, good = (Variant(each, action(), LoggingSpec(log)) for each in ("base", "good"))
    start = partial(LocalExecutor, lock=lock, limits=Limits(run=2))
    _, failed, other = remeasure(base, [bad, good], COST, start, PLAN)
    assert (failed.verdict, other.verdict) == ("failed", "same")
    assert failed.why == {"spin": "run: timeout", "crash": "run: crash"}[name]
    assert [len(row) for row in other.values] == [2, 2, 2]
    assert log.read_text().count(f"'{name}'") == 1
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_baseline_that_ends_its_process_is_an_error_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    base, other = (
        Variant("base", action("crash"), LoggingSpec(log)),
        Variant("other", action(), LoggingSpec(log)),
    )
    start = partial(LocalExecutor, lock=tmp_path / "lock")
    with pytest.raises(PlanishError, match="the baseline failed: build: crash"):
        remeasure(base, [other], COST, start, PLAN)
    assert log.read_text().count("'crash'") == 1


def compared_after(kills: int, folder: Path) -> list[tuple[str, list[int]]]:
    """Compare two variants, of whose processes so many are killed as they start."""
    spec = KilledBeforeCreated(folder / "log", 0.0, folder / "creations", kills)
    base, other = (Variant(f"#{index}", action(), spec) for index in range(2))
    paired = remeasure(base, [other], COST, partial(LocalExecutor, lock=folder / "lock"), PLAN)
    return [(sampled.verdict, [len(row) for row in sampled.values]) for sampled in paired]


def test_processes_that_are_killed_while_they_start_are_started_again(tmp_path: Path) -> None:
    assert compared_after(4, tmp_path) == [("same", [2, 2, 2])] * 2


@pytest.mark.slow
def test_a_comparison_whose_processes_are_always_killed_ends(tmp_path: Path) -> None:
    with pytest.raises(LostError, match="one process after the other was lost: a worker cannot make"):
        compared_after(1000, tmp_path)
    assert (tmp_path / "creations").stat().st_size == 3 * 3 * 2


TIMING = Timing(budget_s=0.1, block_s=1e-3, fewest=5, most=25, slow_factor=math.inf)


class Machine:
    """A machine that grows slower: a call takes so many seconds, times its slowness."""

    def __init__(self, growth: float) -> None:
        self.seconds, self._growth = 0.0, growth

    def runs(self, seconds: float) -> Runs:
        def run(calls: int) -> None:
            self.seconds += calls * seconds * (1 + self._growth * self.seconds)

        return run

    def now(self) -> int:
        return round(self.seconds * 1e9)

    def measure(self, own: float, baseline: float, baseline_time: SharedBaselineTime) -> Samples:
        return self.measure_runs(self.runs(own), self.runs(baseline), baseline_time)

    def measure_runs(
        self, own: Runs, baseline: Runs, baseline_time: SharedBaselineTime | None = None
    ) -> Samples:
        return PairedTimer(
            baseline_time or SharedBaselineTime(), TIMING, clocks=Clocks(self.now, self.now)
        ).time(own, baseline)


@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_a_steady_machine_is_measured_exactly(own: float, baseline: float) -> None:
    samples = Machine(0.0).measure(own, baseline, SharedBaselineTime())
    assert samples.median == pytest.approx(own, rel=1e-2)
    assert TIMING.fewest <= len(samples.seconds) <= TIMING.most


def test_a_machine_that_grows_slower_slows_no_variant() -> None:
    machine, baseline_time = Machine(0.5), SharedBaselineTime()
    first = machine.measure(0.01, 0.02, baseline_time).median
    machine.seconds += 10
    assert machine.measure(0.01, 0.02, baseline_time).median == pytest.approx(first, rel=0.02)
    assert machine.measure(0.03, 0.02, baseline_time).median == pytest.approx(3 * first, rel=0.02)


def test_it_lives_as_long_as_the_workers_that_share_it() -> None:
    with LocalExecutor(Finder(), workers=2) as executor:
        found = [answer.outcome for answer in evaluate(executor, [Candidate()] * 8)]
    assert found == [Measured({"cost": 1.0})] * 8


@pytest.mark.parametrize(("noise", "samples"), [(0.005, 5), (0.3, 15), (0.9, 15)])
def test_what_is_noisy_is_measured_longer(noise: float, samples: int) -> None:
    """Of calls of 0.1 s, five pairs are the least, and 15 those that fit in 30 budgets."""
    machine, draw = Machine(0.0), rng(0)

    def run(calls: int) -> None:
        machine.seconds += calls * 0.1 * (1 + draw.uniform(-noise, noise))

    assert len(machine.measure_runs(run, machine.runs(0.1)).seconds) == pytest.approx(samples, abs=2)


def test_two_looks_at_what_is_slow_are_enough() -> None:
    machine, timing = Machine(0.0), replace(TIMING, slow_factor=3.0)
    paired = PairedTimer(SharedBaselineTime(), timing, clocks=Clocks(machine.now, machine.now))
    slow = paired.time(machine.runs(0.31), machine.runs(0.1))
    assert (slow.cut, slow.seconds) == (True, pytest.approx((0.31, 0.31)))
    assert not paired.time(machine.runs(0.29), machine.runs(0.1)).cut


class Busy(Machine):
    """A machine on which others have the core now and then; only the clock goes on then."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self._draw, self._waited = rng(1), 0.0

    def runs(self, seconds: float) -> Runs:
        def run(calls: int) -> None:
            self.seconds += calls * seconds * self._draw.uniform(0.99, 1.01)
            self._waited += calls * seconds * self._draw.integers(4)

        return run

    def wall(self) -> int:
        return round((self.seconds + self._waited) * 1e9)


@pytest.mark.parametrize(("one_core", "most"), [(True, 0.02), (False, math.inf)])
def test_processor_time_counts_where_others_have_the_core(one_core: bool, most: float) -> None:
    off: list[float] = []
    for _ in range(20):
        machine, baseline_time = Busy(), SharedBaselineTime()
        baseline_time.set(0.02)
        paired = PairedTimer(
            baseline_time, TIMING, one_core=one_core, clocks=Clocks(machine.wall, machine.now)
        )
        samples = paired.time(machine.runs(0.01), machine.runs(0.02))
        off.append(abs(samples.median / 0.01 - 1))
        assert bool(samples.processor) == one_core
        assert len(samples.seconds) == (5 if one_core else 25)
    assert max(off) < most


def test_a_cold_start_does_not_count() -> None:
    machine = Machine(0.0)
    warm, cold = machine.runs(1e-5), [0.5]

    def run(calls: int) -> None:
        machine.seconds += cold.pop() if cold else 0.0
        machine.seconds += 1e-5
        warm(calls)

    assert machine.measure_runs(machine.runs(1e-5), run).median == pytest.approx(1e-5, rel=1e-2)


def test_the_first_to_measure_the_baseline_does_so_for_all() -> None:
    baseline_time = SharedBaselineTime()
    assert baseline_time.seconds(2.0) == 2.0
    copy = pickle.loads(pickle.dumps(baseline_time))
    assert copy.seconds(3.0) == 2.0
    baseline_time.set(4.0)
    assert copy.seconds(3.0) == 4.0
