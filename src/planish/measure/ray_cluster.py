"""Executors on a Ray cluster: one actor on each host that has the resource `measure`.

The head, which is the process that searches, keeps the queue of candidates and everything that is stored.
A host receives candidates and returns outcomes; what it does between is `planish.measure.ray_host`. A host
that dies or falls silent costs nothing but time: its candidates are evaluated elsewhere.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import pickle
import signal
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from planish.core import (
    Candidate,
    ClosableExecutor,
    Evaluation,
    EvaluatorSpec,
    Lost,
    LostError,
    PlanishError,
    Target,
    TargetError,
)
from planish.core.installation import install_command
from planish.measure.executors import Queue, pickled
from planish.measure.ray_host import THREADS, Description, MeasuringHost, Report, Requirements, Versions
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.limits import Limits

RESOURCE = "measure"
"""The custom resource of a host that measures: `ray start --resources='{"measure": 1}'`."""
STALL_S = 30.0
"""Seconds without an answer after which a host is given up."""
_WAIT_S = 0.5  # how long a host waits for a result before it answers without one
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
class _Host:
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


@dataclass(frozen=True)
class TaskHosts:
    """Hosts of a cluster that may measure for a task: those of its target.

    Args:
        cluster: the connection.
        target: of the task; None where any will do.
        describe: returns the target of the machine that calls it; it is pickled.
        unfit: of hosts that cannot measure for the task, by the ids of their nodes: why.
    """

    cluster: RayCluster
    target: Target | None = None
    describe: Callable[[], Target] | None = None
    unfit: dict[str, str] = field(default_factory=dict[str, str])

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int | None = None) -> RayExecutor:
        """Start an executor; see `planish.core.ExecutorFactory`.

        Args:
            spec: makes its evaluators.
            workers: processes on each of the hosts; None for a single one on one host, which evaluates a
                batch in its order.
        """
        return RayExecutor(self, spec, workers=workers)

    def usable(self) -> Sequence[_Host]:
        """Return the hosts that are ready.

        Raises:
            LostError: there is no host any more, and none starts.
            TargetError: none of the hosts can measure for the task.
        """
        hosts = self.cluster.hosts()
        usable = [host for node, host in hosts.items() if node not in self.unfit]
        if hosts and not usable and not self.cluster.is_starting:
            why = "; ".join(dict.fromkeys(self.unfit.values()))
            raise TargetError(f"no host of the Ray cluster can measure this: {why}", "Start one that can.")
        return usable

    def exclude(self, host: _Host, why: str) -> None:
        """Use a host no more for this task; others may have another target."""
        self.unfit[host.node] = f"{host.name}: {why}"
        _log.warning("host %s is not used: %s", host.name, why)


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

    Raises:
        PlanishError: Ray is not installed, does not answer, or none of its hosts measures.
    """

    def __init__(self, address: str = "", *, stall_s: float = STALL_S) -> None:
        self._stall_s = stall_s
        self._hosts: dict[str, _Host] = {}
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

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int | None = None) -> RayExecutor:
        """Start an executor on hosts of any target; see `TaskHosts`."""
        return TaskHosts(self)(spec, workers=workers)

    def for_task(self, target: Target, describe: Callable[[], Target]) -> TaskHosts:
        """Return a factory of executors that use the hosts of a target alone; see `TaskHosts`."""
        return TaskHosts(self, target, describe)

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

    def hosts(self) -> Mapping[str, _Host]:
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

    def lose(self, host: _Host, why: str) -> None:
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

    def refuse(self, host: _Host, why: str) -> None:
        """Use a node no more."""
        import ray  # pyright: ignore[reportMissingImports]

        if self._hosts.get(host.node) is host:
            del self._hosts[host.node]
            ray.kill(host.actor)
        self._refused[host.node] = f"{host.name}: {why}"
        self._next_look = 0.0
        _log.warning("host %s is not used: %s", host.name, why)

    def answered(self, host: _Host) -> None:
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

    def _start(self, node: str) -> _Host:
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
        return _Host(node, actor, actor.describe.remote())

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
                self.lose(host, _last_line(error))
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
            _log.warning("waiting for a measuring host: all that there are may be in use by other runs")


@dataclass
class _Slot:
    """A host as one executor sees it.

    Args:
        host: where its actor is.
        call: reference to what the actor does for the executor just now; None: nothing.
        take: handles the result of the call.
        since: when the call began.
        serial: of the spec by which the host evaluates; -1: none yet.
        capacity: as the host reported last.
        pending: what it is to evaluate, by number, in order.
        losses: as the host reported last.
    """

    host: _Host
    call: Any = None
    take: Callable[[Any], None] = field(default=lambda _: None)
    since: float = 0.0
    serial: int = -1
    capacity: int = 1
    pending: dict[int, Candidate] = field(default_factory=dict[int, Candidate])
    losses: Counter[str] = field(default_factory=Counter[str])


