"""Connection to a Ray cluster: its measuring hosts, as they join, fall silent and leave."""

from __future__ import annotations

import itertools
import logging
import math
import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

from planish.core import LostError, PlanishError
from planish.core.installation import install_command
from planish.measure.ray_host import THREADS, Description, MeasuringHost, Versions

RESOURCE = "measure"
"""The custom resource of a host that measures: `ray start --resources='{"measure": 1}'`."""
STALL_S = 30.0
"""Seconds without an answer after which a host is given up."""
_TICK_S = 0.1
_LOOK_S = 1.0  # how often hosts are looked for
_CONNECT_S = 10.0
_MOST_LOSSES = 3  # actors in a row that are lost on a node before any of them has answered with a result
_START = f"""Start one: ray start --address=... --resources='{{"{RESOURCE}": 1}}'."""

_log = logging.getLogger("planish")


SLOWER = 1.25
"""How many times longer than at its fastest a host may take for the canary."""
_SLOW_LOOKS = 3


@dataclass
class Canary:
    """Speed of a host over time, by a computation that is always the same.

    A single slow look may be chance. After some in a row the host is throttled, or other work runs beside it.

    Args:
        least: seconds at its fastest.
        slow: looks in a row at which it was slower than `SLOWER` times that.
    """

    least: float = math.inf
    slow: int = 0

    def look(self, seconds: float) -> str:
        """Note the seconds of one look; return why the host is not to be trusted, empty where it is."""
        self.least = min(self.least, seconds)
        self.slow = self.slow + 1 if seconds > SLOWER * self.least else 0
        if self.slow < _SLOW_LOOKS:
            return ""
        times = seconds / self.least
        return f"it has become {times:.2g} times slower: it is throttled, or other work runs on it"


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


