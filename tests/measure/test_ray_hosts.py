"""Hosts that cannot be used: each is named in one line with the reason, and the others measure."""

from __future__ import annotations

import logging
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import planish
from planish.core import Candidate, LostError, Measured, Outcome, PlanishError, StageClock, evaluate
from planish.core.registry import level_named
from planish.measure import SharedBaselineTime
from planish.measure.ray_cluster import RayCluster
from planish.measure.ray_host import Versions
from planish.testing.synthetic import ScriptedEvaluator, action
from ray_fleet import QUIET, TESTS, Fleet

pytestmark = QUIET
HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""
OTHER_PLANISH = """
from importlib import metadata
metadata.version = lambda name: "9.9.9"
"""
OTHER_PYTHON = """
import platform
platform.python_version_tuple = lambda: ("3", "9", "2")
"""
LATE = """
import time
now = time.time
time.time = lambda: now() + 3600.0
"""


@pytest.fixture(autouse=True)
def without_hosts(fleet: Fleet) -> Iterator[None]:
    fleet.clear()
    yield
    fleet.clear()


def add(fleet: Fleet, folder: Path, code: str) -> None:
    """Add a host whose processes run some code when they start."""
    (folder / "sitecustomize.py").write_text(code)
    fleet.add(PYTHONPATH=os.pathsep.join([str(folder), str(TESTS)]))


def refused(fleet: Fleet, folder: Path, code: str, caplog: pytest.LogCaptureFixture) -> str:
    """Add a host beside one that measures; return the line on why it is not used."""
    fleet.add()
    add(fleet, folder, code)
    with caplog.at_level(logging.WARNING, "planish"), RayCluster(fleet.address, stall_s=20.0) as cluster:
        end = time.monotonic() + 60
        while not (lines := [line for line in caplog.messages if "is not used" in line]):
            assert time.monotonic() < end
            cluster.hosts.ready()
            time.sleep(0.1)
        with cluster(ScriptedEvaluator, workers=1) as executor:
            assert all(isinstance(each.outcome, Measured) for each in evaluate(executor, [action()]))
    (line,) = lines
    assert "\n" not in line
    return line


def test_no_host_has_the_resource(fleet: Fleet) -> None:
    with pytest.raises(PlanishError, match="no host of the Ray cluster has the resource 'measure'") as caught:
        RayCluster(fleet.address)
    assert "\n" not in str(caught.value)
    assert "ray start" in caught.value.hint


@pytest.mark.parametrize(
    ("code", "versions"),
    [
        (OTHER_PLANISH, f"planish 9.9.9 on Python {Versions().python}"),
        (OTHER_PYTHON, f"planish {Versions().planish} on Python 3.9"),
    ],
    ids=["planish", "Python"],
)
def test_another_version_on_a_host(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture, code: str, versions: str
) -> None:
    line = refused(fleet, tmp_path, code, caplog)
    assert line.endswith(f"is not used: it has {versions}, and this process {Versions()}")
    assert platform.node() in line


