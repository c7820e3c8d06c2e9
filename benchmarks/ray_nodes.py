"""Trials a second on nodes of a Ray cluster on this machine, and what a trial costs the head.

    python benchmarks/ray_nodes.py [--nodes 1 3] [--hosts 10 100 1000] [--seconds 1.0] [--trials 20]

The first table is of real hosts with an evaluator that waits, and so needs no processor: it shows how much of
the time of several machines the head can use. The second is of simulated hosts, some hundred in a process,
which exchange the same messages by Ray: it shows what the head spends where there are many. `head` is the
processor time of its process for a trial, without the time that the connection to Ray takes where nothing is
measured. The third table is of the same hosts with a search, its searcher and its store.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import os
import pickle
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fleet_simulation import LatticeLevel
from planish.core import Measured, evaluate
from planish.levels.loops.lang.parse import parse
from planish.measure.ray_cluster import RayCluster
from planish.measure.ray_connection import RESOURCE, connect, disconnect
from planish.measure.ray_executor import RayExecutor, TaskHosts
from planish.measure.ray_host import Description, Message, Report, Versions
from planish.measure.ray_hosts import Host, HostPool
from planish.sandbox.protocol import EvaluationReply
from planish.store import open_store
from planish.testing.synthetic import ScriptedEvaluator, action
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget, Settings

IDLE_S = 3.0
TOGETHER = 250
"""Simulated hosts of one process."""


class SimulatedHosts:
    """Hosts that evaluate one candidate after the other, each by waiting; an asynchronous actor.

    Args:
        seconds: of an evaluation.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: defaultdict[int, deque[tuple[float, int]]] = defaultdict(deque)
        self._free: defaultdict[int, float] = defaultdict(float)

    async def begin(self, *_: object) -> str:
        """Start an executor."""
        return ""

    async def cancel(self, *_: object) -> None:
        """Abandon what is under way."""

    async def end(self, *_: object) -> None:
        """End an executor."""

    async def exchange(self, host: int, message: bytes) -> bytes:
        """Take candidates, and return what has ended; see `MeasuringHost.exchange`."""
        sent: Message = pickle.loads(message)
        began, ends = time.monotonic(), self._ends[host]
        for number, _ in sent.batch:
            self._free[host] = max(began, self._free[host]) + self._seconds
            ends.append((self._free[host], number))
        until = min(ends[-1][0], max(ends[0][0], began + sent.report_s)) if ends else math.inf
        await asyncio.sleep(max(0.0, min(until, began + sent.wait_s) - began))
        replies, now = list[EvaluationReply](), time.monotonic()
        while ends and ends[0][0] <= now:
            outcome, seconds = Measured({"time_s": 1.0}, {"time_s": (1.0, 1.0)}), {"run": self._seconds}
            replies.append(EvaluationReply(ends.popleft()[1], outcome, seconds, f"host-{host}"))
        return pickle.dumps(Report(replies, max(2, math.ceil(2 * sent.report_s / self._seconds))))


class SimulatedHost:
    """Handle of one of the simulated hosts of an actor.

    Args:
        actor: handle of the actor.
        number: of the host.
        method: that `remote` calls.
    """

    def __init__(self, actor: Any, number: int, method: Any = None) -> None:
        self._actor, self._number, self._method = actor, number, method

    def __reduce__(self) -> tuple[type[SimulatedHost], tuple[Any, int, Any]]:
        """Have the collector receive it."""
        return SimulatedHost, (self._actor, self._number, self._method)

    def __getattr__(self, name: str) -> SimulatedHost:
        return SimulatedHost(self._actor, self._number, getattr(self._actor, name))

    def remote(self, *arguments: object) -> Any:
        """Call the method."""
        return self._method.remote(self._number, *arguments)