class RayConnection:
    """Measuring hosts of a Ray cluster, each with an actor: found, lost and refused.

    Arguments and errors are those of `planish.RayCluster`, which starts executors on the hosts.
    """

    def __init__(self, address: str = "", *, stall_s: float = STALL_S) -> None:
        self._stall_s = stall_s
        self._hosts: dict[str, Host] = {}
        self._losses: Counter[str] = Counter()  # by node, since its last result
        self._refused: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._next_look = 0.0
        self._busy_since = time.monotonic()
        self._keys = itertools.count()
        self._own = _connect(address)
        try:
            if not self._nodes():
                raise PlanishError(f"no host of the Ray cluster has the resource '{RESOURCE}'", _START)
            self._await_first()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the actors, and a Ray that was started here; harmless when called twice."""
        import ray  # pyright: ignore[reportMissingImports]

        hosts, self._hosts = [*self._hosts.values()], {}
        if ray.is_initialized():
            leaving = [host.actor.leave.remote() for host in hosts if host.description]
            if leaving:
                ray.wait(leaving, num_returns=len(leaving), timeout=2.0)
            for host in hosts:
                ray.kill(host.actor)
            if self._own:
                with _quiet():
                    ray.shutdown()
        self._own = False

    @property
    def stall_s(self) -> float:
        """Return the seconds without an answer after which a host is given up."""
        return self._stall_s

    @property
    def is_starting(self) -> bool:
        """Return whether a host has not started yet."""
        return any(host.description is None for host in self._hosts.values())

    def next_key(self) -> int:
        """Return a number for an executor, which no other one of this cluster has."""
        return next(self._keys)

    def hosts(self) -> Mapping[str, Host]:
        """Look for hosts, and return those that are ready by the ids of their nodes.

        Raises:
            LostError: there is none any more, and none starts.
        """
        self._welcome()
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK_S
            for node in self._nodes():
                if node not in self._hosts and node not in self._refused:
                    self._hosts[node] = self._start(node)
            if not self._hosts:
                raise self.nothing_left()
        return {node: host for node, host in self._hosts.items() if host.description}

    def nothing_left(self) -> LostError:
        """Make the error for a cluster on which nothing can be measured."""
        reasons = "; ".join(dict.fromkeys((*self._refused.values(), *self._reasons.values())))
        return LostError(
            f"no measuring host is left{f': {reasons}' if reasons else ''}",
            "Start one, and run the same command to resume.",
        )

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
        if self._losses[host.node] >= _MOST_LOSSES:
            self.refuse(host, f"lost {_MOST_LOSSES} times in a row: {why}")
        self._next_look = 0.0

    def refuse(self, host: Host, why: str) -> None:
        """Use a node no more."""
        import ray  # pyright: ignore[reportMissingImports]

        if self._hosts.get(host.node) is host:
            del self._hosts[host.node]
            ray.kill(host.actor)
        self._refused[host.node] = f"{host.name}: {why}"
        self._next_look = 0.0
        _log.warning("host %s is not used: %s", host.name, why)

    def answered(self, host: Host) -> None:
        """Record that a host has evaluated something."""
        self._losses.pop(host.node, None)

    def _await_first(self) -> None:
        """Wait for the first host, so that its start is not a part of a search's time."""
        end = time.monotonic() + self._stall_s
        while not self.hosts() and time.monotonic() < end:
            time.sleep(_TICK_S / 2)

    def _nodes(self) -> Sequence[str]:
        import ray  # pyright: ignore[reportMissingImports]

        found: Sequence[Mapping[str, Any]] = ray.nodes()
        return [node["NodeID"] for node in found if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1]

    def _start(self, node: str) -> Host:
        import ray  # pyright: ignore[reportMissingImports]
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # pyright: ignore[reportMissingImports]

        made: Any = ray.remote(MeasuringHost)
        actor = made.options(
            num_cpus=0,
            resources={RESOURCE: 1},
            max_concurrency=1,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote(os.environ.get(THREADS))
        return Host(node, actor, actor.describe.remote())

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
                description = ray.get(reference)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is this host's)
                self.lose(host, last_line(error))
                continue
            if description.versions != Versions():
                host.description = description
                self.refuse(host, f"it has {description.versions}, and this process {Versions()}")
                continue
            host.description = description
            if description.niceness > os.nice(0):
                what = "measures at a lower priority (nice %d): start its Ray with RAY_worker_niceness=0"
                _log.warning(f"host %s {what}", host.name, description.niceness)
        ready = any(host.description for host in self._hosts.values())
        if not ready and time.monotonic() - self._busy_since > self._stall_s:
            self._busy_since = math.inf


def last_line(error: BaseException) -> str:
    """Return what an error of Ray says, in one line."""
    from ray.exceptions import RayActorError, RayTaskError  # pyright: ignore[reportMissingImports]

    if isinstance(error, RayTaskError):
        cause = getattr(error, "cause", None)
        return f"{type(cause).__name__}: {cause}" if cause else str(error).strip().splitlines()[-1]
    if isinstance(error, RayActorError):
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return next((line for line in reversed(lines) if "Error" in line), "its process or node died")
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _connect(address: str) -> bool:
    """Connect this process to Ray; return whether the connection, or the Ray, ends with the cluster.

    Raises:
        PlanishError: Ray is not installed, or does not answer.
    """
    # Ray reports its use to its makers unless this is set; a cluster's own setting is not changed.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise PlanishError("Ray is not installed", f"Install it: {install_command('ray')}.") from error
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS", "")
    if "://" in address:
        raise PlanishError(
            f"'{address}' is not the address of a Ray node",
            "Write HOST:PORT, and run this command on a machine of the cluster.",
        )
    options: dict[str, Any] = {"address": address or "local"}
    if not address:
        options |= {"resources": {RESOURCE: 1}, "include_dashboard": False}
        options["_system_config"] = {"worker_niceness": 0}
    elif address != "auto":
        _check_address(address)
    try:
        with _quiet():
            ray.init(**options, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except Exception as error:
        what = f"cannot connect to Ray at {address}" if address else "cannot start Ray on this machine"
        raise PlanishError(
            f"{what}: {_in_a_line(error)}", "Run 'ray start' on this machine, too." if address else ""
        ) from error
    except BaseException as error:
        ray.shutdown()
        if isinstance(error, SystemExit):  # Ray's own handler, which was there for a moment
            signal.raise_signal(signal.SIGTERM)
        raise
    return True


_PLACE = re.compile(r"\s*This process on .* was started with:")


def _in_a_line(error: Exception) -> str:
    """Return what Ray says of a connection; of other versions, those of the cluster and of this process."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if "mismatch" not in lines[0].lower():
        return lines[0]
    return _PLACE.sub("; this process has", " ".join(lines))


def _check_address(address: str) -> None:
    """Raise PlanishError unless something listens at an address; Ray itself waits for a minute and more."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise PlanishError(f"'{address}' is not the address of a Ray node", "Write HOST:PORT.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise PlanishError(
            f"no Ray cluster answers at {address}: {error}",
            "Start it with 'ray start --head', or see address= and RAY_ADDRESS.",
        ) from error


@contextmanager
def _quiet() -> Generator[None]:
    """Keep this process's handlers of signals, where the block sets others, and Ray's messages to itself."""
    ray_log = logging.getLogger("ray")
    level = ray_log.level
    ray_log.setLevel(logging.ERROR)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        ray_log.setLevel(level)
        for number, handler in before.items():
            with suppress(ValueError):  # not in the main thread, where none was set either
                signal.signal(number, handler)
