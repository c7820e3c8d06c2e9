"""Ray cluster on this machine, for tests: a head, and nodes that measure, come and go."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from planish.measure.ray_cluster import RayCluster
from planish.measure.ray_connection import RESOURCE

QUIET = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
"""Ray's own warnings are no failures of ours."""
TESTS = Path(__file__).parent


class Fleet:
    """A Ray cluster on this machine, whose nodes come and go."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

        # At a lower priority, workers would be starved where other tests run.
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
        self._cluster: Any = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        self.nodes: list[Any] = []

    @property
    def address(self) -> str:
        return self._cluster.address

    def add(self, **environment: str) -> Any:
        """Add a host, whose processes find the modules of tests, and have these variables too."""
        variables = {"PYTHONPATH": str(TESTS), **environment}
        node = self._added(variables)
        self.nodes.append(node)
        return node

    def _added(self, variables: dict[str, str]) -> Any:
        """Add a node, again where it was not there after Ray's 30 seconds, as beside other work."""
        for again in (True, True, False):
            try:
                return self._cluster.add_node(num_cpus=1, resources={RESOURCE: 1}, env_vars=variables)
            except Exception as error:
                if not again or "timed out" not in str(error):
                    raise
        raise AssertionError

    def remove(self, node: Any) -> None:
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def restore(self, count: int = 2) -> None:
        while len(self.nodes) < count:
            self.add()

    def end(self) -> None:
        self._cluster.shutdown()


def await_hosts(cluster: RayCluster, count: int) -> None:
    end = time.monotonic() + 60
    while len(cluster.hosts()) < count:
        assert time.monotonic() < end
        time.sleep(0.1)


def pids(cluster: RayCluster) -> list[int]:
    return [host.description.pid for host in cluster.hosts().values() if host.description]


def children(pid: int) -> set[int]:
    """Return the processes that a process has started, and theirs."""
    found = set[int]()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int((entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]) == pid:
                found |= {int(entry.name), *children(int(entry.name))}
    return found


def gone(pids: set[int]) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.1)
    return False