class SimulatedPool(HostPool):
    """Simulated hosts, which neither join nor leave.

    Args:
        count: how many.
        seconds: of an evaluation.
    """

    def __init__(self, count: int, seconds: float) -> None:
        import ray  # pyright: ignore[reportMissingImports]

        made: Any = ray.remote(SimulatedHosts).options(num_cpus=0, enable_task_events=False)
        actors = [made.remote(seconds) for _ in range(-(-count // TOGETHER))]
        ray.get([actor.begin.remote() for actor in actors])
        self.stall_s, self._keys, self._collector = 60.0, itertools.count(), None
        self._hosts: dict[str, Host] = {}
        for number in range(count):
            handle = SimulatedHost(actors[number // TOGETHER], number)
            described = Description(f"host-{number}", Versions(), 0, 0)
            self._hosts[f"node-{number}"] = Host(f"node-{number}", handle, None, described)
        self._actors = actors

    def ready(self) -> Mapping[str, Host]:
        """Return the hosts."""
        return self._hosts

    def answered(self, host: Host) -> None:
        """Record nothing: no host is lost."""

    def close(self) -> None:
        """End the actors."""
        import ray  # pyright: ignore[reportMissingImports]

        for actor in (*self._actors, self.collector()):
            ray.kill(actor)


def idle() -> float:
    """Return the processor seconds a second of a connection that is not used."""
    began, used = time.perf_counter(), time.process_time()
    time.sleep(IDLE_S)
    return (time.process_time() - used) / (time.perf_counter() - began)


def rate(executor: RayExecutor, trials: int, seconds: float) -> tuple[float, float]:
    """Return the trials a second, and the head's processor milliseconds for each without those of `idle`."""
    batch = [action("sleep", seconds + i / 1e6) for i in range(trials)]
    began, used = time.perf_counter(), time.process_time()
    count = sum(1 for _ in evaluate(executor, batch))
    took, used = time.perf_counter() - began, time.process_time() - used
    assert count == trials
    return trials / took, 1e3 * (used - idle() * took) / trials


def real(address: str, nodes: int, trials: int, seconds: float) -> tuple[float, float]:
    """Return the rate and the cost of real hosts, once each of them has measured something."""
    with RayCluster(address) as cluster:
        assert cluster.hosts.wait_for(nodes, 60)
        with cluster(ScriptedEvaluator, workers=1) as executor:
            list(evaluate(executor, [action("sleep", 0.1 + i / 1e4) for i in range(4 * nodes)]))
            return rate(executor, trials * nodes, seconds)


@contextmanager
def fleet(address: str, hosts: int, seconds: float) -> Generator[RayExecutor]:
    """Start an executor on simulated hosts, each of which has measured something."""
    connect(address)
    try:
        pool = SimulatedPool(hosts, seconds)
        with RayExecutor(TaskHosts(pool), ScriptedEvaluator, workers=1) as executor:
            rate(executor, 2 * hosts, seconds)
            yield executor
        pool.close()
    finally:
        disconnect()


def simulated(address: str, hosts: int, trials: int, seconds: float) -> tuple[float, float]:
    """Return the rate and the cost of simulated hosts."""
    with fleet(address, hosts, seconds) as executor:
        return rate(executor, trials * hosts, seconds)


def searched(address: str, hosts: int, trials: int, seconds: float) -> tuple[float, float]:
    """Return the rate and the cost of a search on simulated hosts, which stores its trials in a file."""
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 192, "n": 192, "k": 192}, {}, "float32")
    budget, settings = Budget(trials=trials * hosts), Settings(searcher="random", seed=0)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(Path(folder) / "planish.db") as store,
        fleet(address, hosts, seconds) as executor,
    ):
        began, used = time.perf_counter(), time.process_time()
        found = tune_program(
            LatticeLevel(), program, budget=budget, settings=settings, store=store, executor=executor,
            compares=False,
        )  # fmt: skip
        took, used = time.perf_counter() - began, time.process_time() - used
        assert found.run.trials == budget.trials
        return trials * hosts / took, 1e3 * (used - idle() * took) / (trials * hosts)


def main() -> None:
    """Print the tables."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--nodes", type=int, nargs="*", default=[1, 3])
    given.add_argument("--hosts", type=int, nargs="*", default=[10, 100, 1000])
    given.add_argument("--seconds", type=float, default=1.0, help="of an evaluation")
    given.add_argument("--trials", type=int, default=20, help="of each node or host")
    asked = given.parse_args()
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    made: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    first, running = 0.0, 0
    try:
        tables = (
            ("nodes", real, asked.nodes),
            ("hosts", simulated, asked.hosts),
            ("search", searched, asked.hosts),
        )
        for title, run, counts in tables:
            print(f"{title:>6}{'trials/s':>10}{'of the first':>14}{'head, ms':>10}")
            for count in sorted(counts):
                for _ in range(count - running if title == "nodes" else 0):
                    made.add_node(num_cpus=1, resources={RESOURCE: 1})
                    running += 1
                found, head_ms = run(made.address, count, asked.trials, asked.seconds)
                first = first or found
                print(f"{count:>6}{found:>10.2f}{found / first:>13.2f}x{head_ms:>10.2f}", flush=True)
            first = 0.0
    finally:
        made.shutdown()


if __name__ == "__main__":
    main()
