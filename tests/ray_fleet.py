"""Ray cluster on this machine, for tests: a head, and nodes that measure, come and go."""

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from planish.measure import ray_hosts
from planish.measure.ray_cluster import RayCluster
from planish.measure.ray_connection import RESOURCE, end_failed_node
from planish.measure.ray_hosts import HostPool
from planish.sandbox.linux import descendants

QUIET = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
"""Ray's own warnings are no failures of ours."""
TESTS = Path(__file__).parent
ATTEMPTS = 6
NEEDS_RAY = "needs ray: pip install 'planish[ray]'"


class Fleet:
    """A Ray cluster on this machine, whose nodes come and go."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

        # At a lower priority, workers would be starved where other tests run.
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
        head = {"num_cpus": 1, "include_dashboard": False}

        def start() -> Any:
            return Cluster(initialize_head=True, head_node_args=head)

        self._cluster: Any = patient(start)
        self.nodes: list[Any] = []

    @property
    def address(self) -> str:
        return self._cluster.address

    def add(self, **environment: str) -> Any:
        """Add a host, whose processes find the modules of tests, and have these variables too."""
        variables = {"PYTHONPATH": str(TESTS), **environment}
        options = {"num_cpus": 1, "resources": {RESOURCE: 1}, "env_vars": variables}
        node = patient(lambda: self._cluster.add_node(**options))
        self.nodes.append(node)
        return node

    def remove(self, node: Any) -> None:
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def restore(self, count: int = 2) -> None:
        while len(self.nodes) < count:
            self.add()

    def clear(self) -> None:
        """Remove all hosts, and wait until the cluster knows of none, dead ones either."""
        for node in [*self.nodes]:
            self.nodes.remove(node)
            self._cluster.remove_node(node)
        self._cluster.wait_for_nodes(60)

    def end(self) -> None:
        self._cluster.shutdown()


def patient(start: Callable[[], Any]) -> Any:
    """Start a part of a cluster, again where it took more than Ray's 30 seconds, as beside other work."""
    for _ in range(ATTEMPTS - 1):
        try:
            return start()
        except Exception as error:
            end_failed_node(error)
            if "timed out" not in str(error):
                raise
    return start()


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """Start a cluster, whose nodes each test adds."""
    pytest.importorskip("ray", reason=NEEDS_RAY)
    made = Fleet()
    yield made
    made.end()


@pytest.fixture
def cluster(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    """Connect to two hosts."""
    monkeypatch.setattr(ray_hosts, "SLOWER", math.inf)  # beside other tests they are
    fleet.restore()
    with RayCluster(fleet.address, stall_s=20.0) as made:
        assert made.hosts.wait_for(2, 60)
        yield made


def pids(pool: HostPool) -> list[int]:
    """Return the processes of the actors; also in a thread, which must not look for hosts."""
    hosts = [*pool._hosts.values()]  # pyright: ignore[reportPrivateUsage]
    return [host.description.pid for host in hosts if host.description]


def collectors() -> list[int]:
    """Return the processes of this process's clusters that collect reports."""
    return [pid for pid in descendants(os.getpid()) if "ray::Collector" in _command(pid)]


def _command(pid: int) -> str:
    with suppress(OSError):  # it ended meanwhile
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def children(pid: int) -> set[int]:
    """Return the processes that a process has started, and theirs."""
    return {*descendants(pid)} - {pid}


def gone(pids: set[int]) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.1)
    return False