class RayExecutor(ClosableExecutor):
    """Evaluates on the measuring hosts of a Ray cluster; `RayCluster` starts it.

    Each host evaluates in sandboxed workers, as a `LocalExecutor` does. What is lost with a host is
    evaluated on another one, and is a `Lost` outcome after as many attempts as the limits allow; of what was
    queued there only, no attempt is counted. An executor belongs to one thread at a time.

    Args:
        hosts: that may measure.
        spec: makes the evaluators; it is pickled, with what it holds.
        workers: processes on each host; None for a single one on one host.
        limits: what one evaluation may use; None takes those that the spec asks for.

    Attributes:
        notes: the evaluators' notes for the user.
        losses: how many evaluations were lost, with their workers or hosts, by cause.
    """

    def __init__(
        self,
        hosts: TaskHosts,
        spec: EvaluatorSpec,
        *,
        workers: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._hosts, self._cluster, self._key = hosts, hosts.cluster, hosts.cluster.next_key()
        self._single, self._workers, self._given = workers is None, workers or 1, limits
        self._slots: dict[str, _Slot] = {}
        self._serial = -1
        self._answering = False
        self._ready: deque[Evaluation] = deque()
        self._until = math.inf
        self.losses: Counter[str] = Counter()
        self._set_spec(spec)
        self._advance()

    @property
    def capacity(self) -> int:
        """Return what its hosts have capacity for, and one at least."""
        return max(1, sum(slot.capacity for slot in self._slots.values()))

    def serve(self, spec: EvaluatorSpec) -> None:
        """Evaluate for another task from now on; see `planish.core.Executor`."""
        self._check_open()
        self._check_idle(self._queue.unanswered or self._answering or self._ready)
        self._set_spec(spec)

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        """Have candidates evaluated; see `planish.core.Executor`."""
        self._check_open()
        if not self._queue.unanswered:
            self._queue = Queue(self._limits.attempts)
        self._queue.add(candidates)
        self._until = deadline

    def results(self) -> Generator[Evaluation, None, None]:
        """Yield evaluations as they end; see `planish.core.Executor`.

        Raises:
            PlanishError: the evaluator cannot be made; the results are already being taken.
            LostError: no measuring host is left.
        """
        self._check_idle(self._answering)
        self._answering = True
        try:
            while self._ready or self._queue.unanswered:
                if self._ready:
                    yield self._ready.popleft()
                elif time.monotonic() >= self._until:
                    self.cancel()
                else:
                    self._advance()
        except GeneratorExit:
            raise
        except BaseException:
            self.cancel()
            raise
        finally:
            self._answering = False

    def cancel(self) -> None:
        """Abandon all that is under way, and results that were not taken."""
        self._queue = Queue(self._limits.attempts)
        self._ready.clear()
        for slot in self._slots.values():
            if slot.pending:
                slot.pending.clear()
                # After the call that is under way, whose result is of no use any more.
                self._call(slot, slot.host.actor.cancel.remote(self._key))

    def close(self) -> None:
        """End the workers on all hosts; harmless when called twice."""
        super().close()
        for slot in self._slots.values():
            with suppress(Exception):  # Ray has ended
                slot.host.actor.end.remote(self._key)
        self._slots.clear()

    def _set_spec(self, spec: EvaluatorSpec) -> None:
        # The spec is kept too: what it owns, such as a folder for its workers, may end with it.
        self._owner, self._spec = spec, pickled(spec)
        self._required = pickle.dumps(Requirements(self._hosts.target, self._hosts.describe, _files(spec)))
        self._limits = self._given or Limits.of(spec)
        self._serial += 1
        self.notes: tuple[str, ...] = ()
        self._queue = Queue(self._limits.attempts)

    def _advance(self) -> None:
        """Send hosts what they can do, and handle what they have answered."""
        import ray  # pyright: ignore[reportMissingImports]

        self._update_slots()
        for slot in self._slots.values():
            if slot.call is None:
                self._give_work(slot)
        calls = {slot.call: slot for slot in self._slots.values() if slot.call is not None}
        if not calls:
            time.sleep(_TICK_S)
            return
        ready, _ = ray.wait([*calls], num_returns=1, timeout=_TICK_S)
        if ready:  # others may have answered, too
            ready, _ = ray.wait([*calls], num_returns=len(calls), timeout=0)
        for reference in ready:
            self._handle(calls[reference], reference)
        for slot in [*self._slots.values()]:
            if slot.call is not None and time.monotonic() - slot.since > self._cluster.stall_s:
                self._lose(slot, f"no answer for {self._cluster.stall_s:g} s")

    def _update_slots(self) -> None:
        usable = self._hosts.usable()
        for slot in [*self._slots.values()]:
            if slot.host not in usable:  # lost to another executor of this cluster
                self._requeue(slot, "its actor is gone")
        for host in usable:
            if host.node not in self._slots and not (self._single and self._slots):
                self._slots[host.node] = _Slot(host)

    def _give_work(self, slot: _Slot) -> None:
        actor = slot.host.actor
        if slot.serial != self._serial:
            begun = actor.begin.remote(self._key, self._spec, self._workers, self._given, self._required)
            self._call(slot, begun, lambda obstacle: self._on_begun(slot, obstacle))
            slot.serial = self._serial
            return
        room = slot.capacity - len(slot.pending)
        batch: Sequence[tuple[int, Candidate]] = ()
        if room > 0 and len(self._queue):
            share = -(-len(self._queue) // len(self._slots))
            batch = [*zip(*self._queue.take(min(room, share)), strict=True)]
        if batch or slot.pending:
            slot.pending.update(batch)
            left = self._until - time.monotonic()
            report = actor.exchange.remote(self._key, batch, left, _WAIT_S)
            self._call(slot, report, lambda report: self._on_report(slot, report))

    def _call(self, slot: _Slot, reference: Any, take: Callable[[Any], None] = lambda _: None) -> None:
        slot.call, slot.take, slot.since = reference, take, time.monotonic()

    def _handle(self, slot: _Slot, reference: Any) -> None:
        import ray  # pyright: ignore[reportMissingImports]

        if slot.call is not reference:
            return  # canceled, or lost meanwhile
        try:
            found = ray.get(reference)
        except Exception as error:  # noqa: BLE001  (an actor or node that died, an error of its process)
            self._lose(slot, _last_line(error))
            return
        slot.call = None
        slot.take(found)

    def _on_begun(self, slot: _Slot, obstacle: PlanishError | str) -> None:
        if isinstance(obstacle, PlanishError):
            raise obstacle
        if obstacle:
            del self._slots[slot.host.node]
            self._hosts.exclude(slot.host, obstacle)

    def _on_report(self, slot: _Slot, report: Report) -> None:
        if report.error is not None:
            raise report.error
        slot.capacity = report.capacity
        self.notes = tuple(dict.fromkeys((*self.notes, *report.notes)))
        self.losses += report.losses - slot.losses
        slot.losses = report.losses
        if report.replies:
            self._cluster.answered(slot.host)
        for reply in report.replies:
            del slot.pending[reply.position]
            candidate = self._queue.finish(reply.position)
            self._ready.append(Evaluation(candidate, reply.outcome, reply.seconds, reply.host))
        if report.canary_s is not None and (why := slot.host.canary.look(report.canary_s)):
            self._set_aside(slot, why)

    def _set_aside(self, slot: _Slot, why: str) -> None:
        """Use a host no more whose times are not true, unless it is the last one; say so in a note."""
        others = [each for each in self._slots.values() if each is not slot]
        note = f"host {slot.host.name}: {why}"
        self.notes = tuple(dict.fromkeys((*self.notes, note if others else f"{note}; times may be too long")))
        if others:
            slot.host.actor.cancel.remote(self._key)
            self._queue.put_back([*slot.pending])
            slot.pending.clear()
            del self._slots[slot.host.node]
            self._hosts.exclude(slot.host, why)

    def _lose(self, slot: _Slot, why: str) -> None:
        self._cluster.lose(slot.host, why)
        self._requeue(slot, why)

    def _requeue(self, slot: _Slot, why: str) -> None:
        """Have what was pending on a host evaluated elsewhere."""
        del self._slots[slot.host.node]
        if not slot.pending:
            return
        numbers = [*slot.pending]
        # Those that were sent first were under way; those after them were never begun.
        begun, others = numbers[: self._workers], numbers[self._workers :]
        self._queue.put_back(others)
        for number in reversed(begun):
            self.losses["the host was lost"] += 1
            if not self._queue.lose(number):
                lost = Lost("worker", "host lost", f"{slot.host.name}: {why}")
                self._ready.append(Evaluation(self._queue.finish(number), lost, {}, slot.host.name))


def _files(spec: EvaluatorSpec) -> Sequence[str]:
    """Return the files and folders of this machine that the workers of a spec read or write."""
    policy = SandboxPolicy.of(spec)
    paths = (*policy.reads, *policy.writes) if policy else ()
    return [path for path in dict.fromkeys(paths) if Path(path).exists()]


def _last_line(error: BaseException) -> str:
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
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise PlanishError(
            f"{what}: {lines[0]}", "Run 'ray start' on this machine, too." if address else ""
        ) from error
    except BaseException as error:
        ray.shutdown()
        if isinstance(error, SystemExit):  # Ray's own handler, which was there for a moment
            signal.raise_signal(signal.SIGTERM)
        raise
    return True


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
