"""Executors on a Ray cluster: a real one, of a head and hosts that are nodes of this machine."""

import logging
import math
import os
import signal
import time
from collections.abc import Iterator
from itertools import islice

import pytest

from planish.core import (
    Candidate,
    Evaluation,
    EvaluatorSpec,
    Executor,
    Failed,
    Lost,
    LostError,
    Measured,
    Outcome,
    PlanishError,
    StageClock,
    Target,
    TargetError,
    evaluate,
)
from planish.measure import ray_hosts
from planish.measure.machine_lock import exclusive
from planish.measure.ray_cluster import RayCluster
from planish.measure.ray_executor import RayExecutor, TaskHosts
from planish.measure.ray_hosts import Canary
from planish.sandbox import Limits
from planish.testing.executors import ExecutorConformance
from planish.testing.synthetic import Action, ScriptedEvaluator, action
from ray_fleet import NEEDS_RAY, QUIET, Fleet, children, collectors, gone, pids

pytest.importorskip("ray", reason=NEEDS_RAY)

pytestmark = QUIET
LIMITS = Limits(build=0.5, worker=30.0, memory_bytes=512 << 20)


@pytest.fixture(scope="module")
def shared(fleet: Fleet) -> Iterator[RayCluster]:
    fleet.restore()
    with RayCluster(fleet.address, stall_s=5.0) as cluster:
        yield cluster


@pytest.fixture
def cluster(fleet: Fleet, shared: RayCluster, monkeypatch: pytest.MonkeyPatch) -> RayCluster:
    monkeypatch.setattr(ray_hosts, "SLOWER", math.inf)  # beside other tests they are
    fleet.restore()
    assert shared.hosts.wait_for(2, 60)
    return shared


class TestRayExecutor(ExecutorConformance):
    @pytest.fixture(autouse=True)
    def _settings(self, cluster: RayCluster) -> None:
        self.cluster = cluster

    def executor(self, spec: EvaluatorSpec) -> Executor:
        return RayExecutor(TaskHosts(self.cluster.hosts), spec, workers=1, limits=LIMITS)


def test_both_hosts_measure(cluster: RayCluster) -> None:
    with cluster(ScriptedEvaluator, workers=1) as executor:
        assert isinstance(executor, RayExecutor)
        batch = [action("sleep", 0.2 + index / 1000) for index in range(10)]
        assert len(list(evaluate(executor, batch))) == 10
        busy = [pid for pid in pids(cluster.hosts) if children(pid)]
    assert len(busy) == 2
    descriptions = [host.description for host in cluster.hosts.ready().values()]
    assert [each.niceness for each in descriptions if each] == [os.nice(0)] * 2


def test_a_single_process_is_on_one_host(cluster: RayCluster) -> None:
    # Workers of executors that are closed may take a moment to end.
    assert gone({child for pid in pids(cluster.hosts) for child in children(pid)})
    with cluster(ScriptedEvaluator) as executor:
        values = [float(value) for value in range(20)]
        found = [result.outcome for result in evaluate(executor, [action(value=value) for value in values])]
        assert found == [Measured({"cost": value}, {"cost": (value, value)}) for value in values]
        assert len([pid for pid in pids(cluster.hosts) if children(pid)]) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_an_actor_that_dies_or_is_silent_loses_no_candidate(
    cluster: RayCluster, number: signal.Signals
) -> None:
    batch = [action("sleep", 0.1 + index / 10_000) for index in range(60)]
    with cluster(ScriptedEvaluator, workers=1) as executor:
        executor.submit(batch)
        found = dict[object, object]()
        victim, orphans = 0, set[int]()
        for result in executor.results():
            found[result.candidate] = result.outcome
            if len(found) == 5:
                victim = pids(cluster.hosts)[0]
                orphans = children(victim)
                os.kill(victim, number)
        assert set(found) == set(batch)
        assert all(isinstance(outcome, Measured) for outcome in found.values())
        assert executor.losses["the host was lost"] >= 1
    assert orphans
    assert gone({victim, *orphans})


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_collector_that_dies_or_is_silent_costs_no_host(
    cluster: RayCluster, number: signal.Signals
) -> None:
    batch = [action("sleep", 0.1 + index / 10_000) for index in range(60)]
    before = pids(cluster.hosts)
    with cluster(ScriptedEvaluator, workers=1) as executor:
        executor.submit(batch)
        results = executor.results()
        found = {result.candidate: result.outcome for result in islice(results, 5)}
        (victim,) = collectors()
        os.kill(victim, number)
        found |= {result.candidate: result.outcome for result in results}
        assert set(found) == set(batch)
        assert all(isinstance(outcome, Measured) for outcome in found.values())
        assert not executor.losses
    assert pids(cluster.hosts) == before
    assert gone({victim})


def test_hosts_are_not_silent_while_the_searcher_is_at_work(
    cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.hosts, "stall_s", 2.0)
    with cluster(ScriptedEvaluator, workers=1) as executor:
        executor.submit([action("sleep", 0.1 + index / 10_000) for index in range(20)])
        results = executor.results()
        next(results)
        time.sleep(2.5)
        assert len(list(results)) == 19
        assert not executor.losses


def test_a_node_that_is_removed_loses_no_candidate_and_one_that_joins_is_used(
    fleet: Fleet, cluster: RayCluster
) -> None:
    batch = [action("sleep", 0.1 + index / 10_000) for index in range(100)]
    with cluster(ScriptedEvaluator, workers=1) as executor:
        executor.submit(batch)
        found = dict[object, object]()
        before = set(pids(cluster.hosts))
        for result in executor.results():
            found[result.candidate] = result.outcome
            if len(found) == 5:
                fleet.remove(fleet.nodes[0])
            if len(found) == 20:
                fleet.add()
        assert set(found) == set(batch)
        assert all(isinstance(outcome, Measured) for outcome in found.values())
    assert cluster.hosts.wait_for(2, 60)
    assert set(pids(cluster.hosts)) - before


