"""Searches on a Ray cluster, whose hosts die in the middle of it."""

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import pytest

import planish
from planish.callbacks import ActiveRun
from planish.core import (
    ExecutorFactory,
    LostError,
    Measured,
    Program,
    Target,
    Task,
    Trial,
)
from planish.core.registry import level_named
from planish.measure.executors import LocalExecutor
from planish.measure.ray_cluster import RayCluster
from planish.tuning.api import tune_for_each_target
from planish.tuning.batch import load_parts, tune_parts
from planish.tuning.compare import compare_results
from ray_fleet import NEEDS_RAY, QUIET, Fleet, children, gone, pids
from tuning.tradeoff_level import Evaluator, Measuring, Plain, Text

pytest.importorskip("ray", reason=NEEDS_RAY)

pytestmark = QUIET
PROGRAM = "C[m,n] += A[m,k] * B[k,n]"
SIZE = {"m": 16, "n": 16, "k": 16}


def _trials(store: planish.Store, run_id: str) -> list[Trial]:
    return store.run_trials(run_id, level_named("loops").steps)


def test_the_same_seed_proposes_the_same_candidates_as_on_one_machine(
    cluster: RayCluster, tmp_path: Path
) -> None:
    def tried(executor: ExecutorFactory) -> set[str]:
        with planish.open_store(tmp_path / f"{type(executor).__name__}.db") as store:
            result = planish.tune(
                PROGRAM, size=SIZE, trials=12, searcher="random", seed=3, store=store, executor=executor
            )
            return {trial.candidate.hash for trial in _trials(store, result.run.id)}

    assert tried(cluster) == tried(LocalExecutor)


def test_no_trial_is_lost_where_actors_and_a_node_die_during_search_and_comparison(
    fleet: Fleet, cluster: RayCluster, tmp_path: Path
) -> None:
    over, killed, reported = Event(), list[int](), list[Trial]()

    def kill() -> None:
        if found := pids(cluster.hosts):
            killed.append(found[len(killed) % len(found)])
            os.kill(killed[-1], signal.SIGKILL)

    def kill_twice_in_the_comparison() -> None:
        for _ in range(2):  # a host that dies three times in a row, without a result, is used no more
            if not over.wait(5.0):
                kill()

    comparison = Thread(target=kill_twice_in_the_comparison)

    def disturb(run: ActiveRun, trial: Trial) -> None:
        del run
        reported.append(trial)
        if trial.index == 30:
            fleet.remove(fleet.nodes[0])
            fleet.add()
        elif len(reported) % 25 == 0:
            kill()
        if len(reported) == 150:
            comparison.start()

    with planish.open_store(tmp_path / "planish.db") as store:
        try:
            result = planish.tune(
                PROGRAM,
                size=SIZE,
                trials=150,
                searcher="random",
                store=store,
                executor=cluster,
                callbacks=[disturb],
            )
        finally:
            over.set()
        comparison.join()
        trials = _trials(store, result.run.id)
    assert len(killed) > 4
    assert sorted(trial.index for trial in trials if trial.index is not None) == [*range(150)]
    assert [trial for trial in trials if not isinstance(trial.outcome, Measured)] == []
    assert {trial.host for trial in trials} == {platform.node()}


def test_a_search_without_hosts_ends_and_is_resumed(
    fleet: Fleet, cluster: RayCluster, tmp_path: Path
) -> None:
    def remove(run: ActiveRun, trial: Trial) -> None:
        del run
        if trial.index == 5:
            for node in [*fleet.nodes]:
                fleet.remove(node)

    def tune(trials: int, *callbacks: planish.callbacks.TrialCallback) -> planish.Result:
        return planish.tune(
            PROGRAM, size=SIZE, trials=trials, searcher="random", store=place, executor=cluster,
            callbacks=callbacks,
        )  # fmt: skip

    place = tmp_path / "planish.db"
    with pytest.raises(LostError, match="no measuring host is left"):
        tune(60, remove)
    with planish.open_store(place) as store:
        before = _trials(store, store.runs()[0].id)
    assert 5 < len(before) < 60
    fleet.restore()
    result = tune(60)
    assert result.run.trials == 60


