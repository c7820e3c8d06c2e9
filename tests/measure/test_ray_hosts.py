"""Hosts that cannot be used: each is named in one line with the reason, and the others measure."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import planish
from planish.core import LostError, Measured, PlanishError, evaluate
from planish.core.registry import level_named
from planish.measure.ray_cluster import RayCluster
from planish.measure.ray_host import Versions
from planish.testing.synthetic import ScriptedEvaluator, action
from ray_fleet import QUIET, TESTS, Fleet, await_hosts

pytest.importorskip("ray", reason="needs ray: pip install 'planish[ray]'")

pytestmark = QUIET
HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""
OTHER_VERSION = """
from importlib import metadata
metadata.version = lambda name: "9.9.9"
"""
LATE = """
import time
now = time.time
time.time = lambda: now() + 3600.0
"""


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    made = Fleet()
    yield made
    made.end()


@pytest.fixture(autouse=True)
def without_hosts(fleet: Fleet) -> Iterator[None]:
    yield
    for node in [*fleet.nodes]:
        fleet.remove(node)


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
            cluster.hosts()
            time.sleep(0.1)
        with cluster(ScriptedEvaluator, workers=1) as executor:
            assert all(isinstance(each.outcome, Measured) for each in evaluate(executor, [action()]))
    (line,) = lines
    assert "\n" not in line
    return line


def test_no_host_has_the_resource(
    fleet: Fleet,
) -> None:  # first: nodes that are gone are seen late
    with pytest.raises(PlanishError, match="no host of the Ray cluster has the resource 'measure'") as caught:
        RayCluster(fleet.address)
    assert "\n" not in str(caught.value)
    assert "ray start" in caught.value.hint


def test_planish_of_another_version(fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    line = refused(fleet, tmp_path, OTHER_VERSION, caplog)
    assert f"is not used: it has planish 9.9.9 on Python {Versions().python}, and this process" in line
    assert line.endswith(str(Versions()))


def test_planish_is_missing(fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    line = refused(fleet, tmp_path, HIDDEN.format(names={"planish"}), caplog)
    assert "No module named 'planish'" in line


def test_the_only_host_lacks_planish(fleet: Fleet, tmp_path: Path) -> None:
    add(fleet, tmp_path, HIDDEN.format(names={"planish"}))
    with (
        pytest.raises(LostError, match="No module named 'planish'") as caught,
        RayCluster(fleet.address, stall_s=20.0) as cluster,
    ):
        await_hosts(cluster, 1)
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
