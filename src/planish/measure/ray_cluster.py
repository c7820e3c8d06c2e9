"""Ray cluster on whose hosts candidates are measured: the public interface of the executor `ray`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Any, Self

import planish.measure.ray_connection as connection
from planish.core import EvaluatorSpec, Target
from planish.measure.executors import Item
from planish.measure.ray_executor import RayExecutor, RayWork, TaskHosts
from planish.measure.ray_hosts import STALL_S, HostPool
from planish.sandbox.fork_pool import Done, ForkedWork, Watchdog


class RayCluster:
    """Connection to a Ray cluster, which starts executors on its measuring hosts.

    Hosts may join and leave at any time. Used as a context manager; at its end the actors are gone, and so is
    a local Ray that it started.

    Args:
        address: of the cluster, as `ray start` prints it; "" for what RAY_ADDRESS names, and where that is
            not set for a local Ray with one measuring host, this machine. Where there is an address, this
            machine must be one of the cluster: a program connects to Ray by a node of its own machine.
        stall_s: seconds without an answer after which a host is given up, and its candidates are evaluated
            elsewhere.

    Attributes:
        hosts: that measure.

    Raises:
        PlanishError: Ray is not installed, does not answer, or none of its hosts measures.
    """

    def __init__(self, address: str = "", *, stall_s: float = STALL_S) -> None:
        self._disconnects = connection.connect(address)
        try:
            self.hosts = HostPool(stall_s)
        except BaseException:
            self._disconnect()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the actors, and a Ray that was started here; harmless when called twice."""
        self.hosts.close()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._disconnects:
            connection.disconnect()
        self._disconnects = False

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int | None = None) -> RayExecutor:
        """Start an executor on hosts of any target.

        Args:
            spec: makes its evaluators.
            workers: processes on each of the hosts; None for a single one on one host, which evaluates a
                batch in its order.
        """
        return TaskHosts(self.hosts)(spec, workers=workers)

    def for_task(self, target: Target, describe: Callable[[], Target]) -> TaskHosts:
        """Return a factory of executors that use the hosts of a target alone.

        Args:
            target: of the task.
            describe: returns the target of the machine that calls it; it is pickled.
        """
        return TaskHosts(self.hosts, target, describe)

    def targets(self, describe: Callable[[], Target]) -> Sequence[Target]:
        """Return the targets of the hosts, each once, in the order of their texts, once all have started.

        Args:
            describe: returns the target of the machine that calls it.

        Raises:
            LostError: no measuring host is left.
            TargetError: no host has a target.
        """
        return self.hosts.targets(describe)

    def forked(
        self,
        items: Iterable[Item],
        work: Callable[[Item, Watchdog], Any],
        answer: Any,
        jobs: int,
        *,
        at_once: int = 16,
    ) -> Generator[Done[Item, Any]]:
        """Do work on each item on the hosts, as `planish.sandbox.fork_pool.forked` does it on this machine.

        Args:
            items: taken as hosts become free.
            work: returns an item's answer; it is pickled.
            answer: the type of answers.
            jobs: children side by side on each host; 0: one for each of its cores.
            at_once: items of one child at most.

        Raises:
            PlanishError: no host can do it, or whatever the work raises.
            LostError: no measuring host is left.
        """
        left = iter(items)
        with RayWork[Item](TaskHosts(self.hosts), ForkedWork(work, answer, jobs, at_once), workers=1) as pool:
            pool.submit(list(islice(left, pool.capacity)))
            for done in pool.results():
                yield done
                pool.submit(list(islice(left, max(0, pool.capacity - pool.unanswered))))