def test_winners_are_compared_and_validated_on_a_host(cluster: RayCluster, tmp_path: Path) -> None:
    with planish.open_store(tmp_path / "planish.db") as store:
        runs = [
            planish.tune(PROGRAM, size=SIZE, trials=4, searcher="random", seed=seed, store=store).run.id
            for seed in (1, 2)
        ]
        found = compare_results(runs, store=store, processes=5, start=cluster)
        assert [each.result.run.id for each in found] == runs
        assert all(each.sampled.values for each in found)
        assert planish.validate(runs[0], store=store, start=cluster).holds


def test_functions_of_a_module_are_tuned_on_the_hosts(cluster: RayCluster, tmp_path: Path) -> None:
    text = "define i32 @{0}(i32 %x) {{\n  %y = add i32 %x, 0\n  %z = add i32 %y, {1}\n  ret i32 %z\n}}\n"
    source = "".join(text.format(name, number) for number, name in enumerate(("one", "two")))
    level, parts = load_parts(source, "llvm", {})
    budget = planish.Budget(trials=5)
    found = list(tune_parts(level, parts, budget=budget, store=tmp_path / "planish.db", start=cluster))
    assert [type(each).__name__ for each in found] == ["Part", "Part"], found


KIND = "TEST_KIND"


class Kinds(Plain):
    """A level whose target is the kind of the host; on a host of the kind "slow" all takes longer."""

    def target(self, program: Program, cores: int) -> Target:
        del program
        return Target(os.environ.get(KIND, "head"), cores=cores)

    def evaluator(self, task: Task, *, final: bool = False) -> Measuring:
        del task, final
        return ByKind()


class ByKind(Measuring):
    """Makes evaluators for the host on which it is called."""

    def __call__(self) -> Evaluator:
        return Measuring(10.0 if os.environ.get(KIND) == "slow" else 1.0)()


def test_each_kind_of_host_has_its_own_run(tmp_path: Path) -> None:
    fleet, level = Fleet(), Kinds()
    try:
        for kind in ("fast", "slow", "slow"):
            fleet.add(**{KIND: kind})
        with (
            RayCluster(fleet.address, stall_s=20.0) as cluster,
            planish.open_store(tmp_path / "a.db") as store,
        ):
            assert cluster.hosts.wait_for(3, 60)
            settings, budget = planish.Settings(objectives=("time",)), planish.Budget(trials=12)
            found = tune_for_each_target(level, Text(), settings, budget, store=store, start=cluster)
            results = list(found)
            trials = [store.run_trials(each.run.id, level.steps) for each in results]
            tasks = {each.run.task_key for each in results}
    finally:
        fleet.end()
    assert [each.stored.target.processor for each in results] == ["fast", "slow"]
    assert len(tasks) == 2
    assert [len(each) for each in trials] == [12, 12]
    for some, (least, most) in zip(trials, ((1e-4, 1.1e-3), (1e-3, 1.1e-2)), strict=True):
        times = [each.outcome.values["time_s"] for each in some if isinstance(each.outcome, Measured)]
        assert len(times) == 12
        assert least < min(times)
        assert max(times) < most


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_command_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    command = [
        sys.executable,
        "-c",
        "from planish.cli.script import main; main()",
        "tune",
        PROGRAM,
        "--size",
        "m=16,n=16,k=16",
    ]
    command += ["--seconds", "600", "--executor", "ray", "--store", str(tmp_path / "planish.db")]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "trials" in line:
            break
    started = children(process.pid)
    if number == signal.SIGKILL:  # Ray's own agents look for their cluster for a minute, and end then
        started -= {pid for pid in started if b"Agent" in Path(f"/proc/{pid}/cmdline").read_bytes()}
    assert len(started) > 3
    process.send_signal(number)
    time.sleep(0.5)
    if number != signal.SIGKILL:
        process.send_signal(number)  # the second one skips the comparison
    output, _ = process.communicate(timeout=240)
    assert gone({process.pid, *started})
    if number != signal.SIGKILL:
        assert process.returncode == 0
        assert "Stopped. Run the same command to resume." in output
