"""Executors on a Ray cluster: one actor on each host that has the resource `measure`.

The head, which is the process that searches, keeps the queue of candidates and everything that is stored.
A host receives candidates and returns outcomes; what it does between is `planish.measure.ray_host`. A host
that dies or falls silent costs nothing but time: its candidates are evaluated elsewhere.
"""

from __future__ import annotations

import logging
import pickle
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Generic

from planish.core import (
    Candidate,
    Evaluation,
    EvaluatorSpec,
    Lost,
    PlanishError,
    Target,
    TargetError,
)
from planish.measure.executors import Found, Item, Queue, QueuedExecutor, pickled
from planish.measure.ray_connection import Host, RayConnection, last_line
from planish.measure.ray_host import Report, Requirements
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.fork_pool import Done, ForkedWork, Watchdog, WorkReply
from planish.sandbox.limits import ExitStatus, Limits
from planish.sandbox.protocol import EvaluationReply

_WAIT_S = 0.5  # how long a host waits for a result before it answers without one
_TICK_S = 0.1
_HOSTS = 3  # hosts that may be lost with an item for each of its attempts: most are lost for other reasons

_log = logging.getLogger("planish")


@dataclass(frozen=True)
class TaskHosts:
    """Hosts of a cluster that may measure for a task: those of its target.

    Args:
        cluster: the connection.
        target: of the task; None where any will do.
        describe: returns the target of the machine that calls it; it is pickled.
        unfit: of hosts that cannot measure for the task, by the ids of their nodes: why.
    """

    cluster: RayConnection
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

    def usable(self) -> Sequence[Host]:
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

    def exclude(self, host: Host, why: str) -> None:
        """Use a host no more for this task; others may have another target."""
        self.unfit[host.node] = f"{host.name}: {why}"
        _log.warning("host %s is not used: %s", host.name, why)


@dataclass
class _Slot(Generic[Item]):
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

    host: Host
    call: Any = None
    take: Callable[[Any], None] = field(default=lambda _: None)
    since: float = 0.0
    serial: int = -1
    capacity: int = 1
    pending: dict[int, Item] = field(default_factory=dict[int, Item])
    losses: Counter[str] = field(default_factory=Counter[str])


