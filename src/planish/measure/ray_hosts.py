"""Measuring hosts of a Ray cluster, as they join, fall silent and leave."""

from __future__ import annotations

import itertools
import logging
import math
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from planish.core import LostError, PlanishError, Target, TargetError
from planish.measure.ray_collector import start_collector
from planish.measure.ray_connection import RESOURCE, last_line, start_actor
from planish.measure.ray_host import THREADS, Description, MeasuringHost, Versions

STALL_S = 30.0
"""Seconds without an answer after which a host is given up."""
TICK_S = 0.1
"""Seconds between two looks at what the hosts do, where they answer nothing meanwhile."""
_LOOK_S = 1.0  # how often hosts are looked for
_MOST_STARTS = 3  # actors in a row that do not start on a node
_MOST_LOSSES = 10  # actors in a row that are lost on a node without a result: more than a candidate may end
_START = f"""Start one: ray start --address=... --resources='{{"{RESOURCE}": 1}}'."""

_log = logging.getLogger("planish")


SLOWER = 1.25
"""Multiple of its least time that a host may take for the canary."""
_SLOW_LOOKS = 3


@dataclass
class Canary:
    """Speed of a host over time, by a computation that is always the same.

    A single slow look may be chance. After some in a row the host is throttled, or other work runs beside it.

    Args:
        least: seconds at its fastest.
        slow: looks in a row at which it was slower than `SLOWER` times that, or times the fastest host.
    """

    least: float = math.inf
    slow: int = 0

    def look(self, seconds: float, fastest: float = math.inf) -> str:
        """Note the seconds of one look; return why the host is not to be trusted, empty where it is.

        Args:
            seconds: of this look.
            fastest: the least seconds of other hosts of its kind.
        """
        self.least = min(self.least, seconds)
        self.slow = self.slow + 1 if seconds > SLOWER * min(self.least, fastest) else 0
        if self.slow < _SLOW_LOOKS:
            return ""
        own, others = seconds / self.least, seconds / fastest
        if own > SLOWER:
            return f"it has become {own:.2g} times slower: it is throttled, or other work runs on it"
        return f"it is {others:.2g} times slower than another host of its kind"


@dataclass(eq=False)
class Host:
    """An actor on a node.

    Args:
        node: its id.
        actor: the handle.
        greeting: reference to its description.
        description: once it is there, and the host may be used.
        canary: its speed so far.
    """

    node: str
    actor: Any
    greeting: Any
    description: Description | None = None
    canary: Canary = field(default_factory=Canary)

    @property
    def name(self) -> str:
        return self.description.name if self.description else f"node {self.node[:8]}"