def test_planish_is_missing(fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    line = refused(fleet, tmp_path, HIDDEN.format(names={"planish"}), caplog)
    assert "No module named 'planish'" in line


def test_the_only_host_lacks_planish(fleet: Fleet, tmp_path: Path) -> None:
    add(fleet, tmp_path, HIDDEN.format(names={"planish"}))
    with (
        pytest.raises(LostError, match="No module named 'planish'") as caught,
        RayCluster(fleet.address, stall_s=20.0) as cluster,
    ):
        assert cluster.hosts.wait_for(1, 60)
    assert "\n" not in str(caught.value)


def test_a_store_that_hosts_cannot_reach_and_clocks_that_differ(fleet: Fleet, tmp_path: Path) -> None:
    add(fleet, tmp_path, LATE + HIDDEN.format(names={"planish.store", "sqlite3", "sqlalchemy"}))
    began = time.time()
    with RayCluster(fleet.address, stall_s=20.0) as cluster, planish.open_store(tmp_path / "a.db") as store:
        result = planish.tune("C[m] += A[m,k]", size="m=8,k=8", trials=5, store=store, executor=cluster)
        trials = store.run_trials(result.run.id, level_named("loops").steps)
    assert len(trials) == 5
    assert all(isinstance(trial.outcome, Measured) for trial in trials)
    assert all(began < trial.time < time.time() for trial in trials)
    assert all(0 <= spent < 600 for trial in trials for spent in trial.seconds.values())


def test_ray_of_another_version_here(fleet: Fleet) -> None:
    fleet.add()
    code = f"""
import ray
ray.__version__ = "1.2.3"
from planish.measure import SharedBaselineTime
from planish.measure.ray_cluster import RayCluster
RayCluster({fleet.address!r})
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=200
    )
    line = ended.stderr.strip().splitlines()[-1]
    assert "cannot connect to Ray at" in line
    assert "Version mismatch: The cluster was started with: Ray: 2." in line
    assert "; this process has Ray: 1.2.3 Python: " in line


def test_a_local_ray_that_does_not_start_leaves_no_process() -> None:
    code = """
from ray._private import services
from planish.core import PlanishError
from planish.measure import SharedBaselineTime
from planish.measure.ray_cluster import RayCluster
from planish.sandbox.linux import children

def get_node(*_):
    assert children()
    raise OSError("the node timed out")

services.get_node = get_node
try:
    RayCluster()
except PlanishError as error:
    print(error, children())
"""
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment,
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert ended.stdout == "cannot start Ray on this machine: the node timed out []\n", ended.stderr


def test_a_cluster_whose_hosts_are_in_use(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.add()
    code = f"""
from planish.measure import SharedBaselineTime
from planish.measure.ray_cluster import RayCluster
with RayCluster({fleet.address!r}) as cluster:
    print(len(cluster.hosts.ready()), flush=True)
    input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin
        assert other.stdout
        assert other.stdout.readline() == "1\n"
        with RayCluster(fleet.address, stall_s=2.0) as cluster:
            end = time.monotonic() + 60
            while "waiting for a measuring host" not in caplog.text:
                assert time.monotonic() < end
                assert not cluster.hosts.ready()
                time.sleep(0.1)
            other.communicate("\n")
            assert cluster.hosts.wait_for(1, 60)


def test_ray_is_not_installed() -> None:
    code = "import sys; sys.modules['ray'] = None; from planish.cli.script import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "tune", "C[m] += A[m,k]", "--size", "m=8,k=8", "--executor", "ray"],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.startswith("planish: error: Ray is not installed. Install it: pip install ")
    assert ended.stderr.count("\n") == 1


BASELINE_S = "TEST_BASELINE_S"


@dataclass(frozen=True)
class Paired:
    """Makes evaluators that time each candidate by the baseline, which takes longer on some hosts.

    Args:
        baseline_time: what the workers of a host share.
        fails: where the baseline takes so many seconds, no evaluator can be made.
    """

    baseline_time: SharedBaselineTime = field(default_factory=SharedBaselineTime)
    fails: float = math.nan

    def set_baseline(self, baseline: Outcome) -> None:
        assert isinstance(baseline, Measured)
        self.baseline_time.set(baseline.values["cost"])

    def __call__(self) -> PairedEvaluator:
        if own_baseline_s() == self.fails:
            raise PlanishError("weights.npz is missing", "Copy it.")
        return PairedEvaluator(self.baseline_time)


class PairedEvaluator:
    def __init__(self, baseline_time: SharedBaselineTime) -> None:
        self._baseline_time = baseline_time

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        del candidate
        with clock("run"):
            time.sleep(0.05)
            unit = self._baseline_time.seconds(own_baseline_s())
        return Measured({"cost": unit, "own": own_baseline_s()})


def own_baseline_s() -> float:
    return float(os.environ[BASELINE_S])


BATCH = [action(value=index) for index in range(80)]


def test_each_host_measures_the_baseline_and_all_times_have_one_unit(fleet: Fleet) -> None:
    for seconds in ("1.0", "3.0"):
        fleet.add(**{BASELINE_S: seconds})
    spec = Paired()
    with RayCluster(fleet.address, stall_s=20.0) as cluster:
        assert cluster.hosts.wait_for(2, 60)
        with cluster(spec, workers=1) as executor:
            (first,) = evaluate(executor, [action(value=-1)])
            spec.set_baseline(first.outcome)
            found = [each.outcome for each in evaluate(executor, BATCH)]
    assert isinstance(first.outcome, Measured)
    measured = [each.values for each in found if isinstance(each, Measured)]
    assert len(measured) == len(BATCH)
    assert {each["own"] for each in measured} == {1.0, 3.0}
    assert {each["cost"] for each in measured} == {first.outcome.values["cost"]}


def test_a_host_that_cannot_evaluate_is_not_used(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    for seconds in ("1.0", "3.0"):
        fleet.add(**{BASELINE_S: seconds})
    with RayCluster(fleet.address, stall_s=20.0) as cluster:
        assert cluster.hosts.wait_for(2, 60)
        with cluster(Paired(fails=3.0), workers=1) as executor:
            found = [each.outcome for each in evaluate(executor, BATCH)]
        assert len([each for each in found if isinstance(each, Measured)]) == len(BATCH)
        assert f"host {platform.node()} is not used: weights.npz is missing" in caplog.text
        fleet.clear()
        fleet.add(**{BASELINE_S: "3.0"})
        assert cluster.hosts.wait_for(1, 60)
        with (
            cluster(Paired(fails=3.0), workers=1) as executor,
            pytest.raises(PlanishError, match=r"weights\.npz is missing") as caught,
        ):
            list(evaluate(executor, BATCH))
        assert caught.value.hint == "Copy it."