class _HostQueue(QueuedExecutor[Item, Found]):
    """Items that the measuring hosts of a Ray cluster work on.

    What is lost with a host is done by another one, three times as often as the limits allow attempts; of
    what was queued there only, no loss is counted. A queue belongs to one thread at a time.

    Args:
        hosts: that may do it.
        spec: what they do; it is pickled, with what it holds.
        workers: processes on each host; None for a single one on one host.
        limits: of one item; None takes those that the spec asks for.

    Attributes:
        notes: for the user.
        losses: how many items were lost, with their workers or hosts, by cause.
    """

    def __init__(
        self, hosts: TaskHosts, spec: Any, *, workers: int | None = None, limits: Limits | None = None
    ) -> None:
        super().__init__()
        self._hosts, self._cluster, self._key = hosts, hosts.cluster, hosts.cluster.next_key()
        self._single, self._workers, self._given = workers is None, workers or 1, limits
        self._slots: dict[str, _Slot[Item]] = {}
        self._serial = -1
        self.losses: Counter[str] = Counter()
        self._set_spec(spec)
        self._advance()

    @property
    def _attempts(self) -> int:
        return _HOSTS * self._limits.attempts

    @abstractmethod
    def _result(self, item: Item, reply: Any) -> Found:
        """Make the result of an item from a host's reply."""

    @abstractmethod
    def _lost(self, item: Item, host: str, why: str) -> Found:
        """Make the result of an item that is given up, since host after host was lost with it."""

    @property
    def capacity(self) -> int:
        """Return what its hosts have capacity for, and one at least."""
        return max(1, sum(slot.capacity for slot in self._slots.values()))

    @property
    def has_result(self) -> bool:
        """Return whether `results` yields one at once."""
        return bool(self._ready)

    @property
    def unanswered(self) -> int:
        """Return the number of items without a result."""
        return self._queue.unanswered

    def cancel(self) -> None:
        """Abandon all that is under way, and results that were not taken."""
        super().cancel()
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

    def _set_spec(self, spec: Any) -> None:
        # The spec is kept too: what it owns, such as a folder for its workers, may end with it.
        self._owner, self._spec = spec, pickled(spec)
        self._required = pickle.dumps(Requirements(self._hosts.target, self._hosts.describe, _files(spec)))
        self._limits = self._given or Limits.of(spec)
        self._serial += 1
        self.notes: tuple[str, ...] = ()
        self._queue = Queue[Item](self._attempts)

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
                self._slots[host.node] = _Slot[Item](host)

    def _give_work(self, slot: _Slot[Item]) -> None:
        actor = slot.host.actor
        if slot.serial != self._serial:
            begun = actor.begin.remote(self._key, self._spec, self._workers, self._given, self._required)
            self._call(slot, begun, lambda obstacle: self._on_begun(slot, obstacle))
            slot.serial = self._serial
            return
        room = slot.capacity - len(slot.pending)
        batch: Sequence[tuple[int, Item]] = ()
        if room > 0 and len(self._queue):
            share = -(-len(self._queue) // len(self._slots))
            batch = [*zip(*self._queue.take(min(room, share)), strict=True)]
        if batch or slot.pending:
            slot.pending.update(batch)
            left = self._until - time.monotonic()
            report = actor.exchange.remote(self._key, batch, left, _WAIT_S)
            self._call(slot, report, lambda report: self._on_report(slot, report))

    def _call(self, slot: _Slot[Item], reference: Any, take: Callable[[Any], None] = lambda _: None) -> None:
        slot.call, slot.take, slot.since = reference, take, time.monotonic()

    def _handle(self, slot: _Slot[Item], reference: Any) -> None:
        import ray  # pyright: ignore[reportMissingImports]

        if slot.call is not reference:
            return  # canceled, or lost meanwhile
        try:
            found = ray.get(reference)
        except Exception as error:  # noqa: BLE001  (an actor or node that died, an error of its process)
            self._lose(slot, last_line(error))
            return
        slot.call = None
        slot.take(found)

    def _on_begun(self, slot: _Slot[Item], obstacle: PlanishError | str) -> None:
        if isinstance(obstacle, PlanishError):
            raise obstacle
        if obstacle:
            del self._slots[slot.host.node]
            self._hosts.exclude(slot.host, obstacle)

    def _on_report(self, slot: _Slot[Item], report: Report) -> None:
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
            self._ready.append(self._result(self._queue.finish(reply.position), reply))
        if report.canary_s is not None and (why := slot.host.canary.look(report.canary_s)):
            self._set_aside(slot, why)

    def _set_aside(self, slot: _Slot[Item], why: str) -> None:
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

    def _lose(self, slot: _Slot[Item], why: str) -> None:
        self._cluster.lose(slot.host, why)
        self._requeue(slot, why)

    def _requeue(self, slot: _Slot[Item], why: str) -> None:
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
                self._ready.append(self._lost(self._queue.finish(number), slot.host.name, why))


def _files(spec: EvaluatorSpec) -> Sequence[str]:
    """Return the files and folders of this machine that the workers of a spec read or write."""
    policy = SandboxPolicy.of(spec)
    paths = (*policy.reads, *policy.writes) if policy else ()
    return [path for path in dict.fromkeys(paths) if Path(path).exists()]


class RayExecutor(_HostQueue[Candidate, Evaluation]):
    """Evaluates on the measuring hosts of a Ray cluster; `RayCluster` starts it.

    Each host evaluates in sandboxed workers, as a `LocalExecutor` does. What is lost with a host is
    evaluated on another one, and is a `Lost` outcome after three hosts for each attempt that is allowed.

    Args:
        hosts: that may measure.
        spec: makes the evaluators; it is pickled, with what it holds.
        workers: processes on each host; None for a single one on one host.
        limits: what one evaluation may use; None takes those that the spec asks for.

    Attributes:
        notes: the evaluators' notes for the user.
        losses: how many evaluations were lost, with their workers or hosts, by cause.
    """

    def serve(self, spec: EvaluatorSpec) -> None:
        """Evaluate for another task from now on; see `planish.core.Executor`."""
        self._check_open()
        self._check_idle(self._queue.unanswered or self._answering or self._ready)
        self._set_spec(spec)

    def _result(self, item: Candidate, reply: EvaluationReply) -> Evaluation:
        return Evaluation(item, reply.outcome, reply.seconds, reply.host)

    def _lost(self, item: Candidate, host: str, why: str) -> Evaluation:
        return Evaluation(item, Lost("worker", "host lost", f"{host}: {why}"), {}, host)


class _RayWork(_HostQueue[Item, Done[Item, Any]]):
    """Work that is done in forked children of the hosts, as `planish.sandbox.fork_pool.forked` does it."""

    def _result(self, item: Item, reply: WorkReply) -> Done[Item, Any]:
        return Done(item, reply.answer, reply.refused, reply.given_up)

    def _lost(self, item: Item, host: str, why: str) -> Done[Item, Any]:
        cause = f"host {host} was lost"
        return Done(item, None, (), ExitStatus(cause, f"{cause}: {why}", from_outside=True))


class RayCluster(RayConnection):
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

    def __call__(self, spec: EvaluatorSpec, /, *, workers: int | None = None) -> RayExecutor:
        """Start an executor on hosts of any target; see `TaskHosts`."""
        return TaskHosts(self)(spec, workers=workers)

    def for_task(self, target: Target, describe: Callable[[], Target]) -> TaskHosts:
        """Return a factory of executors that use the hosts of a target alone; see `TaskHosts`."""
        return TaskHosts(self, target, describe)

    def targets(self, describe: Callable[[], Target]) -> Sequence[Target]:
        """Return the targets of the hosts, each once, in the order of their texts, once all have started.

        Args:
            describe: returns the target of the machine that calls it.

        Raises:
            LostError: no measuring host is left.
            TargetError: no host has a target.
        """
        import ray  # pyright: ignore[reportMissingImports]

        found, reasons, pickled = dict[str, Target](), list[str](), pickle.dumps(describe)
        end = time.monotonic() + self.stall_s
        while self.hosts() and self.is_starting and time.monotonic() < end:
            time.sleep(_TICK_S)
        for host in self.hosts().values():
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
        with _RayWork[Item](TaskHosts(self), ForkedWork(work, answer, jobs, at_once), workers=1) as pool:
            pool.submit(list(islice(left, pool.capacity)))
            for done in pool.results():
                yield done
                pool.submit(list(islice(left, max(0, pool.capacity - pool.unanswered))))