def test_a_candidate_whose_hosts_are_lost_each_time_is_lost_and_not_failed(cluster: RayCluster) -> None:
    with RayExecutor(
        TaskHosts(cluster.hosts), ScriptedEvaluator, workers=1, limits=Limits(attempts=1)
    ) as executor:
        executor.submit([action("sleep", 5.0)])
        slots = executor._slots  # pyright: ignore[reportPrivateUsage]
        advance = executor._advance  # pyright: ignore[reportPrivateUsage]
        for _ in range(3):
            while not (busy := [slot for slot in slots.values() if slot.pending]):
                advance()
            description = busy[0].host.description
            assert description
            os.kill(description.pid, signal.SIGKILL)
            while busy[0] in slots.values():
                advance()
        (result,) = executor.results()
    assert type(result.outcome).__name__ == "Lost"


class Deadly:
    """Evaluator whose host ends with a candidate of this value."""

    VALUE = 13.0

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        if candidate == action(value=self.VALUE):
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60.0)
        return ScriptedEvaluator().evaluate(candidate, clock)


def test_a_candidate_that_ends_its_hosts_costs_neither_other_candidates_nor_the_last_node(
    fleet: Fleet, cluster: RayCluster
) -> None:
    batch = [action(value=float(value)) for value in range(30)]
    hosts = TaskHosts(cluster.hosts)
    fleet.remove(fleet.nodes[0])
    with RayExecutor(hosts, Deadly, workers=1, limits=Limits(attempts=1)) as executor:
        found = {result.candidate: result.outcome for result in evaluate(executor, batch)}
    assert set(found) == set(batch)
    lost = [each for each, outcome in found.items() if not isinstance(outcome, Measured)]
    assert lost == [action(value=Deadly.VALUE)]
    assert isinstance(found[lost[0]], Lost)


def test_limits_count_from_acquisition(cluster: RayCluster) -> None:
    limits = Limits(run=0.5, memory_bytes=512 << 20)
    with RayExecutor(TaskHosts(cluster.hosts), ScriptedEvaluator, workers=1, limits=limits) as executor:
        assert len(list(evaluate(executor, [action()]))) == 1
        with exclusive():
            executor.submit([action("sleep", 0.1, "run"), action("spin", stage="run")])
            assert not list(executor.results(3.0))
        found = {each.candidate.steps[0]: each for each in executor.results()}
    waited, hung = found[Action("sleep", 0.1, "run")], found[Action("spin", stage="run")]
    assert isinstance(waited.outcome, Measured)
    assert waited.seconds["wait"] > limits.run
    assert isinstance(hung.outcome, Failed)
    assert (hung.outcome.stage, hung.outcome.reason) == ("run", "timeout")


def test_hosts_of_another_target_are_not_used(cluster: RayCluster, caplog: pytest.LogCaptureFixture) -> None:
    wanted = Target("another processor")
    with caplog.at_level(logging.WARNING, "planish"):
        executor = cluster.for_task(wanted, _this)(ScriptedEvaluator, workers=1)
        with executor, pytest.raises(TargetError, match="processor this one, not another processor"):
            list(evaluate(executor, [action()]))
    assert "is not used: its target differs" in caplog.text
    with cluster.for_task(_this(), _this)(ScriptedEvaluator, workers=1) as executor:
        assert len(list(evaluate(executor, [action()]))) == 1


def _this() -> Target:
    return Target("this one")


class _Slow(Canary):
    def look(self, seconds: float, fastest: float = math.inf) -> str:
        del fastest
        assert 0 < seconds < 10
        return "it has become slower"


def test_a_host_that_becomes_slower_is_set_aside_unless_it_is_the_last(cluster: RayCluster) -> None:
    batch = [action("sleep", 0.05 + index / 10_000) for index in range(60)]
    first, second = cluster.hosts.ready().values()
    first.canary = second.canary = _Slow()
    found, notes, end = list[Evaluation](), list[str](), time.monotonic() + 60
    with cluster(ScriptedEvaluator, workers=1) as executor:
        while len(notes) < 2 and time.monotonic() < end:  # none is timed twice in 15 s
            found += evaluate(executor, batch)
            notes = list(executor.notes)
        (left,) = executor._slots.values()  # pyright: ignore[reportPrivateUsage]
        (other,) = {first, second} - {left.host}
        assert other.description
        assert gone(children(other.description.pid))
    first.canary, second.canary = Canary(), Canary()
    assert {each.candidate for each in found} == set(batch)
    assert all(isinstance(each.outcome, Measured) for each in found)
    assert any(note.endswith("slower") for note in notes)
    assert any(note.endswith("slower; times may be too long") for note in notes)


def test_the_last_host_ends_the_batch_with_one_line(fleet: Fleet, cluster: RayCluster) -> None:
    with cluster(ScriptedEvaluator, workers=1) as executor:
        executor.submit([action("sleep", 0.5), action("sleep", 0.6)])
        for node in [*fleet.nodes]:
            fleet.remove(node)
        with pytest.raises(LostError, match="no measuring host is left") as caught:
            list(executor.results())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
        ("ray://127.0.0.1:1", "is not the address of a Ray node"),
        ("nowhere", "is not the address of a Ray node"),
        ("127.0.0.1:99999", "no Ray cluster answers"),
    ],
)
def test_a_wrong_address_is_an_error_of_one_line(
    address: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray  # pyright: ignore[reportMissingImports]

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(PlanishError, match=what) as caught:
        RayCluster(address)
    assert "\n" not in str(caught.value)
