"""Trials a second of an evaluator that waits, on nodes of a Ray cluster on this machine.

    python benchmarks/ray_nodes.py [--nodes 1 3] [--seconds 1.0] [--trials 20]

It shows how much of the time of several machines the head can use: one that waits needs no processor. The
last column is the head's processor time for a trial, of which most is Ray's messages.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from planish.core import evaluate
from planish.measure.ray_cluster import RayCluster
from planish.measure.ray_connection import RESOURCE
from planish.testing.synthetic import ScriptedEvaluator, action


def rate(cluster: RayCluster, nodes: int, trials: int, seconds: float) -> tuple[float, float]:
    """Return the trials a second, once each node has measured something, and the head's milliseconds each."""
    assert cluster.hosts.wait_for(nodes, 60)
    with cluster(ScriptedEvaluator, workers=1) as executor:
        list(evaluate(executor, [action("sleep", 0.1 + i / 1e4) for i in range(4 * nodes)]))
        batch = [action("sleep", seconds + i / 1e5) for i in range(trials * nodes)]
        began, used = time.perf_counter(), time.process_time()
        list(evaluate(executor, batch))
        took, used = time.perf_counter() - began, time.process_time() - used
        return len(batch) / took, 1e3 * used / len(batch)


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--nodes", type=int, nargs="+", default=[1, 3])
    given.add_argument("--seconds", type=float, default=1.0)
    given.add_argument("--trials", type=int, default=20, help="of each node")
    asked = given.parse_args()
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    made: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    first, running = 0.0, 0
    try:
        print(f"{'nodes':>5}{'trials/s':>10}{'of the first':>14}{'head, ms':>10}")
        for nodes in sorted(asked.nodes):
            for _ in range(nodes - running):
                made.add_node(num_cpus=1, resources={RESOURCE: 1})
            running = nodes
            with RayCluster(made.address) as cluster:
                found, head_ms = rate(cluster, nodes, asked.trials, asked.seconds)
            first = first or found
            print(f"{nodes:>5}{found:>10.2f}{found / first:>13.2f}x{head_ms:>10.2f}", flush=True)
    finally:
        made.shutdown()


if __name__ == "__main__":
    main()