class HostPool:
    """Measuring hosts of the cluster to which this process is connected, each with an actor.

    Args:
        stall_s: seconds without an answer after which a host is given up.

    Raises:
        PlanishError: no host measures.
    """

    def __init__(self, stall_s: float = STALL_S) -> None:
        self.stall_s = stall_s
        self._hosts: dict[str, Host] = {}
        self._losses: Counter[str] = Counter()  # by node, since its last result
        self._refused: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._next_look = 0.0
        self._busy_since = time.monotonic()
        self._keys = itertools.count()
        self._collector: Any = None
        if not _nodes():
            raise PlanishError(f"no host of the Ray cluster has the resource '{RESOURCE}'", _START)
        try:
            self.ready()
            self.collector()  # starts beside the hosts
            self.wait_for(1, stall_s)  # so that its start is not part of a search's time
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the actors; harmless when called twice."""
        import ray  # pyright: ignore[reportMissingImports]

        hosts, self._hosts = [*self._hosts.values()], {}
        if not ray.is_initialized():
            return
        if self._collector is not None:
            ray.kill(self._collector)
            self._collector = None
        if leaving := [host.actor.leave.remote() for host in hosts if host.description]:
            ray.wait(leaving, num_returns=len(leaving), timeout=2.0)
        for host in hosts:
            ray.kill(host.actor)

    @property
    def is_starting(self) -> bool:
        """Return whether a host has not started yet."""
        return any(host.description is None for host in self._hosts.values())

    def next_key(self) -> int:
        """Return a number for an executor, which no other one of this cluster has."""
        return next(self._keys)

    def collector(self) -> Any:
        """Return the handle of the collector of reports, which is started where there is none.

        Raises:
            LostError: it does not start.
        """
        if self._collector is None:
            self._collector = start_collector()
        return self._collector

    def lose_collector(self, collector: Any, why: str) -> None:
        """End a collector; another one is started when it is needed."""
        import ray  # pyright: ignore[reportMissingImports]

        if collector is self._collector:
            self._collector = None
            _log.warning("the collector of reports was lost: %s", why)
            with suppress(Exception):  # it is dead already
                ray.kill(collector)

    def ready(self) -> Mapping[str, Host]:
        """Look for hosts, and return those that are ready by the ids of their nodes.

        Raises:
            LostError: there is none any more, and none starts.
        """
        self._welcome()
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK_S
            for node in _nodes():
                if node not in self._hosts and node not in self._refused:
                    self._hosts[node] = _started(node)
            if not self._hosts:
                raise self._nothing_left()
        return {node: host for node, host in self._hosts.items() if host.description}

    def wait_for(self, count: int, seconds: float) -> bool:
        """Wait until a number of hosts are ready, up to a timeout in seconds; return whether they are."""
        return self._wait(lambda: len(self.ready()) >= count, seconds)

    def pause(self) -> None:
        """Wait a moment, or until a host has started."""
        import ray  # pyright: ignore[reportMissingImports]

        if starting := [host.greeting for host in self._hosts.values() if host.description is None]:
            ray.wait(starting, num_returns=1, timeout=TICK_S)
        else:
            time.sleep(TICK_S)

    def _wait(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition, up to a timeout in seconds; return whether it holds."""
        end = time.monotonic() + seconds
        while not (holds := is_over()) and time.monotonic() < end:
            self.pause()
        return holds

    def lose(self, host: Host, why: str) -> None:
        """Drop an actor; its node gets another one, unless one after the other is lost."""
        import ray  # pyright: ignore[reportMissingImports]

        if self._hosts.get(host.node) is not host:
            return
        del self._hosts[host.node]
        with suppress(Exception):  # it is dead already
            ray.kill(host.actor)
        self._reasons[host.node] = f"{host.name} was lost: {why}"
        _log.warning("measuring host %s was lost: %s", host.name, why)
        self._losses[host.node] += 1
        most = _MOST_LOSSES if host.description else _MOST_STARTS
        if self._losses[host.node] >= most:
            self._refuse(host, f"lost {most} times in a row: {why}")
        self._next_look = 0.0

    def answered(self, host: Host) -> None:
        """Record that a host has evaluated something."""
        self._losses.pop(host.node, None)

    def targets(self, describe: Callable[[], Target]) -> Sequence[Target]:
        """Return the targets of the hosts, each once; see `planish.RayCluster.targets`."""
        import ray  # pyright: ignore[reportMissingImports]

        found, reasons, pickled = dict[str, Target](), list[str](), pickle.dumps(describe)
        self._wait(lambda: not (self.ready() and self.is_starting), self.stall_s)
        for host in self.ready().values():
            try:
                target: Target | str = ray.get(host.actor.target.remote(pickled), timeout=self.stall_s)
            except Exception as error:  # noqa: BLE001  (an actor or node that died)
                self.lose(host, last_line(error))
                continue
            if isinstance(target, Target):
                found[target.text] = target
            else:
                reasons.append(f"{host.name}: {target}")
                _log.warning("host %s is not used: %s", host.name, target)
        if not found:
            why = "; ".join(dict.fromkeys(reasons)) or "none answers"
            raise TargetError(f"no host of the Ray cluster can measure this: {why}", "Start one that can.")
        return [found[text] for text in sorted(found)]

    def _nothing_left(self) -> LostError:
        reasons = "; ".join(dict.fromkeys((*self._refused.values(), *self._reasons.values())))
        return LostError(
            f"no measuring host is left{f': {reasons}' if reasons else ''}",
            "Start one, and run the same command to resume.",
        )

    def _refuse(self, host: Host, why: str) -> None:
        """Use a node no more."""
        import ray  # pyright: ignore[reportMissingImports]

        if self._hosts.get(host.node) is host:
            del self._hosts[host.node]
            ray.kill(host.actor)
        self._refused[host.node] = f"{host.name}: {why}"
        self._next_look = 0.0
        _log.warning("host %s is not used: %s", host.name, why)

    def _welcome(self) -> None:
        """Take the descriptions of hosts that have started."""
        import ray  # pyright: ignore[reportMissingImports]

        starting = {host.greeting: host for host in self._hosts.values() if host.description is None}
        if not starting:
            self._busy_since = time.monotonic()
            return
        ready, _ = ray.wait([*starting], num_returns=len(starting), timeout=0)
        for reference in ready:
            host = starting[reference]
            try:
                found = host.description = ray.get(reference)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is this host's)
                self.lose(host, last_line(error))
                continue
            if found.versions != Versions():
                self._refuse(host, f"it has {found.versions}, and this process {Versions()}")
            elif found.niceness > os.nice(0):
                what = f"measures at a lower priority (nice {found.niceness})"
                _log.warning("host %s %s: start its Ray with RAY_worker_niceness=0", host.name, what)
        if any(host.description for host in self._hosts.values()):
            self._busy_since = time.monotonic()
        elif time.monotonic() - self._busy_since > self.stall_s:
            self._busy_since = math.inf  # reported once
            _log.warning("waiting for a measuring host: all of them may be in use by other runs")


def _nodes() -> Sequence[str]:
    """Return the ids of the nodes that measure."""
    import ray  # pyright: ignore[reportMissingImports]

    found: Sequence[Mapping[str, Any]] = ray.nodes()
    return [node["NodeID"] for node in found if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1]


def _started(node: str) -> Host:
    """Start an actor on a node, once no other process measures there."""
    threads = os.environ.get(THREADS)
    actor = start_actor(MeasuringHost, node, threads, resources={RESOURCE: 1}, max_concurrency=1)
    return Host(node, actor, actor.describe.remote())
